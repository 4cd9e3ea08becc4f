"""Annotations of CUDA kernels, true and false ones, checked from their sources."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cccopt.checking import Checked, check
from cccopt.driver import marked_ptx
from cccopt.harness.check import check_sample
from cccopt.harness.workload import load

SOURCE = Path(__file__).parent / "cuda" / "words.cu"
N = 1000


@pytest.fixture(scope="module")
def marked() -> str:
    return marked_ptx(SOURCE, nvcc_options=("-lineinfo",))


def expected() -> dict[str, set[int]]:
    """For each kernel the lines that say that they conflict."""
    found: dict[str, set[int]] = {}
    for number, line in enumerate(SOURCE.read_text().split("\n"), 1):
        if line.startswith("KERNEL "):
            name = line.split()[1].partition("(")[0]
            found[name] = set()
        if line.endswith("// conflict"):
            found[name].add(number)
    return found


def run(marked: str, kernel: str) -> Checked:
    values = np.random.default_rng(1).integers(0, 2**32, N, dtype=np.uint32)
    return check(marked, kernel, grid=1, block=64, args=[N, values, np.zeros(2 * N, np.uint32)])


@pytest.mark.nvcc
@pytest.mark.parametrize("kernel", expected())
def test_conflicts_are_at_their_lines(kernel: str, marked: str) -> None:
    found = run(marked, kernel)
    lines = {a.place.position.line for f in found.conflicts for a in (f.first, f.second)}
    assert lines == expected()[kernel]
    assert {a.place.file for f in found.findings for a in (f.first, f.second)} <= {str(SOURCE)}
    assert found.iterations > 0


@pytest.mark.nvcc
def test_arguments_go_by_their_numbers(marked: str) -> None:
    (conflict,) = run(marked, "counters").conflicts
    assert conflict.where.endswith(" of argument 2")


@pytest.mark.nvcc
def test_annotations_of_a_sample_with_atomics_are_true() -> None:
    found = check_sample(load("sssp"), "small")
    assert (found.findings, found.launches) == ((), 14)
    assert found.iterations > 10_000


@pytest.mark.nvcc
def test_meetings_of_a_sample_go_by_its_names() -> None:
    found = check_sample(load("bfs"), "small")
    assert found.conflicts == ()
    flag, same = "one iteration loads a flag that another stores", "iterations store the same value"
    assert {f.kind for f in found.meetings} == {flag, same}
    assert {f.loop.pragma for f in found.meetings} == {"for", "for variable"}
    assert {f.where.partition("(")[2] for f in found.meetings} == {"`levels`)", "`changed`)"}
    assert {Path(f.first.place.file).name for f in found.meetings} == {"bfs.cu"}
    assert all(f.label.startswith("level ") for f in found.meetings)
