"""Which statement each ``#pragma ccc`` names: the one right behind it, labels and attributes aside.

Diagnostics, besides those of `cccopt.source.pragmas`: CCC012 a pragma over nothing or over the wrong
statement, CCC013 a path without any annotated loop, CCC015 two pragmas over one statement, CCC016 a statement
without an end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from cccopt.diagnostic import Diagnostic, error
from cccopt.source.lexer import Token, ccc_pragma
from cccopt.source.lines import LineMap
from cccopt.source.pragmas import Pragma, SourceError, parse_pragma
from cccopt.source.statements import Code, OutOfSight, Unbalanced
from cccopt.text import Place

_UNROLL = re.compile(r"[ \t]*#[ \t]*pragma[ \t]+(unroll\b[^\r\n]*)")
_WANTED = {"for": ("for",), "for variable": ("for",), "if": ("if", "{")}


@dataclass(frozen=True, slots=True)
class Unit:
    """What was lexed of a translation unit, its code, and the way back to the user's files."""

    tokens: Sequence[Token]
    code: Code
    lines: LineMap

    def place(self, index: int) -> Place:
        """The place of a code token."""
        return self.lines.place(self.code.tokens[index].start, self.code.text(index))


@dataclass(frozen=True, slots=True)
class Named:
    """A pragma and its statement. ``start``, ``head``, ``body`` and ``end`` are code token indices: the
    statement, its keyword or brace, the loop body, then-branch or block, and one past that. ``directives``
    are the ``#pragma ccc`` line and the unroll pragmas that go with it."""

    pragma: Pragma
    directive: Token
    unrolls: tuple[str, ...]
    directives: tuple[Token, ...]
    follows: bool
    start: int
    head: int
    body: int
    end: int

    def holds(self, other: Named) -> bool:
        """Whether ``other`` lies in what this one marks."""
        return self is not other and self.body <= other.start < self.end


def all_named(unit: Unit) -> list[Named]:
    """Every pragma with its statement, in file order; raises `SourceError` with all mistakes, or `OutOfSight`."""
    named: list[Named] = []
    problems: list[Diagnostic] = []
    for run, following in _directive_runs(unit.tokens):
        pragmas = [t for t in run if ccc_pragma(t) is not None]
        try:
            if pragmas:
                named.append(_named(pragmas[0], following, unit))
                _check_alone(pragmas, named, unit)
        except SourceError as mistake:
            problems += mistake.diagnostics
        except Unbalanced as found:  # in attributes or behind `case`
            if not unit.code.to_end:
                raise OutOfSight from None
            problems.append(_endless(pragmas[0], found.index, found.index, unit))
    if not problems and not any(n.pragma.kind == "for" for n in named):
        problems = [_stray(n, unit) for n in named]
    if problems:
        raise SourceError(*dict.fromkeys(problems))
    return named


def _directive_runs(tokens: Sequence[Token]) -> Iterable[tuple[list[Token], int]]:
    """Neighbouring directives, with the code index of the token that follows them."""
    following = 0
    for is_run, group in groupby(tokens, lambda t: t.kind == "directive"):
        members = list(group)
        if is_run:
            yield members, following
        else:
            following += len(members)


def _check_alone(pragmas: list[Token], named: list[Named], unit: Unit) -> None:
    """One statement has one pragma; a label may stand between two that name it."""
    latest = named[-1]
    over_it = [n.directive for n in named if n.head == latest.head] + pragmas[1:]
    if len(over_it) > 1:
        raise SourceError(_two_pragmas(over_it, unit))


def _named(directive: Token, following: int, unit: Unit) -> Named:
    pragma, code = _parsed(directive, unit), unit.code
    start = code.unlabelled(following)
    head = code.after_attributes(start)
    word = code.text(head)
    begins = code.may_begin_statement(following)
    if not begins or word not in _WANTED[pragma.kind]:
        raise SourceError(_wrong_statement(pragma, directive, head, begins, unit))
    try:
        body = head if word == "{" else code.after_head(head)
        end = code.statement_end(body)
    except Unbalanced as found:
        if not code.to_end:
            raise OutOfSight from None
        raise SourceError(_endless(directive, head, found.index, unit)) from None
    between = _directives_between(unit, following, start)
    unrolls = {t: m[1] for t in between if word == "for" and (m := _UNROLL.fullmatch(t.text.rstrip()))}
    return Named(
        pragma,
        directive,
        tuple(unrolls.values()),
        (directive, *unrolls),
        start == following,
        start,
        head,
        body,
        end,
    )


def _parsed(directive: Token, unit: Unit) -> Pragma:
    offset = ccc_pragma(directive)
    assert offset is not None
    body = directive.text[offset - directive.start :]
    return parse_pragma(body, lambda at, word: unit.lines.place(offset + at, word))


def _directives_between(unit: Unit, following: int, start: int) -> list[Token]:
    """Directives between the token before ``following`` and the statement at ``start``."""
    low = unit.code.tokens[following - 1].end if following else 0
    high = unit.code.tokens[start].start
    return [t for t in unit.tokens if t.kind == "directive" and low <= t.start < high]


def _pragma_place(directive: Token, unit: Unit) -> Place:
    offset = ccc_pragma(directive)
    assert offset is not None
    return unit.lines.place(offset, "ccc")


def _two_pragmas(pragmas: list[Token], unit: Unit) -> Diagnostic:
    return error(
        "CCC015",
        "two `#pragma ccc` lines stand over one statement",
        _pragma_place(pragmas[1], unit),
        help="keep one",
        notes=(("the first", _pragma_place(pragmas[0], unit)),),
    )


def _wrong_statement(pragma: Pragma, directive: Token, head: int, begins: bool, unit: Unit) -> Diagnostic:
    word = unit.code.text(head)
    wanted = "a `for` loop" if pragma.kind != "if" else "an `if` or a block in braces"
    help_text = f"write it on the line above {wanted}"
    found = f"`{word}`" if begins else "what is no statement"
    if word in ("", "}"):
        found = "nothing"
    elif not begins:
        help_text += ", inside the function"
    if begins and word in ("while", "do") and pragma.kind != "if":
        help_text = "write the loop as a `for`"
    if begins and word == "else":
        help_text = "write it above the `if`, or behind `else` above a nested `if` or block"
    return error(
        "CCC012",
        f"`#pragma ccc {pragma.kind}` names {wanted}, but stands over {found}",
        _pragma_place(directive, unit),
        help=help_text,
        notes=(("this follows", unit.place(head)),) if word else (),
    )


def _endless(directive: Token, head: int, index: int, unit: Unit) -> Diagnostic:
    return error(
        "CCC016",
        f"the `{unit.code.text(head)}` under this pragma has no end",
        _pragma_place(directive, unit),
        help="look for a missing bracket or semicolon",
        notes=(("not closed", unit.place(index)),) if index < len(unit.code.tokens) else (),
    )


def _stray(named: Named, unit: Unit) -> Diagnostic:
    return error(
        "CCC013",
        f"`#pragma ccc {named.pragma.kind}` without an annotated loop",
        _pragma_place(named.directive, unit),
        why="a path is collected over a loop's iterations, and no loop of this translation unit is annotated",
        help="write `#pragma ccc for` above the loop around it, or around the call of this function",
    )
