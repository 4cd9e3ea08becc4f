"""Which statement each ``#pragma ccc`` names: the one right after it, labels and attributes aside.

Diagnostics, besides those of `cccopt.source.pragmas`: CCC012 a pragma over nothing or over the wrong statement, CCC013
a path without any annotated loop. CCC015 is for two pragmas over one statement, CCC016 for a statement without an end,
CCC018 for a switch whose cases are not paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from cccopt.clauses import ITERATED, Kind
from cccopt.diagnostic import Diagnostic, Severity, error
from cccopt.source.functions import definition
from cccopt.source.lexer import Token, ccc_pragma
from cccopt.source.lines import LineMap
from cccopt.source.pragmas import CccPragma, SourceError, parse_pragma
from cccopt.source.restricted import restricted_around, restricted_of
from cccopt.source.statements import Code, OutOfSight, Unbalanced
from cccopt.source.switches import NoPath, groups
from cccopt.source.variables import in_pragma, places
from cccopt.text import Place

_UNROLL = re.compile(r"[ \t]*#[ \t]*pragma[ \t]+(unroll\b[^\r\n]*)")
_LOOPS = ("for", "while", "do")
_WANTED: Mapping[Kind, tuple[tuple[str, ...], str]] = {
    Kind.FOR: (_LOOPS, "a loop"),
    Kind.FOR_VARIABLE: (_LOOPS, "a loop"),
    Kind.WHILE: (_LOOPS, "a loop"),
    Kind.IF: (("if", "{"), "an `if` or a block in braces"),
    Kind.ELSE: (("else",), "an `else`"),
    Kind.SWITCH: (("switch",), "a `switch`"),
    Kind.RECURSIVE: ((), "the definition of a `__device__` function"),
    Kind.GRID: ((), "the definition of a `__global__` function"),
}
"""The keywords of what each pragma names, and what that is called."""
_SPACES = {Kind.RECURSIVE: "device", Kind.GRID: "global"}


@dataclass(frozen=True, slots=True)
class Unit:
    """The part of a translation unit that was lexed, its code, and the map back to the user's files."""

    tokens: Sequence[Token]
    code: Code
    lines: LineMap

    def place(self, index: int) -> Place:
        """The place of a code token."""
        return self.lines.place(self.code.tokens[index].start, self.code.text(index))


@dataclass(frozen=True, slots=True)
class Named:
    """A pragma and its statement, or one of the cases of its ``switch``.

    ``start``, ``head``, ``body``, ``body_end`` and ``end`` are code token indices. They belong to the statement; its
    keyword, brace or function's name; the body, branch, block or case's work; one past that; and one past what is
    marked (a ``do`` goes on after its body). ``label`` is the index of a case's label, else of the head, ``case`` the
    label's text. ``restricted`` are the positions of the kernel's ``__restrict__`` parameters, for the pragma of a
    marked loop. ``directives`` are the ``#pragma ccc`` line and the unroll pragmas that go with it.
    """

    pragma: CccPragma
    directive: Token
    unrolls: tuple[str, ...]
    directives: tuple[Token, ...]
    follows: bool
    start: int
    head: int
    body: int
    body_end: int
    end: int
    label: int
    case: str = ""
    restricted: tuple[int, ...] = ()

    def holds(self, other: Named) -> bool:
        """Whether ``other`` is in what this one marks."""
        return self is not other and self.body <= other.start < self.end


def all_named(unit: Unit, *, keep_going: bool = False) -> tuple[list[Named], tuple[Diagnostic, ...]]:
    """The pragmas with their statements, in file order, and the mistakes in those that ``keep_going`` leaves out.

    Raises `SourceError` with all mistakes, or `OutOfSight`. Without ``keep_going``, what follows from a mistake is not
    reported: paths whose loop is left out. A path of an included file that needs a loop is no mistake: another file may
    include it, too, and have the loop.
    """
    named, problems = _each_named(unit)
    if keep_going or not problems:
        strays = _strays(named)
        problems += [_without_loop(n, unit) for n in strays]
        named = [n for n in named if n not in strays]
    mistakes = tuple(dict.fromkeys(problems))
    errors = [m for m in mistakes if m.severity is Severity.ERROR]
    if errors and not keep_going:
        raise SourceError(*errors)
    return named, mistakes


