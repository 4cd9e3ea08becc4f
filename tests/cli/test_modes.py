"""Every mode of nvcc, run by plain nvcc and by ``ccc-nvcc``; docs/nvcc-modes.md says what is to be found."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cccopt.toolchain.discovery import find_nvcc
from tests.cli import mode_table
from tests.cli.mode_runner import Mode, examine, nvcc_help
from tests.cli.modes import LEFT_OUT, MODES, PAGE

# Options that take their value without a blank.
_JOINED = re.compile(r"-[DO](?=.)")


def recorded() -> dict[str, dict[str, str]]:
    return mode_table.results(PAGE.read_text(encoding="utf-8"))


@pytest.mark.nvcc
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name.replace(" ", "-"))
def test_the_mode(mode: Mode, tmp_path: Path) -> None:
    finding = examine(mode, tmp_path)
    assert not finding.problems, "\n".join(finding.problems)
    column = recorded()[mode.name]
    assert mode_table.cell(finding.cells) == column.get(find_nvcc().version, mode_table.cell(finding.cells))


def test_the_table_has_a_row_for_each_mode_and_a_result_for_each_nvcc() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = [mode.name for mode in MODES]
    assert len(set(names)) == len(names)
    assert mode_table.generated(MODES, recorded()) in page
    assert all(cell for row in recorded().values() for cell in row.values())


@pytest.mark.nvcc
def test_every_option_of_nvcc_has_a_row_or_a_reason() -> None:
    if find_nvcc().version not in next(iter(recorded().values())):
        pytest.skip("the table knows nothing of this nvcc")
    used = set()
    for mode in MODES:
        texts = [*mode.steps, *(value for _, value in mode.environment)]
        for word in (word for text in texts for word in shlex.split(text) if word.startswith("-")):
            used.add("-" + word.split("=")[0].lstrip("-"))
            used |= set(_JOINED.findall(word))
    options = re.findall(r"^--(\S+).*\((-\S+)\)\s*$", nvcc_help(), re.MULTILINE)
    assert len(options) > 100
    assert [
        f"--{long}"
        for long, short in options
        if not {f"-{long}", short} & used and f"--{long}" not in LEFT_OUT
    ] == []


def test_a_result_goes_into_its_own_column() -> None:
    old = mode_table.with_results(
        PAGE.read_text(encoding="utf-8"), MODES[:2], "1.2.3", {MODES[0].name: ("a", "b", "c")}
    )
    first, second = mode_table.results(old).values()
    assert first["1.2.3"] == "a / b / c"
    assert second["1.2.3"] == ""
    new = mode_table.with_results(old, MODES[:2], "1.2.10", {MODES[1].name: ("same", "same", "same")})
    first, second = mode_table.results(new).values()
    assert list(first)[:2] == ["1.2.3", "1.2.10"]
    assert (first["1.2.3"], first["1.2.10"], second["1.2.10"]) == ("a / b / c", "", "same")
