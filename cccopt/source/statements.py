"""Where a C++ statement begins and ends, according to its grammar (ISO C++20 [stmt]), not its lines.

Only brackets, keywords, labels and semicolons matter: templates' angle brackets need no matching, because a
``;`` inside them can only be in a lambda's braces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cccopt.source.lexer import Token

_CLOSER = {"(": ")", "[": "]", "{": "}"}
_BEFORE_STATEMENT = frozenset({";", "{", "}", ":", "else", "do"})
_WITH_CONDITION = frozenset({"if", "for", "while", "switch"})


class Unbalanced(Exception):
    """A statement without an end; ``index`` is the token at which the search began."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


class OutOfSight(Exception):
    """The answer depends on text that was not lexed."""


@dataclass(frozen=True)
class Code:
    """Tokens without directives. Indices count tokens; an end is one past a statement's last token.

    If they do not begin with the text's first token (``from_start``) or end with its last (``to_end``), a query that
    depends on what is missing raises `OutOfSight`.
    """

    tokens: Sequence[Token]
    from_start: bool = True
    to_end: bool = True

    @cached_property
    def partners(self) -> dict[int, int]:
        """From each bracket to its partner, both ways; brackets without one are absent."""
        pairs: dict[int, int] = {}
        stack: list[int] = []
        for index, token in enumerate(self.tokens):
            if token.text in _CLOSER:
                stack.append(index)
            elif token.text in ")]}" and stack and _CLOSER[self.tokens[stack[-1]].text] == token.text:
                pairs[index] = stack.pop()
                pairs[pairs[index]] = index
        return pairs

    def text(self, index: int) -> str:
        """The token's text, empty outside the tokens."""
        if 0 <= index < len(self.tokens):
            return self.tokens[index].text
        if not (self.from_start if index < 0 else self.to_end):
            raise OutOfSight
        return ""

    def after_bracket(self, index: int) -> int:
        """One past the partner of the bracket at ``index``; raises `Unbalanced`."""
        partner = self.partners.get(index, -1)
        if partner < index or self.text(index) not in _CLOSER:
            raise Unbalanced(index)
        return partner + 1

    def after_head(self, index: int) -> int:
        """One past the condition of the ``if``, ``for``, ``while`` or ``switch`` at ``index``."""
        index += 1
        while self.text(index) in ("constexpr", "!"):
            index += 1
        return index + 1 if self.text(index) == "consteval" else self.after_bracket(index)

    def after_attributes(self, index: int) -> int:
        """The first token after any ``[[attributes]]`` at ``index``."""
        while self.text(index) == "[" and self.text(index + 1) == "[":
            index = self.after_bracket(index)
        return index

    def after_label(self, index: int) -> int:
        """The first token after one label (``name:``, ``case x:``, ``default:``) at ``index``, or
        ``index``."""
        if self.text(index) == "case":
            return self._after_case(index)
        is_label = self.text(index + 1) == ":" and self.tokens[index].kind == "word"
        return index + 2 if is_label else index

    def unlabelled(self, index: int) -> int:
        """The statement at ``index`` after its labels, with the attributes that follow the last one."""
        while True:
            after = self.after_label(self.after_attributes(index))
            if after == self.after_attributes(index):
                return index
            index = after

    def statement_end(self, index: int) -> int:
        """One past the last token of the statement that begins at ``index``; raises `Unbalanced`."""
        around: list[
            str
        ] = []  # each ``if`` and ``do`` whose end is that of the statement in it, innermost last
        while True:
            begin, index = index, self.after_attributes(self.unlabelled(index))
            word = self.text(index)
            if word in ("if", "do"):
                around.append(word)
            if word in _WITH_CONDITION or word == "do":
                index = index + 1 if word == "do" else self.after_head(index)
                continue
            index = self._simple_end(index, begin)
            while around:
                if around.pop() == "do":
                    index = self._expression_end(index)
                elif self.text(index) == "else":
                    index += 1
                    break
            else:
                return index

    def _simple_end(self, index: int, begin: int) -> int:
        """One past a statement that does not end with another one; its labels are from ``begin`` to ``index``."""
        word = self.text(index)
        if word == "{":
            return self.after_bracket(index)
        if word == "}" and index > begin:
            return index  # a label that ends its block (C++23)
        return self._try_end(index) if word == "try" else self._expression_end(index)

    def may_begin_statement(self, index: int) -> bool:
        """Whether a statement can begin at ``index``, judging by what comes before it."""
        before = self.text(index - 1)
        if before in _BEFORE_STATEMENT:
            return True
        if before not in (")", "]"):
            return before == ""
        opening = self.partners.get(index - 1)
        if opening is None:
            if not self.from_start:
                raise OutOfSight
            return False
        if before == "]":
            return self.text(opening + 1) == "["
        return self.text(opening - 1) in _WITH_CONDITION or self.text(opening - 1) == "constexpr"

    def else_at(self, index: int) -> int:
        """The ``else`` at ``index`` or of the statement that begins there; ``index`` if there is none."""
        before = index - 1
        while self.text(before) == "]" and self.text(self.partners.get(before, before) + 1) == "[":
            before = self.partners[before] - 1
        return before if self.text(index) != "else" and self.text(before) == "else" else index

    def do_of(self, index: int) -> int | None:
        """The ``do`` whose ``while`` is at ``index``, None if that begins a statement of its own."""
        at = index - 1
        while self.text(at) not in ("", "(", "[", "{"):
            if self.text(at) == "do" and self._ends_at(at + 1, index):
                return at
            at = self.partners.get(at, at) - 1
        return None

    def _ends_at(self, begin: int, end: int) -> bool:
        try:
            return self.statement_end(begin) == end
        except Unbalanced:
            return False

    def _after_case(self, index: int) -> int:
        start, conditionals = index, 0
        while index < len(self.tokens):
            word = self.text(index)
            if word == ":" and conditionals == 0:
                return index + 1
            conditionals += (word == "?") - (word == ":")
            index = self.after_bracket(index) if word in _CLOSER else index + 1
        raise Unbalanced(start)

    def _try_end(self, index: int) -> int:
        index = self.after_bracket(index + 1)
        while self.text(index) == "catch":
            index = self.after_bracket(self.after_bracket(index + 1))
        return index

    def _expression_end(self, index: int) -> int:
        start = index
        while index < len(self.tokens):
            word = self.text(index)
            if word == ";":
                return index + 1
            if word in (")", "]", "}"):
                break
            index = self.after_bracket(index) if word in _CLOSER else index + 1
        raise Unbalanced(start)
