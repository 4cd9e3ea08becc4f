"""The CUDA source line that each statement comes from, according to ``.loc`` and ``.file`` (PTX ISA 9.0, 11.5).

A ``.loc`` holds until the next one, so the line of a statement depends on what comes before it in the text.
"""

from __future__ import annotations

from typing import NamedTuple

from cccopt.ptx.ir import Directive, Function, Location, Module


class SourceLine(NamedTuple):
    """A line and column in CUDA source; ``line`` and ``column`` count from 1 (column 0: the whole line)."""

    file: str
    line: int
    column: int


def source_files(module: Module) -> dict[int, str]:
    """The path of each file number that ``module`` declares with ``.file``."""
    return {
        int(item.arguments[0]): item.arguments[1][1:-1]
        for item in module.items
        if isinstance(item, Directive) and item.name == ".file"
    }


def source_lines(module: Module, function: Function) -> tuple[SourceLine | None, ...]:
    """The source line of each statement of ``function``'s body, None if it is not known."""
    return tuple(chain[0] if chain else None for chain in source_chains(module, function))


def source_chains(module: Module, function: Function) -> tuple[tuple[SourceLine, ...], ...]:
    """For each statement: its source line, the call that it was inlined at, and so on outwards; empty if not known."""
    files = source_files(module)
    known: dict[tuple[int, int, int], tuple[SourceLine, ...]] = {}
    chains: list[tuple[SourceLine, ...]] = []
    current: tuple[SourceLine, ...] = ()
    for statement in function.body or ():
        if isinstance(statement, Location):
            current = _chain(statement, files, known)
        chains.append(current)
    return tuple(chains)


def _chain(
    location: Location, files: dict[int, str], known: dict[tuple[int, int, int], tuple[SourceLine, ...]]
) -> tuple[SourceLine, ...]:
    at = (location.file, location.line, location.column)
    if location.line == 0 or location.file not in files:
        return ()
    callers: tuple[SourceLine, ...] = ()
    if location.inlined_at is not None:
        # The call itself has an earlier `.loc`, which says what the call was inlined into.
        file, line, column = location.inlined_at
        outer = (SourceLine(files[file], line, column),) if file in files else ()
        callers = known.get(location.inlined_at, outer)
    known[at] = (SourceLine(files[location.file], location.line, location.column), *callers)
    return known[at]
