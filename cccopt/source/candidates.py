"""Where annotations could be: pragmas above each loop and branch of a text that nobody has annotated.

    __global__ void f(int n) {              #pragma ccc grid
      for (...)                   becomes   __global__ void f(int n) {
        if (c) S else T                     #pragma ccc while
    }                                         for (...)
                                            #pragma ccc if
                                                if (c) S
                                            #pragma ccc else
                                                else T
                                            }

`cccopt advise` compiles the text with all of them, and tries each selection on the PTX. Only the user's own functions
that run on the device get any: not those in headers of the system and the toolkit, nor functions that hold a pragma of
ours, which is removed. Loops with literal bounds, which nvcc unrolls, loops and branches that only jump
(``if (i >= n) return;``), and what the compiler decides (``if constexpr``) are left out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cccopt.clauses import Kind
from cccopt.source.annotate import Annotated, annotate
from cccopt.source.functions import Definition, definition
from cccopt.source.lexer import ccc_pragma, tokens
from cccopt.source.outside import Outside
from cccopt.source.statements import Code, Unbalanced
from cccopt.source.strip import blank

_MARKER = re.compile(
    r'^[ \t]*#[ \t]*(?:line[ \t]+)?(?P<line>\d+)[ \t]+(?P<file>"(?:[^"\\\n]|\\.)*")(?P<flags>[ \d]*)$',
    re.MULTILINE,
)
# The line-marker flags of files that are entered and of system headers (The C Preprocessor, "Preprocessor Output").
_ENTERED, _SYSTEM = "1", "3"
_TOOLKIT = '/cuda_runtime.h"'
_SPACES = frozenset({"global", "device", "__global__", "__device__"})
_BEFORE_DECLARATION = frozenset({";", "{", "}", ":", ""})
_JUMPS = frozenset({"return", "break", "continue", "goto"})
_LOOPS = frozenset({"for", "while", "do"})
_CONSTANT = frozenset({"constexpr", "consteval"})


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A possible pragma: its ``kind``, and the ``index`` of the code token that it would be above."""

    index: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The text from ``offset`` to ``end`` comes from ``file``, quoted as in its marker, from ``line`` onwards."""

    offset: int
    end: int
    file: str
    line: int


FIRST = 1_000_001
"""The number of the first candidate, so large that a profile of candidates fits no annotations."""


def annotated_with_candidates(text: str, name: str) -> Annotated:
    """``text`` with markers for all candidates and nothing else; numbers begin at `FIRST`. There are no warnings, since
    nobody wrote these pragmas: those for which nothing can be marked are left out.
    """
    return replace(annotate(with_candidates(text, name), name, keep_going=True, first=FIRST), warnings=())


def with_candidates(text: str, name: str) -> str:
    """``text``, a translation unit as nvcc preprocesses it, with the pragmas of all candidates in place of its own;
    ``name`` is its file's name unless a line marker gives a better one.
    """
    return _with_pragmas(text, name, None)


def with_pragmas_at(text: str, name: str, pragmas: Mapping[int, str]) -> str:
    """``text`` with ``pragmas`` at candidates, in addition to its own: what follows ``#pragma ccc``, by the number of
    the candidate in the order of the text, from 0.
    """
    return _with_pragmas(text, name, pragmas)


def _with_pragmas(text: str, name: str, pragmas: Mapping[int, str] | None) -> str:
    """``text`` with its candidates' pragmas, or with those in ``pragmas`` and its own."""
    stretches = _own_stretches(text, name)
    lexed = [t for stretch in stretches for t in tokens(text, stretch.offset, stretch.end)]
    code = Code([t for t in lexed if t.kind != "directive"])
    own = [t for t in lexed if ccc_pragma(t) is not None]
    starts = [stretch.offset for stretch in stretches]
    edits = [(t.start, t.end, blank(t.text)) for t in own] if pragmas is None else []
    for number, candidate in enumerate(_candidates(code, [t.start for t in own])):
        pragma = str(candidate.kind) if pragmas is None else pragmas.get(number)
        if pragma is None:
            continue
        offset = code.tokens[candidate.index].start
        stretch = stretches[bisect_right(starts, offset) - 1]
        line = stretch.line + text.count("\n", stretch.offset, offset)
        edits.append((offset, offset, f"\n#pragma ccc {pragma}\n# {line} {stretch.file}\n"))
    pieces: list[str] = []
    done = 0
    for start, end, new in sorted(edits):
        pieces += [text[done:start], new]
        done = end
    return "".join([*pieces, text[done:]])


