"""The source files of counted code: their line numbers and hashes, both without ``#pragma ccc`` lines.

    1  __global__ void f(int* p) {           1
    2  #pragma ccc for
    3    for (...)                           2

The right column is the line number in a run's file: annotations come and go, and the counts stay where they are.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from cccopt.diagnostic import CccError
from cccopt.files import encoded, read_text
from cccopt.profiling.run_file import BranchCount, FunctionRun, LineCount, LoopCount, RunFile
from cccopt.source.lexer import pragmas


@dataclass(frozen=True)
class Source:
    """The text of a source file."""

    text: str

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Its lines as compilers count them, without their ends."""
        return tuple(line.removesuffix("\r") for line in self.text.split("\n"))

    @cached_property
    def _annotations(self) -> tuple[int, ...]:
        """The numbers of the lines of ``#pragma ccc``, in order; a continued directive has several."""
        found: list[int] = []
        number, at = 1, 0
        for start, end in pragmas(self.text):
            number += self.text.count("\n", at, start)
            last = number + self.text.count("\n", start, end)
            # A directive may include the end of its line.
            found += range(number, last if self.text[end - 1] == "\n" else last + 1)
            number, at = last, end
        return tuple(found)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the text without its annotations."""
        annotations = set(self._annotations)
        kept = (line for n, line in enumerate(self.text.split("\n"), 1) if n not in annotations)
        return hashlib.sha256(encoded("\n".join(kept))).hexdigest()

    def numbered(self, line: int) -> int:
        """The number of ``line`` without annotations; for an annotation, that of the line after it."""
        return line - bisect_left(self._annotations, line)

    def shown(self, number: int) -> int:
        """The line of the text whose number without annotations is ``number``."""
        line = number
        while (now := number + bisect_right(self._annotations, line)) != line:
            line = now
        return line


def on_disk(files: Iterable[str]) -> dict[str, Source]:
    """The sources among ``files`` that can be read, by their names."""
    found: dict[str, Source] = {}
    for name in files:
        try:
            found[name] = Source(read_text(name))
        except CccError:
            continue
    return found


def files_of(functions: Iterable[FunctionRun]) -> tuple[str, ...]:
    """The files that the counts of ``functions`` name, in their order."""
    found: dict[str, None] = {}
    for function in functions:
        for counts in (function.lines, function.branches, function.loops):
            found |= dict.fromkeys(count.file for count in counts)
    return tuple(found)


def with_sources(run: RunFile, sources: Mapping[str, Source]) -> RunFile:
    """Renumber the lines of ``run``, which have the compiler's numbers, so that annotations do not count, and add the
    hashes of the ``sources``.
    """
    functions = tuple(
        replace(
            function,
            lines=_numbered(function.lines, sources),
            branches=_numbered(function.branches, sources),
            loops=_numbered(function.loops, sources),
        )
        for function in run.functions
    )
    named = {name: sources[name].digest for name in files_of(functions) if name in sources}
    return replace(run, functions=functions, sources={**run.sources, **named})


_C = TypeVar("_C", LineCount, BranchCount, LoopCount)


def _numbered(counts: Iterable[_C], sources: Mapping[str, Source]) -> tuple[_C, ...]:
    return tuple(
        replace(c, line=sources[c.file].numbered(c.line)) if c.file in sources else c for c in counts
    )