def _each_named(unit: Unit) -> tuple[list[Named], list[Diagnostic]]:
    """Each pragma by itself: what the correct ones name, and the mistakes in the others."""
    named: list[Named] = []
    problems: list[Diagnostic] = []
    for run, following in _directive_runs(unit.tokens):
        pragmas = [t for t in run if ccc_pragma(t) is not None]
        try:
            if pragmas:
                made = _named(pragmas[0], following, unit)
                _check_alone(pragmas, made[0], named, unit)
                named += made
        except SourceError as mistake:
            problems += mistake.diagnostics
        except Unbalanced as found:
            if not unit.code.to_end:
                raise OutOfSight from None
            problems.append(_endless(pragmas[0], found.index, unit))
    return named, problems


def _strays(named: Sequence[Named]) -> Sequence[Named]:
    """The paths in a text without any annotated loop."""
    return [] if any(n.pragma.kind in ITERATED for n in named) else named


def _directive_runs(tokens: Sequence[Token]) -> Iterable[tuple[list[Token], int]]:
    """Each run of neighboring directives, with the code index of the token that follows it."""
    following = 0
    for is_run, group in groupby(tokens, lambda t: t.kind == "directive"):
        members = list(group)
        if is_run:
            yield members, following
        else:
            following += len(members)


def _check_alone(pragmas: list[Token], latest: Named, earlier: list[Named], unit: Unit) -> None:
    """Check that a statement has only one pragma; a label may be between two that name it."""
    before = [n.directive for n in earlier if n.head == latest.head]
    over_it = list(dict.fromkeys([*before, *pragmas]))
    if len(over_it) > 1:
        raise SourceError(_two_pragmas(over_it, unit))


def _named(directive: Token, following: int, unit: Unit) -> list[Named]:
    """What a pragma names: one statement, or the cases of one."""
    pragma = _parsed(directive, unit)
    if pragma.kind in _SPACES:
        named = [_function(pragma, directive, following, unit)]
    elif pragma.kind == Kind.SWITCH:
        named = _cases(pragma, directive, following, unit)
    else:
        named = [_statement(pragma, directive, following, unit)]
    _check_reductions(named[0], unit)
    return named


def _statement(pragma: CccPragma, directive: Token, following: int, unit: Unit) -> Named:
    code = unit.code
    if pragma.kind == Kind.ELSE:
        following = code.else_at(following)
    start, head = _head(pragma, directive, following, unit)
    word = code.text(head)
    body = _body(code, head)
    body_end = code.statement_end(body)
    end = code.statement_end(head) if word == "do" else body_end
    between = _directives_between(unit, following, start)
    unrolls = {t: m[1] for t in between if word in _LOOPS and (m := _UNROLL.fullmatch(t.text.rstrip()))}
    return Named(
        pragma,
        directive,
        tuple(unrolls.values()),
        (directive, *unrolls),
        start == following,
        start,
        head,
        body,
        body_end,
        end,
        head,
        restricted=restricted_around(code, start) if pragma.kind in ITERATED else (),
    )


def _head(pragma: CccPragma, directive: Token, following: int, unit: Unit) -> tuple[int, int]:
    """Where the statement and its keyword or brace are; raises `SourceError` if it is another statement."""
    code = unit.code
    start = following if pragma.kind == Kind.ELSE else code.unlabelled(following)
    head = code.after_attributes(start)
    word = code.text(head)
    begins = code.may_begin_statement(following)
    keywords, _ = _WANTED[pragma.kind]
    if not begins or word not in keywords or (word == "while" and code.do_of(head) is not None):
        raise SourceError(_wrong_statement(pragma, directive, head, begins, unit))
    return start, head


def _cases(pragma: CccPragma, directive: Token, following: int, unit: Unit) -> list[Named]:
    _, head = _head(pragma, directive, following, unit)
    try:
        found = [
            Named(
                pragma,
                directive,
                (),
                (directive,),
                False,
                g.label,
                head,
                g.start,
                g.end,
                g.end,
                g.label,
                g.text,
            )
            for g in groups(unit.code, head)
        ]
        if not found:
            raise NoPath(head, "no case of the `switch` does anything", "", "remove the pragma")
    except NoPath as problem:
        raise SourceError(_no_path(problem, directive, unit)) from None
    return found