def _own_stretches(text: str, name: str) -> list[_Stretch]:
    """The text from the user's own files, in order. A marker in a raw string or comment does not count."""
    outside = Outside(text)
    markers = [m for m in _MARKER.finditer(text) if outside.begins(m.start())]
    if not markers:
        return [_Stretch(0, len(text), '"{}"'.format(name.replace("\\", r"\\").replace('"', r"\"")), 1)]
    folders = {m["file"][1 : -len(_TOOLKIT)] for m in markers if m["file"].endswith(_TOOLKIT)}
    foreign = ("<", *filter(None, folders))
    # A user's or CUDA macro that is expanded in a system header has markers without the flag, and a system macro that
    # is expanded in a user's file has some with it. So what counts is how a file is entered.
    system = {m["file"] for m in markers if {_ENTERED, _SYSTEM} <= set(m["flags"].split())}
    ends = [m.start() for m in markers[1:]] + [len(text)]
    return [
        _Stretch(m.end() + 1, end, m["file"], int(m["line"]))
        for m, end in zip(markers, ends, strict=True)
        if _SYSTEM not in m["flags"].split()
        and m["file"] not in system
        and not m["file"].startswith(foreign, 1)
    ]


def _candidates(code: Code, annotated: Sequence[int]) -> Iterator[_Candidate]:
    """The candidates in functions with an execution space; a loop over blocks may contain all of a kernel's code."""
    done, start = 0, -1
    for specifier, token in enumerate(code.tokens):
        if token.text not in _SPACES or specifier < done:
            continue
        before, start = start, declaration_at(code, specifier)
        if start == before:
            continue  # another specifier of a declaration that defines no function
        try:
            found = definition(code, start)
            end = code.after_bracket(found.body) if found is not None else 0
        except Unbalanced:
            continue
        if found is None:
            continue
        done = end
        if _is_annotated(code, start, end, annotated) or not _CONSTANT.isdisjoint(_words(code, start, found)):
            continue
        if "global" in found.spaces:
            yield _Candidate(start, Kind.GRID)
        elif _calls_itself(code, found, end):
            yield _Candidate(start, Kind.RECURSIVE)
        yield from _statements(code, found.body + 1, end - 1)


def declaration_at(code: Code, specifier: int) -> int:
    """Where the declaration that a specifier is part of begins."""
    index = specifier
    while code.text(index - 1) not in _BEFORE_DECLARATION or (
        code.text(index - 1) == ":" and code.text(index - 2) == ":"
    ):
        index = min(code.partners.get(index - 1, index - 1), index - 1)
    return index


def _words(code: Code, start: int, found: Definition) -> set[str]:
    return {code.text(index) for index in range(start, found.body)}


def _is_annotated(code: Code, start: int, end: int, pragmas: Sequence[int]) -> bool:
    first = code.tokens[start - 1].end if start else 0
    return any(first <= pragma < code.tokens[end - 1].end for pragma in pragmas)


def _calls_itself(code: Code, found: Definition, end: int) -> bool:
    return code.text(found.name) in {code.text(index) for index in range(found.body, end)}


def _statements(code: Code, start: int, end: int) -> Iterator[_Candidate]:
    for index in range(start, end):
        word = code.text(index)
        if word not in (*_LOOPS, "if", "switch") or not code.may_begin_statement(index):
            continue
        try:
            if word == "if":
                yield from _branches(code, index)
            elif word == "switch":
                yield _Candidate(index, Kind.SWITCH)
            elif _is_loop_of_tasks(code, index):
                yield _Candidate(index, Kind.WHILE)
        except Unbalanced:
            return


def _branches(code: Code, index: int) -> Iterator[_Candidate]:
    """An ``if`` and its ``else``, unless that leads to another ``if``, whose branches are candidates themselves."""
    if code.text(index + 1) in ("constexpr", "consteval", "!"):
        return
    body = code.after_head(index)
    if _does_nothing(code, body):
        return
    yield _Candidate(index, Kind.IF)
    after = code.statement_end(body)
    if code.text(after) == "else" and code.text(after + 1) != "if" and not _does_nothing(code, after + 1):
        yield _Candidate(after, Kind.ELSE)


def _does_nothing(code: Code, body: int) -> bool:
    """Whether the statement at ``body`` only jumps, or is empty."""
    while code.text(body) == "{":
        body += 1
    return code.text(body) in _JUMPS or code.text(body) in (";", "}")


def _is_loop_of_tasks(code: Code, index: int) -> bool:
    if code.text(index) == "do":
        return not _does_nothing(code, index + 1)
    if code.text(index) == "while":
        return code.do_of(index) is None and not _does_nothing(code, code.after_head(index))
    return not _has_literal_bounds(code, index) and not _does_nothing(code, code.after_head(index))


def _has_literal_bounds(code: Code, index: int) -> bool:
    """Whether the ``for`` at ``index`` begins and ends at literals: ``(int k = 0; k < 4; ++k)``."""
    head = [code.text(i) for i in range(index + 2, code.after_head(index) - 1)]
    parts = " ".join(head).split(" ; ")
    if len(parts) != 3:
        return False
    begin, bound, _ = (part.split() for part in parts)
    return all(part and part[-1][0].isdigit() and part[-2:-1] != ["+"] for part in (begin, bound))
