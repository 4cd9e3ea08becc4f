"""The algorithms of bench/graphs on the emulator: all forms against scipy, references against answers by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cccopt import driver
from cccopt.device.gpu import open_gpu
from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr.matrix import Csr, from_edges
from cccopt.harness.graphs import workload as graphs
from cccopt.harness.on_emulator import run_on_emulator
from cccopt.harness.on_gpu import Bench, LoadedBuild
from cccopt.harness.workload import State, base_state, fresh_state
from cccopt.resources import folder

SIZE = "small"


def module(name: str) -> Any:
    return graphs.load(name).module


def use(graph: Csr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csr_inputs, "load", lambda name, size, seed: graph.completed(seed))


def uneven(vertices: int = 253) -> Csr:
    """A hub, a chain of many levels, a part that the hub does not reach, loops, edges twice, vertices without edges."""
    generator = np.random.default_rng(21)
    part = vertices // 2
    tails = [np.full(90, 7), generator.integers(0, part, 300), np.arange(part, part + 5), np.arange(5)]
    heads = [
        generator.integers(0, part, 90),
        generator.integers(0, part, 300),
        np.arange(part + 1, part + 6),
        np.arange(5),
    ]
    away = np.arange(vertices - 70, vertices - 30)
    tails += [np.array([12]), away, np.array([3, 3, 3])]
    heads += [np.array([part]), generator.permutation(away), np.array([9, 9, 9])]
    return from_edges(vertices, np.concatenate(tails), np.concatenate(heads))


@pytest.mark.nvcc
@pytest.mark.usefixtures("seeming_gpu")
@pytest.mark.parametrize("name", graphs.names())
def test_all_forms_agree_with_the_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the stand-in for a GPU, so that what the host reads must be told to be copied. With another policy than
    `automatic`, whose code is long: tests of the headers run that one.
    """
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DCTE_POLICY=cte::warp")
    algorithm = graphs.load(name)
    code = graphs.compiled(algorithm, "sm_90")
    texts = {form: code.of(form) for form in algorithm.module.FORMS}
    assert all(isinstance(text, str) for text in texts.values()), texts
    with open_gpu() as gpu:
        loaded = {text: gpu.load(str(text)) for text in texts.values()}
        for graph in (uneven(), from_edges(33, np.zeros(0, int), np.zeros(0, int))):
            use(graph, monkeypatch)
            instance = algorithm.sample("drawn").instance(SIZE, 1)
            bench = Bench(gpu, instance, loaded[texts["plain"]])
            builds = [LoadedBuild(form, loaded[text]) for form, text in texts.items()]
            launched = [bench.run(build, check=True) for build in builds]
            assert {build.name: build.wrong for build in builds} == dict.fromkeys(texts, "")
            if graph.nnz:
                assert all(launched)
                # Every form runs code of its own.
                assert len({sum(build.milliseconds[0]) for build in builds}) == len(builds)


def answered(name: str) -> tuple[State, Mapping[str, NDArray[Any]]]:
    """A state with the reference's answer in place of the results, and that answer."""
    algorithm = module(name)
    state = base_state(algorithm.inputs("drawn", SIZE, 1))
    expected = algorithm.reference(state)
    for key in algorithm.RESULTS:
        state[key] = expected[key].astype(np.asarray(state[key]).dtype)
    return state, expected


@pytest.mark.parametrize("name", graphs.names())
def test_one_wrong_number_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(uneven(), monkeypatch)
    state, expected = answered(name)
    check = module(name).check
    assert check(state, expected) == ""
    for key in module(name).RESULTS:
        numbers = np.asarray(state[key])
        at = int(np.argmax(numbers))
        kept, numbers[at] = numbers[at], numbers[at] * 2 + 1
        assert f"1 wrong {key}; {key}[{at}]" in check(state, expected)
        numbers[at] = kept
    assert check(state, expected) == ""


# A loop, an edge that is there twice, an end, and vertices that nothing leads to.
DRAWN = from_edges(7, np.array([1, 1, 1, 1, 2, 3, 4, 5]), np.array([1, 2, 2, 3, 4, 4, 0, 0]))
LENGTHS = np.array([1, 9, 3, 5, 4, 1, 2, 1], np.float32)


def reference(name: str) -> Mapping[str, NDArray[Any]]:
    found: Mapping[str, NDArray[Any]] = module(name).reference(
        base_state(module(name).inputs("drawn", SIZE, 1))
    )
    return found


def test_references_say_what_is_found_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    use(Csr(7, 7, DRAWN.offsets, DRAWN.indices, LENGTHS), monkeypatch)
    assert module("bfs").inputs("drawn", SIZE, 1)["source"] == 1
    assert reference("bfs")["levels"].tolist() == [3, 0, 1, 1, 2, -1, -1]
    assert module("bfs").edges(module("bfs").inputs("drawn", SIZE, 1)) == 7
    distances = reference("sssp")["distances"].astype(np.int64)
    assert np.where(distances == 0x7FFFFFFF, -1, distances).tolist() == [8, 0, 3, 5, 6, -1, -1]
    # Three paths lead to 4 and on to 0: two of them through 2, whose edge from 1 is there twice, and one through 3.
    assert reference("bc")["paths"].tolist() == [3, 1, 2, 1, 3, 0, 0]
    np.testing.assert_allclose(reference("bc")["dependencies"], [0, 4, 4 / 3, 2 / 3, 1, 0, 0])
    assert reference("cc")["labels"].tolist() == [0, 0, 0, 0, 0, 0, 6]
    rest = 0.15 / 7
    one = (1 / 7) * (0.85 / 4) ** 5 + rest * sum((0.85 / 4) ** k for k in range(5))
    np.testing.assert_allclose(reference("pagerank")["ranks"][[1, 5, 6]], [one, rest, rest], rtol=1e-6)
    ranks = reference("pagerank_converged")["ranks"]
    np.testing.assert_allclose(ranks[[1, 5, 6]], [rest / (1 - 0.85 / 4), rest, rest], rtol=1e-5)


