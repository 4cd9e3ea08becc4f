"""docs/graphs.md holds: its kernels find levels and ranks, its tables name what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cccopt.emulator import Program
from cccopt.harness.graphs import workload as graphs
from cccopt.harness.graphs.traversal import scanned_count, scanned_sizes
from cccopt.resources import folder
from tests.cte.compiling import compiled
from tests.cte.test_documented import documented
from tests.test_docs import BLOCKS

KERNELS = {
    found[1]: block.text
    for block in BLOCKS
    if block.page.name == "graphs.md"
    and (found := re.search(r"^((?:level|rank)\w+)\(", block.text, re.MULTILINE))
}


RANKS = "rank_program"
LEVELS = [kernel for kernel in KERNELS if kernel != RANKS]


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs/graphs.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    place = tmp_path_factory.mktemp("page")
    source, output = place / "page.cu", place / "page.ptx"
    source.write_text("\n".join(KERNELS.values()))
    done = compiled(source, "-ptx", "-arch=sm_90", "-Werror", "all-warnings", "-o", str(output))
    assert done.returncode == 0, done.stderr
    return Program(output.read_text())


VERTICES, SOURCE = 300, 7
_random = np.random.default_rng(23)
DEGREES = np.r_[6 + np.zeros(8, int), _random.integers(0, 5, 142), 0, 40, np.zeros(148, int)]
OFFSETS = np.append(0, np.cumsum(DEGREES)).astype(np.int32)
NEIGHBORS = _random.integers(0, 200, OFFSETS[-1]).astype(np.int32)


def levels_by_hand() -> NDArray[np.int32]:
    levels = np.full(VERTICES, -1, np.int32)
    levels[SOURCE], depth = 0, 0
    while (levels == depth).any():
        found = np.concatenate(
            [NEIGHBORS[OFFSETS[v] : OFFSETS[v + 1]] for v in np.flatnonzero(levels == depth)]
        )
        levels[found[levels[found] < 0]] = depth + 1
        depth += 1
    return levels


def transposed() -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    tails = np.repeat(np.arange(VERTICES), DEGREES)[np.argsort(NEIGHBORS, kind="stable")]
    return np.searchsorted(np.sort(NEIGHBORS), np.arange(VERTICES + 1)).astype(np.int32), tails.astype(
        np.int32
    )


@pytest.mark.nvcc
@pytest.mark.parametrize("kernel", sorted(set(LEVELS) - {"level_balanced"}))
def test_the_kernels_find_the_levels(program: Program, kernel: str) -> None:
    expected = levels_by_hand()
    assert expected.max() > 3
    levels, changed = np.full(VERTICES, -1, np.int32), np.ones(1, np.int32)
    levels[SOURCE] = 0
    queues: Any = [(np.full(VERTICES, SOURCE, np.int32), np.full(1, first, np.uint64)) for first in (1, 0)]
    graph = transposed() if kernel == "level_pull" else (OFFSETS, NEIGHBORS)
    vertices, depth = np.int32(VERTICES), 0
    while changed[0] and queues[depth % 2][1][0]:
        (now, size), (then, next_size) = queues[depth % 2], queues[(depth + 1) % 2]
        next_size[0] = 0
        room = np.uint64(VERTICES)
        if kernel in ("level_plain", "level_status"):
            changed[0] = 0
            arguments: tuple[Any, ...] = (vertices, np.int32(depth), *graph, levels, changed)
            next_size[0] = 1
        elif kernel == "level_pull":
            arguments = (vertices, np.int32(depth), *graph, levels, then, next_size, room)
        else:
            arguments = (np.int32(depth), *graph, levels, now, size, then, next_size, room)
        if kernel == "levels_of_block":
            program.launch(kernel, 1, 256, (*arguments, changed))
            assert changed[0] == expected.max() + 1
            break
        program.launch(kernel, 2, 256, arguments)
        depth += 1
    assert levels.tolist() == expected.tolist()


@pytest.mark.nvcc
def test_a_scanned_queue_finds_the_levels(program: Program) -> None:
    levels, expected = np.full(VERTICES, -1, np.int32), levels_by_hand()
    levels[SOURCE] = 0
    counts = scanned_count(SOURCE, OFFSETS), np.zeros(2, np.uint64)
    queues = [(np.full(VERTICES, SOURCE, np.int32), np.zeros(VERTICES, np.uint32), count) for count in counts]
    depth = 0
    while scanned_sizes(queues[depth % 2][-1])[0]:
        now, then = queues[depth % 2], queues[(depth + 1) % 2]
        then[-1][:] = 0
        arguments = (np.int32(depth), OFFSETS, NEIGHBORS, levels, *now, *then, np.uint32(VERTICES))
        program.launch("level_balanced", 2, 256, arguments)
        depth += 1
    assert levels.tolist() == expected.tolist()


@pytest.mark.nvcc
def test_the_program_finds_the_ranks(program: Program) -> None:
    """Launched until no rank changes by more than a tolerance; rows of the matrix hold what each vertex is given."""
    matrix = np.zeros((VERTICES, VERTICES))
    np.add.at(matrix, (NEIGHBORS, np.repeat(np.arange(VERTICES), DEGREES)), 1)
    part, rest = np.divide(0.85, DEGREES, out=np.zeros(VERTICES), where=DEGREES > 0), 0.15 / VERTICES
    expected = np.linalg.solve(np.eye(VERTICES) - matrix * part, np.full(VERTICES, rest))
    ranks = np.full(VERTICES, 1 / VERTICES, np.float32)
    given, gives = (part * ranks).astype(np.float32), np.zeros(VERTICES, np.float32)
    changed, rounds = np.ones(1, np.int32), 0
    numbers = np.int32(VERTICES), np.float32(rest), np.float32(1e-7)
    while changed[0]:
        changed[0] = 0
        arrays = (*transposed(), DEGREES.astype(np.int32), given, gives, ranks, changed)
        program.launch(RANKS, 2, 256, (*numbers, *arrays))
        given, gives, rounds = gives, given, rounds + 1
        assert rounds < 100
    assert rounds > 5
    np.testing.assert_allclose(ranks, expected, rtol=2e-3)


def test_all_forms_are_shown() -> None:
    assert set(LEVELS) == {
        *("level_plain", "level_status", "level_queue", "level_staged", "level_balanced"),
        *("level_pull", "levels_of_block"),
    }


def test_the_tables_name_all_pieces_and_all_forms(page: str) -> None:
    rows = page.partition("## Building blocks")[2].partition("The headers in")[0]
    named = set(re.findall(r"`cte::(\w+)", rows))
    assert {found.name for found in documented() if found.header.startswith("cte/frontier/")} <= named
    headers = [path.stem for path in Path(str(folder("cte_templates"))).glob("cte/frontier/*.cuh")]
    assert len(named) > len(headers) > 9
    table = page.partition("| algorithm | forms |")[2].partition("\n\n")[0]
    shown = {
        row[1]: tuple(re.findall(r"`(\w+)`", row[2]))
        for row in re.finditer(r"^\| `(\w+)`[^|]* \| (.*) \|$", table, re.M)
    }
    assert shown == {name: graphs.load(name).module.FORMS for name in graphs.names()}
