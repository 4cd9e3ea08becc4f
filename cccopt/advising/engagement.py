"""Loops for which Collaborative Task Engagement fits as well as pragmas: one task per row, with fine tasks of its own.

        float sum = 0;
        for (int k = row[v]; k < row[v + 1]; ++k) sum += value[k] * x[column[k]];

        sum = cte::for_each_index<BLOCK, cte::disjoint>(
            row[v], row[v + 1], [=](int k) { return value[k] * x[column[k]]; }, cte::plus{}, sum);

The body becomes a function that any lane may call, so it may use only the kernel's parameters and its own variables.
Code that does not clearly have this shape gets no such advice.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from cccopt.advising.source_loops import code_of, extent_of
from cccopt.diagnostic import CccError
from cccopt.files import read_text
from cccopt.source.restricted import parameters_around
from cccopt.source.statements import Code, OutOfSight, Unbalanced
from cccopt.text import Place

_WHOLE = frozenset({"int", "unsigned", "long", "size_t", "int32_t", "uint32_t", "int64_t", "uint64_t"})
_NUMBERS = _WHOLE | {"float", "double"}
_LOOPS = frozenset({"for", "while", "do"})
_LEAVING = frozenset({"break", "continue", "return", "goto", "threadIdx", "blockIdx", "asm"})
_FOREIGN = ("__sync", "__shfl", "__ballot", "__any", "__all", "__match", "__activemask", "__reduce")


@dataclass(frozen=True, slots=True)
class _Head:
    """``for (TYPE index = begin; index < end; ++index)``: the type and the texts."""

    type: str
    index: str
    begin: str
    end: str


def engagement(outer: Place, loop: Place) -> str:
    """The call to write in place of ``loop``, the only loop in ``outer`` (a loop over tasks, or the name of a kernel);
    empty if it does not clearly have the shape.
    """
    if loop.file != outer.file:
        return ""
    try:
        text = read_text(loop.file)
        code = code_of(text)
        around, inner = extent_of(outer), extent_of(loop)
        if around is None or inner is None or not around[0] < inner[0] < around[1]:
            return ""
        return _Loop(text, code, around, inner).call()
    except (CccError, Unbalanced, OutOfSight):
        return ""


class _Loop:
    def __init__(self, text: str, code: Code, around: tuple[int, int], extent: tuple[int, int]) -> None:
        self.text = text
        self.code = code
        self.around = around
        self.start, self.end = extent
        self.body = code.after_head(self.start) if code.text(self.start) == "for" else self.end
        self.parameters = {p.name for p in parameters_around(code, self.start)}

    def call(self) -> str:
        """The call; empty if there is none."""
        head = self._head()
        if head is None or not self._is_alone() or not self._is_uneven(head):
            return ""
        first, last = self.body, self.end
        if self.code.text(first) == "{":
            first, last = first + 1, last - 1
        words = [self.code.text(i) for i in range(first, last)]
        if _LEAVING & {*words} or any(word.startswith(_FOREIGN) for word in words):
            return ""
        if self._is_sum(first, last):
            name = self.code.text(first)
            if self._number(name) is None or not self._own(first + 3, last - 1, {head.index}):
                return ""
            made = f"[=]({head.type} {head.index}) {{ return {self._spelled(first + 3, last - 1)}; }}"
            return f"{name} = cte::for_each_index<{_HOW}>({head.begin}, {head.end}, {made}, cte::plus{{}}, {name});"
        own = {head.index, *self._declared(first, last)}
        if not self._own(first, last, own) or not self._keeps_own(first, last):
            return ""
        made = f"[=]({head.type} {head.index}) {{ {self._spelled(first, last)} }}"
        return f"cte::for_each<{_HOW}>({head.begin}, {head.end}, {made});"

    # --- the shape ---

    def _head(self) -> _Head | None:
        """The head of a loop over a range; None if it is not exactly of the form of `_Head`."""
        code, parts = self.code, [self.start + 2]
        for i in range(self.start + 2, self.body - 1):
            if code.text(i) == ";":
                parts.append(i + 1)
        if code.text(self.start) != "for" or len(parts) != 3:
            return None
        begin, test, step = parts
        equals = next((i for i in range(begin, test) if code.text(i) == "="), test)
        name = code.text(equals - 1)
        kinds = [code.text(i) for i in range(begin, equals - 1)]
        steps = "".join(code.text(i) for i in range(step, self.body - 1))
        counts = steps in (f"++{name}", f"{name}++", f"{name}+=1")
        compared = [code.text(test), code.text(test + 1), code.text(test + 2)]
        if not counts or compared[:2] != [name, "<"] or compared[2] in ("=", "<"):
            return None
        if not kinds or not {*kinds} <= _WHOLE or "," in [code.text(i) for i in range(begin, test)]:
            return None
        if self._assigns(self.body, self.end, name):
            return None
        ends = self._spelled(equals + 1, test - 1), self._spelled(test + 2, step - 1)
        return _Head(" ".join(kinds), name, *ends)

    def _is_alone(self) -> bool:
        """Whether it is the only loop and is in no statement other than the loop over tasks."""
        code = self.code
        loops = [i for i in range(self.around[0] + 1, self.around[1]) if code.text(i) in _LOOPS]
        opening = next((i for i in range(self.start - 1, self.around[0], -1) if self._opens(i)), None)
        kernel = code.text(self.around[0]) == "{"
        body = self.around[0] if kernel else code.after_head(self.around[0])
        own = opening if opening is not None else self.around[0]
        return loops == [self.start] and own == body and code.text(self.start - 1) in (";", "{", "}")

    def _opens(self, index: int) -> bool:
        return self.code.text(index) == "{" and self.code.partners.get(index, 0) > self.start

    def _is_uneven(self, head: _Head) -> bool:
        """Whether a bound comes from memory, as far as the text shows."""
        return any("[" in bound or "[" in self._initial(bound) for bound in (head.begin, head.end))

    def _initial(self, name: str) -> str:
        """The initializer of a local variable: ``int first = row[v], last = row[v + 1];``"""
        code = self.code
        for i in range(self.start - 1, self.around[0], -1):
            if code.text(i) == name and code.text(i + 1) == "=":
                stop = i
                while code.text(stop) not in (";", ","):
                    stop = code.after_bracket(stop) if code.text(stop) in ("(", "[", "{") else stop + 1
                return self._spelled(i + 2, stop)
        return ""

    def _is_sum(self, first: int, last: int) -> bool:
        """Whether the body is ``name += expression;``"""
        code = self.code
        words = [code.text(i) for i in range(first + 3, last)]
        plain = not {"=", "{", "?", ","} & {*words[:-1]} and words.count(";") == 1 and words[-1] == ";"
        sums = code.text(first + 1) == "+" and code.text(first + 2) == "="
        return sums and plain and "++" not in words and "--" not in words and code.text(first) not in words

    def _number(self, name: str) -> str | None:
        """The type of a variable that the loop over tasks declares before this loop, if it is a plain number."""
        code = self.code
        for i in range(self.start - 1, self.around[0], -1):
            if code.text(i) == name and code.text(i + 1) in ("=", "{") and code.text(i - 1) in _NUMBERS:
                return code.text(i - 1)
        return None

    # --- what the body uses ---

    def _own(self, first: int, last: int, own: Collection[str]) -> bool:
        """Whether the code names nothing but parameters, its ``own`` variables, types, members and functions."""
        code = self.code
        for i in range(first, last):
            word = code.text(i)
            if code.tokens[i].kind != "word" or word in own or word in self.parameters or word in _NUMBERS:
                continue
            if code.text(i + 1) == "(" and re.search(rf"#\s*define\s+{word}\b", self.text):
                return False
            if code.text(i + 1) == "(" or code.text(i - 1) in (".", ">") or word in ("const", "if", "else"):
                continue
            return False
        return True

    def _declared(self, first: int, last: int) -> set[str]:
        """The variables that the body declares as plain numbers."""
        code = self.code
        return {
            code.text(i)
            for i in range(first, last)
            if code.text(i + 1) == "=" and code.text(i + 2) != "=" and code.text(i - 1) in _NUMBERS
        }

    def _keeps_own(self, first: int, last: int) -> bool:
        """Whether the body sets no parameter: the function would set only its own copy."""
        return not any(self._assigns(first, last, name) for name in self.parameters)

    def _assigns(self, first: int, last: int, name: str) -> bool:
        """Whether the code sets a variable with ``=``, ``+=``, ``++`` or a similar operator."""
        code = self.code
        for i in range(first, last):
            if code.text(i) != name:
                continue
            after = code.text(i + 1), code.text(i + 2)
            before = code.text(i - 2), code.text(i - 1)
            if after[0] == "=" and after[1] != "=":
                return True
            if after[0] in "+-*/%&|^" and (after[1] == "=" or after[0] == after[1] in ("+", "-")):
                return True
            if (
                after[0] in ("++", "--", "+=", "-=")
                or before[1] in ("++", "--")
                or before in (("+", "+"), ("-", "-"))
            ):
                return True
        return False

    def _spelled(self, first: int, last: int) -> str:
        """The code as it is written, on one line."""
        if first >= last:
            return ""
        tokens = self.code.tokens
        return " ".join(self.text[tokens[first].start : tokens[last - 1].end].split())


_HOW = "BLOCK, cte::disjoint"
