"""The workloads that are no graphs: builds on the emulator, inputs and references against brute force."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from cccopt.harness.cte import workload as cte_workload
from cccopt.harness.cte.workload import SMALL, TASKS, name_of_form
from cccopt.harness.on_emulator import run_on_emulator
from cccopt.harness.workload import base_state
from tests.cte.building import ptx_of
from tests.cte.test_csr_workloads import WORKLOADS

INPUTS = {"fmm": "clustered_q5", "dqg": "normal_20", "line_quad": "quad", "records": "giant"}
"""An input of each workload for what need not be done for all."""

BUILDS = ("one_per_lane", "warp", "automatic")
EVERY = [(name, input) for name in INPUTS for input in cte_workload.load(name).module.INPUTS]


def module(name: str) -> Any:
    return cast(ModuleType, cte_workload.load(name).module)


def answered(name: str, input: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]], str]:
    """A small input's state with the reference's answer in place of the result, that answer, and the result's name."""
    workload = module(name)
    state: dict[str, Any] = dict(base_state(workload.inputs(input, SMALL, 1)))
    expected = workload.reference(state)
    (key,) = workload.RESULTS
    state[key] = expected[key].astype(state[key].dtype)
    return state, expected, key


@pytest.mark.nvcc
@pytest.mark.parametrize("name", INPUTS)
def test_builds_agree_with_the_reference(tmp_path: Path, name: str) -> None:
    workload = cte_workload.load(name)
    forms = tuple(name_of_form(form) for form in workload.module.FORMS if form != TASKS)
    builds = {build: ptx_of(workload, build, tmp_path) for build in (*BUILDS, *forms)}
    sample = workload.sample(INPUTS[name])
    results = run_on_emulator(sample.instance(SMALL, 1), builds)
    assert {result.name: result.wrong for result in results} == dict.fromkeys(builds, "")
    one_per_lane, warp = results[:2]
    assert warp.counts.warp_efficiency > 1.3 * one_per_lane.counts.warp_efficiency


@pytest.mark.parametrize(("name", "input"), EVERY)
def test_one_wrong_number_is_found(name: str, input: str) -> None:
    state, expected, key = answered(name, input)
    check, numbers = module(name).check, state[key]
    assert check(state, expected) == ""
    at = int(np.argmax(numbers))
    right = numbers[at]
    slightly = right + np.array(3e-5).astype(right.dtype) * right if right.dtype.kind == "f" else right + 1
    for wrong in (slightly, 0):
        numbers[at] = wrong
        assert f"1 wrong {key}; {key}[{at}]" in check(state, expected)
    numbers[at] = right
    assert check(state, expected) == ""


@pytest.mark.parametrize(("name", "input"), EVERY)
def test_results_that_nobody_wrote_are_found(name: str, input: str) -> None:
    state, expected, key = answered(name, input)
    state[key] = base_state(module(name).inputs(input, SMALL, 1))[key]
    assert f"{len(state[key])} wrong {key}" in module(name).check(state, expected)


@pytest.mark.parametrize(("name", "input"), EVERY)
def test_the_seed_makes_the_input(name: str, input: str) -> None:
    first, again, other = (base_state(module(name).inputs(input, SMALL, seed)) for seed in (1, 1, 2))
    given = [key for key in first if key not in module(name).RESULTS]
    assert all(np.array_equal(first[key], again[key]) for key in given)
    assert any(not np.array_equal(first[key], other[key]) for key in given) == (name != "line_quad")


# --- fmm ---


def cells(
    points: NDArray[Any], most: int, low: NDArray[Any], side: float
) -> list[tuple[NDArray[Any], float]]:
    """The leaves with points below the cell at ``low``, each its lowest corner and its side: by dividing cells."""
    inside = points[np.all((low <= points) & (points < low + side), axis=1)]
    if len(inside) == 0:
        return []
    if len(inside) <= most:
        return [(low, side)]
    half = side / 2
    octants = (low + half * np.array(octant) for octant in product((0, 1), repeat=3))
    return [leaf for octant in octants for leaf in cells(inside, most, octant, half)]