def _function(pragma: CccPragma, directive: Token, following: int, unit: Unit) -> Named:
    code = unit.code
    found = definition(code, following)
    if found is None or _SPACES[pragma.kind] not in found.spaces:
        raise SourceError(_wrong_statement(pragma, directive, following, True, unit))
    end = code.after_bracket(found.body)
    restricted = restricted_of(code, following) if pragma.kind in ITERATED else ()
    return Named(
        pragma,
        directive,
        (),
        (directive,),
        False,
        following,
        found.name,
        found.body,
        end,
        end,
        found.name,
        restricted=restricted,
    )


def _body(code: Code, head: int) -> int:
    """Where the body, branch or block of the statement with the keyword or brace at ``head`` begins."""
    word = code.text(head)
    if word == "{":
        return head
    return head + 1 if word in ("do", "else") else code.after_head(head)


def _check_reductions(named: Named, unit: Unit) -> None:
    if not named.pragma.clauses.reductions:
        return
    for _, variable in named.pragma.clauses.reductions:
        if not list(places(unit.code, named.head, named.end, variable)):
            raise SourceError(_absent(variable, named, unit))


def _parsed(directive: Token, unit: Unit) -> CccPragma:
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
        "two `#pragma ccc` lines are above one statement",
        _pragma_place(pragmas[1], unit),
        help="keep one",
        notes=(("the first", _pragma_place(pragmas[0], unit)),),
    )


def _wrong_statement(pragma: CccPragma, directive: Token, head: int, begins: bool, unit: Unit) -> Diagnostic:
    word = unit.code.text(head)
    keywords, wanted = _WANTED[pragma.kind]
    help_text = f"write it on the line above {wanted}"
    found = f"`{word}`" if begins else "something that is not a statement"
    if word in ("", "}"):
        found = "nothing"
    elif not begins:
        help_text += ", inside the function"
    elif word == "while" and word in keywords:
        help_text = "write it above the `do`"
    elif word == "else":
        help_text = "write it above the `if`, or `#pragma ccc else` here"
    elif pragma.kind in _SPACES:
        help_text = f"write it on the line above {wanted}, before its first word"
    elif pragma.kind == Kind.ELSE:
        help_text = "write it above the `else`, or between it and its statement"
    return error(
        "CCC012",
        f"`#pragma ccc {pragma.kind}` applies to {wanted}, but is above {found}",
        _pragma_place(directive, unit),
        help=help_text,
        notes=(("this follows", unit.place(head)),) if word else (),
    )


def _absent(variable: str, named: Named, unit: Unit) -> Diagnostic:
    in_line = in_pragma(variable).search(named.directive.text[named.directive.text.index("reduce") :])
    assert in_line is not None
    offset = named.directive.start + named.directive.text.index("reduce") + in_line.start()
    return error(
        "CCC015",
        f"`reduce` names `{variable}`, which does not occur under the pragma",
        unit.lines.place(offset, variable),
        help="name variables that the annotated code updates",
        notes=(("this is annotated", unit.place(named.head)),),
    )


def _endless(directive: Token, index: int, unit: Unit) -> Diagnostic:
    return error(
        "CCC016",
        "the statement under this pragma has no end",
        _pragma_place(directive, unit),
        help="look for a missing bracket or semicolon",
        notes=(("not closed", unit.place(index)),) if index < len(unit.code.tokens) else (),
    )


def _no_path(problem: NoPath, directive: Token, unit: Unit) -> Diagnostic:
    return error(
        "CCC018",
        problem.problem,
        unit.place(problem.index),
        why=problem.why,
        help=problem.help,
        notes=(("annotated here", _pragma_place(directive, unit)),),
    )


def _without_loop(named: Named, unit: Unit) -> Diagnostic:
    place = _pragma_place(named.directive, unit)
    problem = error(
        "CCC013",
        f"`#pragma ccc {named.pragma.kind}` without an annotated loop",
        place,
        why="a path is collected over a loop's iterations, and no loop of this translation unit is annotated",
        help="write `#pragma ccc for` above the loop around it, or around the call of this function, or "
        "`#pragma ccc grid` above the kernel",
    )
    return problem if place.file == unit.lines.main else problem.as_warning()
