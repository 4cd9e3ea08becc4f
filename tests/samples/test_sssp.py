"""Shortest paths, and the graphs that kernels make for them and for breadth-first search."""

from __future__ import annotations

import heapq
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

from cccopt.emulator import Program
from cccopt.harness import workload
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings
from tests.samples.peers import plain_and_peer, ptx_of


def module(name: str) -> ModuleType:
    return cast(ModuleType, workload.load(name).workload)


def dijkstra(inputs: Any) -> np.ndarray[Any, Any]:
    row, neighbours, weights = (inputs[name] for name in ("row", "neighbours", "weights"))
    costs = np.full(len(row) - 1, module("sssp").UNREACHED)
    heap = [(0, int(np.argmax(inputs["mask"])))]
    while heap:
        cost, v = heapq.heappop(heap)
        if cost >= costs[v]:
            continue
        costs[v] = cost
        for k in range(row[v], row[v + 1]):
            heapq.heappush(heap, (cost + int(weights[k]), int(neighbours[k])))
    return costs


def test_reference_is_what_dijkstra_finds() -> None:
    inputs = workload.load("sssp").inputs("small", 5)
    expected = module("sssp").reference(inputs)
    costs = dijkstra(inputs)
    np.testing.assert_array_equal(expected["costs"], costs)
    assert np.count_nonzero(costs == module("sssp").UNREACHED) > 100
    assert costs[costs != module("sssp").UNREACHED].max() > 64
    assert module("sssp").check({"costs": costs}, expected) == ""
    costs[3] -= 1
    assert "1 wrong costs; costs[3]" in module("sssp").check({"costs": costs}, expected)


@pytest.mark.nvcc
@pytest.mark.parametrize(("name", "lists"), [("bfs", ("neighbours",)), ("sssp", ("neighbours", "weights"))])
def test_kernels_make_the_graph_that_numpy_makes(name: str, lists: tuple[str, ...], tmp_path: Path) -> None:
    bfs = module("bfs")
    graph = bfs.livejournal(7)._replace(scale=9, vertices=301, edges=3001)
    sample = workload.load(name)
    program = Program(ptx_of(sample.source, tmp_path), name)
    state = workload.base_state(module(name).search(graph, 2, made_here=False))
    for launch in sample.setup(state):
        program.launch(launch.kernel, launch.grid, launch.block, launch.arguments)
    expected = workload.base_state(module(name).search(graph, 2))
    degrees = np.diff(np.asarray(expected["row"]))
    ordinary = min(v for v in range(graph.vertices) if 301 * degrees[v] >= 3001)
    for key in {"levels", "mask", "costs", "updating"} & expected.keys():
        values = np.asarray(expected[key])
        values[[ordinary, np.argmax(degrees)]] = values[[np.argmax(degrees), ordinary]]
    owner = np.repeat(np.arange(graph.vertices), np.diff(expected["row"]))
    for made in (state, expected):
        order = np.lexsort([*(made[key] for key in lists), owner])
        made.update({key: np.asarray(made[key])[order] for key in lists})
    for key in expected:
        np.testing.assert_array_equal(state[key], expected[key], err_msg=key)


def test_a_graph_may_have_any_number_of_vertices() -> None:
    bfs = module("bfs")
    row, neighbours, weights = bfs.rmat(bfs.livejournal(3)._replace(scale=8, vertices=200, edges=20_000))
    assert len(row) == 201
    assert row[-1] == len(neighbours) == len(weights) == 20_000
    assert set(neighbours) <= set(range(200))
    assert np.count_nonzero(np.bincount(neighbours, minlength=200)) > 190
    assert set(weights) == set(range(1, 65))


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["bfs", "sssp"])
def test_program_and_peer_are_right_and_the_peer_is_fuller(
    name: str, tmp_path: Path, repository: Path
) -> None:
    plain, peer = plain_and_peer(workload.load(name), repository, tmp_path)
    assert (plain.wrong, peer.wrong) == ("", "")
    assert peer.counts.warp_efficiency > 1.5 * plain.counts.warp_efficiency


@pytest.mark.gpu
@pytest.mark.nvcc
@pytest.mark.parametrize("mode", ["off", "always"])
def test_program_prints_what_numpy_computes(tmp_path: Path, mode: str) -> None:
    program = tmp_path / "sssp"
    source = workload.load("sssp").source
    done = run_nvcc(["-O3", "-arch=native", str(source), "-o", str(program)], Settings(mode), capture=True)
    assert done.status == 0, done.errors
    sample = module("sssp")
    inputs = sample.search(module("bfs").graph500(14, 8, 3), 16)
    printed = subprocess.run([program, "14", "8", "3"], check=True, capture_output=True, text=True).stdout
    assert printed == sample.summary(inputs, *rounds(inputs))


def rounds(inputs: Any) -> tuple[np.ndarray[Any, Any], int]:
    """The costs, and after how many rounds, the last of which lowers nothing, they are known."""
    sample = module("sssp")
    costs = sample.reference(inputs)["costs"]
    owner = np.repeat(np.arange(len(costs)), np.diff(inputs["row"]))
    found, number = inputs["costs"].astype(np.int64), 0
    while True:
        number += 1
        before = found.copy()
        np.minimum.at(found, inputs["neighbours"], before[owner] + inputs["weights"])
        if np.array_equal(found, before):
            return costs, number
