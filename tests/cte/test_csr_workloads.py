"""The workloads over CSR inputs: builds against scipy on the emulator, references against answers by hand."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from cccopt.diagnostic import CccError
from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr import workload as csr_workload
from cccopt.harness.csr.matrix import Csr, from_edges
from cccopt.harness.cte import workload as cte_workload
from cccopt.harness.cte.workload import SMALL, TASKS, name_of_form
from cccopt.harness.on_emulator import run_on_emulator
from cccopt.harness.workload import Array, State, base_state
from tests.cte.building import ptx_of

WORKLOADS = ("spmv", "spmv_double", "diag", "pagerank", "bfs", "sssp")
BUILDS = ("one_per_lane", "sub_warp<4>", "warp", "automatic")


def module(name: str) -> Any:
    return cast(ModuleType, cte_workload.load(name).module)


# Its columns have long tasks, too.
INPUT = {"pagerank": "rmat"}


@pytest.mark.nvcc
@pytest.mark.parametrize("name", WORKLOADS)
def test_builds_agree_with_the_reference(tmp_path: Path, name: str) -> None:
    workload = cte_workload.load(name)
    forms = tuple(name_of_form(form) for form in workload.module.FORMS if form != TASKS)
    builds = {build: ptx_of(workload, build, tmp_path) for build in (*BUILDS, *forms)}
    instance = workload.sample(INPUT.get(name, "power_law")).instance(SMALL, 1)
    # The first strip of 256 of a task is not left to the second kernel.
    left_over = np.diff(cast(Array, instance.inputs["offsets"])).max() - 256
    assert "defer_long" not in forms or left_over > csr_workload.MOST
    results = run_on_emulator(instance, builds)
    assert {result.name: result.wrong for result in results} == dict.fromkeys(builds, "")
    # Every build runs another policy's code.
    assert len({result.counts.warp_instructions for result in results}) == len(builds)


def answered(name: str) -> tuple[State, dict[str, NDArray[Any]]]:
    """A small input's state with the reference's answer in place of the results, and that answer."""
    workload = module(name)
    state = base_state(workload.inputs("power_law", SMALL, 1))
    expected = workload.reference(state)
    for key in workload.RESULTS:
        if key in expected:
            state[key] = expected[key].astype(state[key].dtype)
    return state, expected


@pytest.mark.parametrize("name", WORKLOADS)
def test_one_wrong_number_is_found(name: str) -> None:
    state, expected = answered(name)
    check = module(name).check
    assert check(state, expected) == ""
    (key,) = (key for key in module(name).RESULTS if key in expected)
    numbers = state[key]
    at = int(np.argmax(numbers != 0))
    for wrong in (numbers[at] * 2 + 1, 0, numbers[at] + np.array(1e-3).astype(numbers.dtype) * numbers[at]):
        kept, numbers[at] = numbers[at], wrong
        if numbers[at] != kept:
            assert f"1 wrong {key}; {key}[{at}]" in check(state, expected)
        numbers[at] = kept
    assert check(state, expected) == ""


@pytest.mark.parametrize("name", ["spmv", "spmv_double", "diag", "pagerank"])
def test_a_number_that_nobody_wrote_is_found(name: str) -> None:
    state, expected = answered(name)
    (key,) = module(name).RESULTS
    state[key][-1] = np.nan
    assert f"1 wrong {key}" in module(name).check(state, expected)


def graph(vertices: int, edges: str, values: list[float] | None = None) -> Csr:
    """The graph with ``edges``, such as "0-1 1-2"."""
    ends = np.array([edge.split("-") for edge in edges.split()], np.int32).reshape(-1, 2)
    weights = None if values is None else np.array(values, np.float32)
    return from_edges(vertices, ends[:, 0], ends[:, 1], weights)


# A loop, an edge that is there twice, with the shorter one last, an end, and vertices that nothing leads to.
DRAWN = graph(7, "1-1 1-2 1-2 1-3 2-4 3-4 4-0 5-0", [1, 9, 3, 5, 4, 1, 2, 1])


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csr_inputs, "load", lambda name, size, seed: DRAWN.completed(seed))


@pytest.mark.usefixtures("loaded")
def test_searches_find_what_is_found_by_hand() -> None:
    for name, answer in (("bfs", [3, 0, 1, 1, 2, -1, -1]), ("sssp", [8, 0, 3, 5, 6, -1, -1])):
        made = module(name).inputs("drawn", SMALL, 1)
        assert made["source"] == 1
        found = next(iter(module(name).reference(made).values())).astype(np.int64)
        assert np.where(found == 0x7FFFFFFF, -1, found).tolist() == answer
    assert module("sssp").inputs("drawn", SMALL, 1)["lengths"].tolist() == [1, 9, 3, 5, 4, 1, 2, 1]


@pytest.mark.usefixtures("loaded")
def test_products_and_ranks_are_those_by_hand() -> None:
    made = dict(module("spmv").inputs("drawn", SMALL, 1)) | {"x": np.arange(7, dtype=np.float32) - 3}
    found = module("spmv").reference(made)
    assert found["y"].tolist() == [0, 1 * -2 + 12 * -1 + 5 * 0, 4, 1, -6, -3, 0]
    np.testing.assert_allclose(found["slack"], np.array([0, 14, 4, 1, 6, 3, 0]) * 1e-5)
    diagonal = module("diag").reference(module("diag").inputs("drawn", SMALL, 1))["diagonal"]
    assert diagonal.tolist() == [0, 1, 0, 0, 0, 0, 0]
    # Vertices 5 and 6 have no edges to them: their ranks are what is left without any.
    ranks = module("pagerank").reference(base_state(module("pagerank").inputs("drawn", SMALL, 1)))["ranks"]
    rest = 0.15 / 7
    one = (1 / 7) * (0.85 / 4) ** 5 + rest * sum((0.85 / 4) ** k for k in range(5))
    np.testing.assert_allclose(ranks[[1, 5, 6]], [one, rest, rest], rtol=1e-6)


@pytest.mark.usefixtures("loaded")
def test_least_bytes_are_those_by_hand() -> None:
    def least(name: str) -> int:
        return int(module(name).least_bytes(base_state(module(name).inputs("drawn", SMALL, 1))))

    assert least("spmv") == 8 * 8 + 7 * 8
    assert least("spmv_double") == 8 * 12 + 7 * 12
    assert least("diag") == 8 * 4 + 7 * 8 + 4
    assert least("pagerank") == 5 * (8 * 4 + 7 * 24)
    assert least("bfs") == 7 * 4 + 5 * 8  # five vertices are reached, which seven edges leave
    assert least("sssp") == 7 * 8 + 5 * 8


def test_lengths_are_the_values_where_those_are_whole_numbers_else_drawn() -> None:
    assert csr_workload.lengths(DRAWN, 1).tolist() == [1, 9, 3, 5, 4, 1, 2, 1]
    edges = " ".join(f"{v}-{(v * 7) % 300}" for v in range(300))
    for values in (None, [0.5] * 300, [0.0] * 300):
        drawn = csr_workload.lengths(graph(300, edges, values), 1)
        assert (drawn.min(), drawn.max(), drawn.dtype) == (1, 64, np.uint32)
        assert drawn.tolist() == csr_workload.lengths(graph(300, edges), 1).tolist()
        assert drawn.tolist() != csr_workload.lengths(graph(300, edges), 2).tolist()


@pytest.mark.parametrize(("length", "refused"), [(2.0**31 - 128, False), (2.0**31, True), (1e30, True)])
def test_a_length_fits_31_bits(length: float, refused: bool) -> None:
    drawn = graph(2, "0-1 1-0", [1.0, length])
    if refused:
        with pytest.raises(CccError, match=f"an edge is too long: {int(np.float32(length))}"):
            csr_workload.lengths(drawn, 1)
    else:
        assert csr_workload.lengths(drawn, 1).tolist() == [1, length]


def test_a_graph_has_vertices() -> None:
    nothing = Csr(0, 0, np.zeros(1, np.int32), np.zeros(0, np.int32))
    with pytest.raises(CccError, match="the graph has no vertices"):
        csr_workload.square(nothing)


def test_a_graph_has_a_row_and_a_column_for_each_vertex() -> None:
    wide = Csr(2, 5, np.array([0, 1, 3], np.int32), np.array([4, 0, 3], np.int32))
    tall = wide.transpose()
    for given in (wide, tall):
        made = csr_workload.square(given).check()
        assert (made.rows, made.columns) == (5, 5)
        np.testing.assert_array_equal(made.degrees[: given.rows], given.degrees)
        assert made.degrees[given.rows :].sum() == 0


@pytest.mark.parametrize(
    ("terms", "off", "wrong"),
    [(1, 0.9e-5, False), (1, 1.1e-5, True), (1000, 5.9e-5, False), (1000, 6.1e-5, True), (1, np.nan, True)],
)
def test_sums_may_be_off_by_what_another_order_of_their_terms_makes(
    terms: int, off: float, wrong: bool
) -> None:
    found, expected = np.array([2, 1 + off], np.float32), np.array([2.0, 1.0])
    slack = csr_workload.rounding(np.array([1, terms]), np.float32) * expected
    said = f"1 wrong y; y[1] is {found[1]}, not 1.0"
    assert csr_workload.wrong_sums("y", found, expected, slack) == said * wrong
