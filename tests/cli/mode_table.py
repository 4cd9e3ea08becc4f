"""The table of modes in docs/nvcc-modes.md: one row a mode, one column for each nvcc that it was run with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from tests.cli.mode_runner import DIFFERENCES, REFUSED, Mode

Cells = tuple[str, str, str]

_BEGIN, _END = "<!-- made by `python -m tests.cli.modes --write` -->\n", "<!-- end -->\n"
_NO_RESULT = ""


def cell(cells: Cells) -> str:
    """The three findings of a mode as they stand in the table."""
    return cells[0] if len(set(cells)) == 1 else " / ".join(cells)


def results(page: str) -> dict[str, dict[str, str]]:
    """What the page says: mode -> version -> cell."""
    rows = [_split(line) for line in _made(page).splitlines() if line.startswith("|")]
    if not rows:
        return {}
    versions = rows[0][2:-1]
    return {row[0]: dict(zip(versions, row[2:-1], strict=True)) for row in rows[2:]}


def with_results(page: str, modes: Sequence[Mode], version: str, found: Mapping[str, Cells]) -> str:
    """``page`` with a row for each of ``modes``, and ``found`` in the column of nvcc ``version``."""
    old = results(page)
    versions = sorted({version, *(v for row in old.values() for v in row)}, key=_number)
    new: dict[str, dict[str, str]] = {}
    for mode in modes:
        new[mode.name] = {v: old.get(mode.name, {}).get(v, _NO_RESULT) for v in versions}
        if mode.name in found:
            new[mode.name][version] = cell(found[mode.name])
    return page.replace(_BEGIN + _made(page) + _END, _BEGIN + generated(modes, new) + _END)


def generated(modes: Sequence[Mode], found: Mapping[str, Mapping[str, str]]) -> str:
    """The part of the page that is made from the list of modes and what was found."""
    versions = list(next(iter(found.values())))
    lines = [_row(["mode", "commands", *versions, "may differ"]), _row(["---"] * (3 + len(versions)))]
    lines += [_row([m.name, _commands(m), *(found[m.name][v] for v in versions), _remarks(m)]) for m in modes]
    differences = [f"* *{name}*: {meaning}" for name, (meaning, _) in DIFFERENCES.items()]
    refused = [f"* {mode.name}: {_commands(mode)}" for mode in modes if mode.annotated == REFUSED]
    return "\n".join(
        [
            "",
            *lines,
            "",
            "What may differ, where the last column says so:",
            "",
            *differences,
            "",
            f"Refused ({REFUSED}) for a file with annotations that are not `off`, unless `--ccc=off` is given:",
            "",
            *refused,
            "",
            "",
        ]
    )


def _made(page: str) -> str:
    found = re.search(f"{re.escape(_BEGIN)}(.*){re.escape(_END)}", page, re.DOTALL)
    assert found is not None, "the page has lost the place of its table"
    return found[1]


def _commands(mode: Mode) -> str:
    return "<br>".join(f"`{command}`" for command in mode.commands)


def _remarks(mode: Mode) -> str:
    return "; ".join([*(f"*{name}*" for name in mode.may_differ), *filter(None, [mode.note])])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _split(line: str) -> list[str]:
    return [part.strip() for part in line.strip().strip("|").split(" | ")]


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