@pytest.mark.parametrize("name", ["equal_q5", "equal_q10", "clustered_q5", "clustered_q10"])
def test_the_u_list_of_a_leaf_is_what_touches_it(name: str) -> None:
    inputs = module("fmm").inputs(name, SMALL, 3)
    points = inputs["points"][:, :3].astype(np.float64)
    leaves = cells(points, int(name.rpartition("q")[2]), np.zeros(3), 1.0)
    low = np.array([leaf[0] for leaf in leaves])
    high = low + np.array([leaf[1] for leaf in leaves])[:, None]
    # All corners are multiples of powers of two, so that boxes that touch have equal coordinates.
    touch = np.all((low[:, None] <= high) & (low <= high[:, None]), axis=2)
    within = np.all((low[:, None] <= points) & (points < high[:, None]), axis=2)
    assert within.sum(axis=0).tolist() == [1] * len(points)
    leaf_of = within.argmax(axis=0)
    assert len(np.unique(leaf_of)) == len(inputs["offsets"]) - 1
    for point, leaf in enumerate(inputs["leaves"]):
        found = inputs["sources"][inputs["offsets"][leaf] : inputs["offsets"][leaf + 1]]
        assert found.tolist() == np.flatnonzero(touch[leaf_of[point], leaf_of]).tolist()


def test_potentials_are_charges_over_distances() -> None:
    inputs = module("fmm").inputs("equal_q5", SMALL, 1)
    found = module("fmm").reference(inputs)["potentials"]
    points, offsets, sources = inputs["points"], inputs["offsets"], inputs["sources"]
    for target in (0, 7, 750, len(points) - 1):
        leaf = inputs["leaves"][target]
        near = [int(source) for source in sources[offsets[leaf] : offsets[leaf + 1]]]
        assert target in near
        terms = [
            float(points[source, 3]) / math.dist(points[target, :3].tolist(), points[source, :3].tolist())
            for source in near
            if source != target
        ]
        assert found[target] == pytest.approx(math.fsum(terms), rel=1e-12)


def test_points_that_fall_together_share_a_leaf_of_the_finest_level() -> None:
    fmm = module("fmm")
    points, tree = fmm.octree(np.full((9, 3), 0.3, np.float32), 5)
    assert (len(points), tree.first.tolist(), tree.level.tolist()) == (9, [0, 9], [fmm.BITS])
    offsets, sources = fmm.u_lists(tree)
    assert (offsets.tolist(), sources.tolist()) == ([0, 9], list(range(9)))


# --- dqg ---


@pytest.mark.parametrize("name", ["uniform_40", "normal_20"])
def test_claims_are_products_over_the_other_atoms(name: str) -> None:
    inputs = module("dqg").inputs(name, SMALL, 1)
    found = module("dqg").reference(inputs)["claims"]
    atoms, offsets = inputs["atoms"].T, inputs["offsets"]
    for p in (0, 1, 2, 700, len(found) - 1):
        point, owner, molecule = inputs["points"][:, p], inputs["owners"][p], inputs["molecules"][p]
        members = range(offsets[molecule], offsets[molecule + 1])
        assert owner in members
        claim = 1.0
        for other in members:
            if other == owner:
                continue
            nearer = math.dist(point, atoms[owner]) - math.dist(point, atoms[other])
            mu = nearer / math.dist(atoms[owner], atoms[other])
            for _ in range(3):
                mu = (3 - mu * mu) * mu / 2
            claim *= (1 - mu) / 2
        assert found[p] == pytest.approx(claim, abs=1e-13)


def test_a_claim_is_near_1_at_its_atom_and_lower_where_another_is_nearer() -> None:
    inputs = module("dqg").inputs("uniform_20", SMALL, 1)
    claims = module("dqg").reference(inputs)["claims"]
    away = np.linalg.norm(inputs["points"] - inputs["atoms"][:, inputs["owners"]], axis=0)
    assert claims[away < 0.3].min() > 0.99
    several = np.diff(inputs["offsets"])[inputs["molecules"]] > 8
    assert np.median(claims[several & (away > 3)]) < 0.1
    assert np.all(claims[np.diff(inputs["offsets"])[inputs["molecules"]] == 1] == 1)


