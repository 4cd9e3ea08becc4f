"""The samples: the host program and numpy agree, and the references are right by another way."""

from __future__ import annotations

import shutil
import subprocess
from collections import deque
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import cast

import numpy as np
import pytest

from cccopt.harness import workload

NVCC = shutil.which("nvcc")


def module(name: str) -> ModuleType:
    return cast(ModuleType, workload.load(name).workload)


@pytest.mark.nvcc
@pytest.mark.skipif(NVCC is None, reason="no nvcc on PATH")
def test_host_program_and_numpy_generate_the_same_graph(tmp_path: Path) -> None:
    program = tmp_path / "agreement"
    samples = workload.load("bfs").source.parent
    command = [
        str(NVCC),
        "-w",
        "-I",
        str(samples),
        str(Path(__file__).with_name("agreement.cu")),
        "-o",
        str(program),
    ]
    subprocess.run(command, check=True)
    for scale, edge_factor, seed in ((1, 1, 0), (5, 3, 7), (9, 8, 4294967295)):
        printed = subprocess.run(
            [program, str(scale), str(edge_factor), str(seed)], check=True, capture_output=True, text=True
        ).stdout.split("\n")
        row, neighbours, weights = module("bfs").rmat(module("bfs").graph500(scale, edge_factor, seed))
        assert int(printed[0]) == np.argmax(np.diff(row))
        assert printed[1].split() == [str(x) for x in row]
        assert printed[2].split() == [str(x) for x in neighbours]
        assert printed[3].split() == [str(x) for x in weights]


def test_shuffle_of_the_vertices_is_a_permutation() -> None:
    for scale in (1, 2, 7, 10):
        shuffled = module("bfs")._shuffled(np.arange(1 << scale, dtype=np.uint32), scale, 3)
        assert sorted(shuffled) == list(range(1 << scale))


def test_bfs_reference_is_what_a_queue_finds() -> None:
    inputs = workload.load("bfs").inputs("small", 5)
    row, neighbours, levels = (np.asarray(inputs[k]) for k in ("row", "neighbours", "levels"))
    found = levels.copy()
    queue = deque([int(np.argmax(levels))])
    while queue:
        v = queue.popleft()
        for u in neighbours[row[v] : row[v + 1]]:
            if found[u] < 0:
                found[u] = found[v] + 1
                queue.append(int(u))
    expected = module("bfs").reference(inputs)
    assert (found > 0).sum() > 100
    np.testing.assert_array_equal(expected["levels"], found)
    assert module("bfs").check({"levels": found}, expected) == ""
    found[3] += 1
    assert "levels[3]" in module("bfs").check({"levels": found}, expected)


def fused(x: np.float32, steps: int) -> np.float32:
    """x * 1.0001f + 0.5f with one rounding, in exact arithmetic."""
    factor = Fraction(float(np.float32(1.0001)))
    for _ in range(steps):
        exact = Fraction(float(x)) * factor + Fraction(1, 2)
        below = np.float32(float(exact))
        near = [np.nextafter(below, np.float32(0)), below, np.nextafter(below, np.float32(np.inf))]
        x = min(near, key=lambda y: (abs(Fraction(float(y)) - exact), int(y.view(np.uint32)) & 1))
    return x


def test_sensitivity_reference_rounds_once() -> None:
    sample = module("sensitivity")
    expected = sample.reference(sample.inputs("small", 1))
    for n, k in ((80, 4), (5, 16)):
        cells = expected[f"cells N={n} k={k}"]
        written = np.flatnonzero(cells)
        draws = sample.hash32(np.arange(1 << 12, dtype=np.uint32)) & 31
        np.testing.assert_array_equal(written, np.flatnonzero(draws < k))
        for cell in written[:40]:
            assert cells[cell] == fused(np.float32(cell), n)


def test_sensitivity_check_compares_bits() -> None:
    sample = module("sensitivity")
    expected = sample.reference(sample.inputs("small", 1))
    result = {name: cells.copy() for name, cells in expected.items()}
    assert sample.check(result, expected) == ""
    name = "cells N=5 k=16"
    cell = int(np.flatnonzero(result[name])[0])
    result[name][cell] = np.nextafter(result[name][cell], np.float32(0))
    assert f"1 wrong {name}; cell {cell}" in sample.check(result, expected)