def test_triangles_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two triangles that share an edge, one of whose edges is there both ways; a loop; a square.
    tails, heads = (
        np.array([0, 1, 2, 1, 3, 3, 2, 4, 5, 6, 7, 6]),
        np.array([1, 2, 0, 0, 1, 2, 2, 5, 6, 7, 4, 6]),
    )
    use(from_edges(8, tails, heads), monkeypatch)
    assert reference("tc")["triangles"].tolist() == [2]
    made = module("tc").inputs("drawn", SIZE, 1)
    assert len(made["neighbors"]) == 9
    degrees = np.array([2, 3, 3, 2, 2, 2, 2, 2])
    assert (degrees[made["tails"]] <= degrees[made["neighbors"]]).all()


@pytest.mark.parametrize("name", [name for name in graphs.names() if "ccc" in module(name).FORMS])
def test_plain_has_a_thread_for_each_vertex_and_ccc_fewer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(uneven(9000), monkeypatch)
    sample = graphs.load(name).sample("drawn")

    def blocks(form: str) -> set[int]:
        state = fresh_state(sample.inputs(SIZE, 1))
        found = sample.launches(state, form)
        return {launch.grid[0] for launch in found if "plain" in launch.kernel}

    assert (blocks("plain"), blocks("ccc")) == ({36}, {3})


def long_chain(*lengths: float) -> Csr:
    """Edges of these ``lengths``, one behind the other, and some that make the first vertex the busiest."""
    vertices, loops = len(lengths) + 1, np.zeros(3, int)
    made = from_edges(
        vertices, np.append(loops, np.arange(len(lengths))), np.append(loops, np.arange(1, vertices))
    )
    return Csr(vertices, vertices, made.offsets, made.indices, np.array([1, 1, 1, *lengths], np.float32))


@pytest.fixture(scope="module")
def sssp_code() -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NVCC_APPEND_FLAGS", "-DCTE_POLICY=cte::one_per_lane")
        return driver.compile(
            graphs.load("sssp").source,
            arch="sm_90",
            ccc="off",
            nvcc_options=("-std=c++17", "-I", str(folder("cte_templates"))),
        ).ptx


@pytest.mark.nvcc
@pytest.mark.parametrize("lengths", [(1e9, 1e9, 5), (1e9, 1e9, 147483632), (2e9, 2e9, 1)])
def test_distances_of_up_to_31_bits_are_found(
    lengths: tuple[float, ...], sssp_code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(long_chain(*lengths), monkeypatch)
    algorithm = graphs.load("sssp")
    instance = algorithm.sample("drawn").instance(SIZE, 1)
    found = run_on_emulator(instance, dict.fromkeys(("plain", "queue", "near_far"), sssp_code))
    assert {result.name: result.wrong for result in found} == dict.fromkeys(
        ("plain", "queue", "near_far"), ""
    )
    expected = np.minimum(np.cumsum([0, *lengths]), 2**31 - 1)
    assert algorithm.module.reference(base_state(instance.inputs))["distances"].tolist() == expected.tolist()


def test_paths_that_a_double_does_not_count_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = np.arange(1030)
    tails = np.concatenate([steps, steps, np.zeros(1, int)])
    use(from_edges(1031, tails, np.append(np.tile(steps + 1, 2), 0)), monkeypatch)
    state, expected = answered("bc")
    said = module("bc").check(state, expected)
    assert said == "to 7 vertices there are more shortest paths than a double counts"


@pytest.mark.parametrize("name", graphs.names())
def test_a_run_whose_kernels_are_wrong_ends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that never find an end, and append more than there is room for."""
    use(uneven(), monkeypatch)
    sample = graphs.load(name).sample("drawn")
    for form in graphs.load(name).module.FORMS:
        state = fresh_state(sample.inputs(SIZE, 1))
        for number, launch in enumerate(sample.launches(state, form)):
            assert number < 2000
            assert all(int(given) < 1 << 32 for given in launch.arguments if isinstance(given, np.uint64))
            for key in launch.host:
                np.asarray(state[key])[:] = 200


@pytest.mark.parametrize("name", ["road", "delaunay", "rmat"])
def test_the_direction_is_switched_twice(name: str) -> None:
    """With sizes of levels as they are, whatever a kernel would find."""
    algorithm = graphs.load("bfs")
    inputs = algorithm.sample(name).inputs(SIZE, 1)
    sizes = np.bincount(algorithm.module.reference(inputs)["levels"] + 1)[1:]
    state, pulled = fresh_state(inputs), []
    for depth, launch in enumerate(algorithm.module.launches(state, "switch")):
        pulled.append(launch.kernel == "bfs_pull")
        # As if each vertex had one edge.
        np.asarray(state[f"counts_{(depth + 1) % 2}"])[0] = int(np.append(sizes, 0)[depth + 1]) * (1 + 2**32)
    assert len(pulled) == len(sizes)
    assert any(pulled)
    assert np.count_nonzero(np.diff(pulled)) == 2