def test_builds_are_held_against_each_other_by_relative_errors() -> None:
    check = module("dqg").check
    right = np.array([1e-9, 0.0, 1.0])
    assert check({"claims": right * (1 + 1e-14)}, {"claims": right}) == ""
    assert check({"claims": right * (1 + 1e-11)}, {"claims": right}).startswith("2 wrong claims; claims[0]")


@pytest.mark.parametrize("most", [20, 40])
def test_molecules_of_normal_sizes_are_mostly_small(most: int) -> None:
    draw = module("dqg").atom_counts
    uniform, normal = (draw(np.random.default_rng(1), shape, most, 20_000) for shape in ("uniform", "normal"))
    for counts in (uniform, normal):
        assert (counts.min(), counts.max()) == (1, most)
    assert uniform.mean() == pytest.approx((most + 1) / 2, rel=0.02)
    largest = normal[: 32 * 600].reshape(-1, 32).max(axis=1)
    assert largest.mean() > 2 * normal.mean()


# --- line_quad ---


@pytest.mark.parametrize(("name", "size_of"), [("line", lambda k: 4 * k), ("quad", lambda k: k * k // 8)])
def test_sizes_grow_with_the_lane_and_sums_are_those_of_a_loop(name: str, size_of: Any) -> None:
    inputs = module("line_quad").inputs(name, SMALL, 1)
    found = module("line_quad").reference(inputs)["sums"].tolist()
    index, sums = 0, []
    for task in range(len(found)):
        fine = range(index, index + size_of(task % 32))
        sums.append(sum((i ^ i >> 4) % 16 + 20 * (task % 8) for i in fine))
        index = fine.stop
    assert found == sums


def test_full_size_has_indices_of_31_bits_and_exact_sums() -> None:
    for name in ("line", "quad"):
        inputs = module("line_quad").inputs(name, "full", 1)
        pattern, tasks = inputs["pattern"], len(inputs["sums"])
        assert (tasks // 32 + 1) * int(pattern[32]) < 2**31
        assert np.diff(pattern).max() * (15 + 20 * 7) < 2**24


# --- records ---


@pytest.mark.parametrize("name", ["short", "ragged", "giant"])
def test_lines_are_numbers_with_commas_and_sums_are_those_of_their_numbers(name: str) -> None:
    inputs = module("records").inputs(name, SMALL, 1)
    text, offsets = inputs["text"].tobytes().decode(), inputs["offsets"]
    sums = module("records").reference(inputs)["sums"].tolist()
    assert (offsets[0], offsets[-1]) == (0, len(text))
    lines = iter(text.splitlines(keepends=True))
    for line, begin in enumerate(offsets[:-1]):
        if begin == offsets[line + 1]:
            assert sums[line] == 0
            continue
        content = next(lines)
        assert content == text[begin : offsets[line + 1]]
        total = number = digits = 0
        for letter in content:
            if letter in ",\n":
                assert 1 <= digits <= 9
                total, number, digits = total + number, 0, 0
            else:
                number, digits = 10 * number + int(letter), digits + 1
        assert (sums[line], digits) == (total, 0)
    assert next(lines, None) is None
    lengths = np.diff(offsets)
    assert np.count_nonzero(lengths == 0) > 0
    ratio = lengths.max() / lengths.mean()
    assert {"short": ratio < 5, "ragged": ratio > 20, "giant": ratio > 80}[name]


# --- all ---


def test_least_bytes_are_those_of_the_arrays() -> None:
    def total(name: str, *keys: str) -> tuple[int, int]:
        inputs = module(name).inputs(INPUTS[name], SMALL, 1)
        return module(name).least_bytes(inputs), sum(inputs[key].nbytes for key in keys)

    for name, keys in {
        "fmm": ("points", "leaves", "offsets", "sources", "potentials"),
        "dqg": ("points", "molecules", "owners", "atoms", "offsets", "claims"),
        "line_quad": ("sums",),
        "records": ("offsets", "text", "sums"),
    }.items():
        least, all_arrays = total(name, *keys)
        assert 0 <= all_arrays - least <= 4  # an offset more than there are rows


def test_every_workload_is_tested() -> None:
    assert {*INPUTS, *WORKLOADS} == set(cte_workload.names())
