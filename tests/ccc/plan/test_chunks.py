"""How many inner iterations lanes run between two votes."""

from __future__ import annotations

from dataclasses import replace

from cccopt.ccc.plan.chunks import MOST, MOVING, chunk_of
from tests.kernels.ptx_loops import inner_loop, loop, regions_of

LONG = "mad.lo.u32 %x, %x, %x, 1; " * 100


def chunk(body: str, mean: float | None, asked: int | None = None) -> int:
    view, (region,) = regions_of(loop(inner_loop(body)))
    (path,) = region.paths
    return chunk_of(view, replace(path.annotation, chunk=asked), path.begin, path.nodes, MOVING, mean)


def test_without_a_profile_a_chunk_takes_the_same_time_however_short_an_iteration_is() -> None:
    assert chunk(LONG, None) == 2
    assert chunk("", None) == MOST


def test_a_profile_makes_chunks_of_long_tasks_longer() -> None:
    # An iteration takes about 207 slots: the square root of 2 * 1000 * 50 / 207 is 22.
    assert chunk(LONG, 1000.0) == 16
    assert chunk(LONG, 1e6) == MOST


def test_short_tasks_have_no_shorter_chunks() -> None:
    assert chunk(LONG, 1.0) == chunk(LONG, None)


def test_the_clause_decides() -> None:
    assert chunk(LONG, 1000.0, asked=3) == 3
