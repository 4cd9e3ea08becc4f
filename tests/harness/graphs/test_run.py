"""`cccopt bench graphs` over algorithms of our own: what is right, refused, wrong or ends in a fault."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cccopt.cli.common import console
from cccopt.cli.main import main
from cccopt.harness import once
from cccopt.harness.builds import Build
from cccopt.harness.choices import Platform
from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.graphs import run as graphs_run
from cccopt.harness.graphs.plan import GraphPlan, jobs
from cccopt.harness.graphs.workload import drawn_sources, load
from cccopt.harness.on_gpu import REPEATS
from cccopt.harness.result import BuildResult, LaunchResult, Times
from cccopt.report.graphs import print_graphs

SOURCE = """
extern "C" __global__ void degrees_plain(int vertices, const int* offsets, int* degrees) {
#pragma ccc for
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < vertices; v += gridDim.x * blockDim.x) {
#pragma ccc if
    if (offsets[v + 1] > offsets[v]) {
      int degree = 0;
      for (int k = offsets[v]; k < offsets[v + 1]; ++k) ++degree;
      degrees[v] = degree;
    }
  }
}
namespace cte {
struct automatic { static constexpr int detours = 0; };
struct block { static constexpr int detours = 9; };
}
#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif
extern "C" __global__ void degrees_fast(int vertices, const int* offsets, int* degrees, int skipped, int away) {
  const int v = threadIdx.x + blockIdx.x * blockDim.x;
  for (int detour = 0; detour < CTE_POLICY::detours; ++detour) __syncthreads();
  if (v >= skipped && v < vertices) degrees[v + away] = offsets[v + 1] - offsets[v];
}
"""

WORKLOAD = """
import numpy as np
from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.workload import Launch

FORMS = ("plain", "ccc", "fast", "wrong", "astray")
POLICY_FORMS = ("fast",)
RESULTS = ("degrees",)

def inputs(name, size, seed):
    graph = csr_inputs.load(name, size, seed)
    return {"offsets": graph.offsets, "degrees": np.zeros(graph.rows, np.int32)}

def launches(state, form):
    vertices = len(state["degrees"])
    arguments = (np.int32(vertices), state["offsets"], state["degrees"])
    if form in ("plain", "ccc"):
        yield Launch("degrees_plain", (2, 1, 1), (64, 1, 1), arguments, label="all")
    else:
        bounds = (np.int32(vertices - 1 if form == "wrong" else 0), np.int32(1 << 28 if form == "astray" else 0))
        for number in range(2):
            yield Launch("degrees_fast", (-(-vertices // 64), 1, 1), (64, 1, 1), (*arguments, *bounds), label="all")

def reference(inputs):
    return {"degrees": np.diff(inputs["offsets"])}

def check(result, expected):
    wrong = int((result["degrees"] != expected["degrees"]).sum())
    return "degrees are wrong" if wrong else ""

def edges(inputs):
    return int(inputs["offsets"][-1])
"""


@pytest.fixture
def degrees(tmp_path: Path) -> str:
    folder = tmp_path / "degrees"
    folder.mkdir()
    (folder / "degrees.cu").write_text(SOURCE)
    (folder / "workload.py").write_text(WORKLOAD)
    return str(folder)


@pytest.mark.nvcc
def test_rows_say_what_is_right_wrong_and_astray(
    degrees: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "found.json"
    assert main(["bench", "graphs", degrees, "--input", "power_law", "--json", str(file)]) == 1
    (cell,) = json.loads(file.read_text())["cells"]
    rows = {row["form"]: row for row in cell["rows"]}
    assert (cell["algorithm"], cell["input"], cell["size"]) == ("degrees", "power_law", "small")
    assert [form for form, row in rows.items() if row["failed"]] == ["wrong", "astray"]
    assert rows["wrong"]["void"] == "degrees are wrong"
    assert rows["astray"]["void"].startswith("CCC")
    assert (rows["fast"]["iterations"], rows["fast"]["launches"]) == (1, 2)
    assert set(cell["speedups"]) == {"plain", "ccc", "fast"}
    assert cell["speedups"]["plain"] == 1
    assert cell["speedups"]["ccc"] != 1
    assert cell["speedups"]["fast"] > 1.4
    issues = rows["plain"]["counted"]
    assert 0 < issues["warp_efficiency_pred_on"] <= issues["warp_efficiency"] < 0.9
    # In each of two launches, a warp reads the words of its vertices and those of the next ones, and writes theirs.
    vertices = csr_inputs.load("power_law", "small", 1).rows
    ends = [min(first + 32, vertices) for first in range(0, vertices, 32)]
    aligned, shifted = (sum((end + by - 1) // 8 - (end - 1) // 32 * 4 + 1 for end in ends) for by in (0, 1))
    assert rows["fast"]["counted"]["sectors"] == 2 * (2 * aligned + shifted)
    said = capsys.readouterr().out
    assert "degrees power_law wrong: degrees are wrong" in said
    assert " 1.00x   right" in said
    assert f" {rows['fast']['counted']['sectors'] * 32 / 1000:,.0f} " in said


@pytest.fixture
def gpu(seeming_gpu: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that seems to have a GPU, whose machine code is PTX, and ncu; gives the folder of the latter."""
    monkeypatch.setattr(graphs_run, "assemble", lambda ptx, arch: SimpleNamespace(cubin=ptx.encode()))
    return seeming_gpu


@pytest.mark.nvcc
@pytest.mark.usefixtures("gpu")
def test_on_a_gpu_rows_have_times_and_rates(degrees: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan = GraphPlan((degrees,), ("power_law",), ("fast", "wrong"), on=Platform.GPU, size="small")
    table = graphs_run.run(plan)
    (cell,) = table.cells
    plain, fast, wrong = cell.rows
    assert (table.on, plain.void, fast.void, wrong.void) == ("Stand-in GPU", "", "", "degrees are wrong")
    assert plain.times is not None
    assert len(plain.times.milliseconds) == REPEATS
    assert cell.mteps["plain"] == pytest.approx(cell.edges / plain.times.median / 1e3)
    assert set(cell.mteps) == {"plain", "fast"}
    assert plain.counted is None
    assert (cell.counted_size, cell.uncounted) == ("", "")
    print_graphs(table, console(132))
    said = capsys.readouterr().out
    assert f" {plain.times.median:.3f} " in said
    assert not any(word in said for word in ("active/on", "KB", "ncu"))


@pytest.mark.nvcc
@pytest.mark.usefixtures("gpu")
def test_ncu_fills_the_columns_that_the_emulator_fills(
    degrees: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "found.json"
    forms = ["--form", "fast", "--form", "wrong", "--policy", "block"]
    command = ["bench", "graphs", degrees, "--input", "road", "--size", "small", *forms, "--json", str(file)]
    found = []
    for on in ("emulator", "gpu"):
        assert main([*command, "--counters", "--on", on]) == 1
        (cell,) = json.loads(file.read_text())["cells"]
        assert (cell["counted_size"], cell["uncounted"]) == ("small", "")
        found.append({row["form"]: row["counted"] for row in cell["rows"]})
        said = capsys.readouterr().out
        assert f" {found[-1]['fast']['sectors'] * 32 / 1000:,.0f} " in said
    ours, theirs = found
    assert [form for form, counted in theirs.items() if counted] == ["plain", "fast", "fast@block"]
    for form in ("plain", "fast", "fast@block"):
        # The stand-in runs the emulator. Nsight Compute does not know what a pass has added.
        assert set(ours[form]) - set(theirs[form]) == {"useful_lanes", "useful_efficiency"}
        assert theirs[form]["sectors"] == ours[form]["sectors"] > 0
        assert theirs[form]["warp_instructions"] == ours[form]["warp_instructions"]
        assert theirs[form]["warp_efficiency"] == pytest.approx(ours[form]["warp_efficiency"], abs=1e-4)
    assert "counted by ncu (SASS)" in said


@pytest.mark.nvcc
def test_ncu_counts_all_searches(degrees: str, gpu: Path) -> None:
    with (Path(degrees) / "workload.py").open("a") as workload:
        workload.write("def begin(offsets, source):\n    return {'source': source}\n")
    plan = GraphPlan((degrees,), ("road",), ("fast",), on=Platform.GPU, size="small", counters=True)
    (once,), (twice,) = (graphs_run.run(replace(plan, sources=sources)).cells for sources in (1, 2))
    assert (once.sources, twice.sources, twice.uncounted) == (1, 2, "")
    for ours, theirs in zip(once.rows, twice.rows, strict=True):
        assert ours.counted is not None
        assert theirs.counted == ours.counted + ours.counted

    (gpu / "ncu").write_text("#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM - no permission'\n")
    (cell,) = graphs_run.run(plan).cells
    assert cell.uncounted.startswith("ncu cannot read the GPU's counters")
    assert [(row.void, row.counted, row.times is not None) for row in cell.rows] == [("", None, True)] * 2


@pytest.mark.nvcc
@pytest.mark.usefixtures("gpu")
def test_once_makes_and_runs_the_forms_that_are_named(
    degrees: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(once, "assembled", lambda name, ptx, arch: Build(name, ptx, ptx.encode(), {}))
    options = ["--graph", "road", "--cubins", str(tmp_path / "cubins")]
    assert once.main([degrees, "ccc", "fast@block", *options]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "degrees ccc: right, 1 launch",
        "degrees fast@block: right, 2 launches",
    ]
    assert once.main([degrees, "wrong", *options]) == once.WRONG
    assert capsys.readouterr().out == "degrees wrong: degrees are wrong, 2 launches\n"
    with pytest.raises(SystemExit):
        once.main([degrees, "sideways", *options])


@pytest.mark.nvcc
def test_forms_run_with_other_policies_too(degrees: str) -> None:
    (cell,) = graphs_run.run(GraphPlan((degrees,), ("road",), ("fast",), ("block",))).cells
    assert [(row.form, row.void) for row in cell.rows] == [("plain", ""), ("fast", ""), ("fast@block", "")]
    assert cell.speedups["fast"] > cell.speedups["fast@block"]


@pytest.mark.nvcc
def test_what_ccc_refuses_is_no_failure(degrees: str) -> None:
    source = Path(degrees) / "degrees.cu"
    source.write_text(SOURCE.replace("++degree;", "degree += __activemask() != 0;"))
    plan = GraphPlan((degrees,), ("road",), ("ccc", "fast"))
    (cell,) = graphs_run.run(plan).cells
    assert [(row.form, row.failed) for row in cell.rows] == [
        ("plain", False),
        ("ccc", False),
        ("fast", False),
    ]
    assert cell.rows[1].void.startswith("CCC")
    assert cell.rows[0].void == cell.rows[2].void == ""


def test_forms_and_graphs_are_those_that_are_asked_for(degrees: str, tmp_path: Path) -> None:
    file = tmp_path / "graph.el"
    file.write_text("0 1\n")
    (policies,) = jobs(GraphPlan(("bfs",), ("road",), ("queue", "pull"), ("warp", "sub_warp<8>", "warp")))
    assert policies.forms == ("plain", "queue", "queue@warp", "queue@sub_warp<8>", "pull")
    assert policies.policies == ("warp", "sub_warp<8>")
    found = jobs(GraphPlan((degrees, "bfs"), ("road", str(file)), ("queue", "fast")))
    assert [(job.algorithm.name, job.input, job.forms) for job in found] == [
        ("degrees", "road", ("plain", "fast")),
        ("degrees", str(file), ("plain", "fast")),
        ("bfs", "road", ("plain", "queue")),
        ("bfs", str(file), ("plain", "queue")),
    ]
    every = jobs(GraphPlan(on=Platform.GPU))
    assert {job.forms for job in every if job.name == "tc"} == {("plain", "cte")}
    assert [job.input for job in every if job.name == "tc"] == ["rmat", "road", "power_law", "erdos_renyi"]
    assert [job.input for job in jobs(GraphPlan()) if job.name == "tc"] == ["rmat", "road"]
    assert [job.input for job in every if job.name == "bc"] == [
        "rmat",
        "delaunay",
        "power_law",
        "erdos_renyi",
    ]
    assert [job.input for job in jobs(GraphPlan()) if job.name == "bc"] == ["rmat", "delaunay"]


def test_sub_warp_stands_for_all_widths() -> None:
    (job,) = jobs(GraphPlan(("cc",), ("road",), ("cte",), ("sub_warp<4>", "sub_warp")))
    assert job.policies == tuple(f"sub_warp<{width}>" for width in (4, 2, 8, 16, 32))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nothing"], "error[CCC090]: unknown workload `nothing`"),
        (["bfs", "--input", "nowhere"], "error[CCC091]: there is no input `nowhere`"),
        (["bfs", "--form", "triangular"], "error[CCC091]: there is no form `triangular`"),
        (["bfs", "--size", "huge"], "error[CCC091]: there is no size `huge`"),
        (["bfs", "--policy", "circle<3>"], "error[CCC091]: there is no policy `circle<3>`"),
        (["bfs", "--policy", "sub_warp<3>"], "error[CCC091]: there is no policy `sub_warp<3>`"),
        (["bfs", "--headers", "a=b"], "only `bench cte` takes it"),
    ],
)
def test_names_of_nothing_are_told(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "graphs", *options]) != 0
    assert said in capsys.readouterr().err


def test_others_take_no_form(capsys: pytest.CaptureFixture[str]) -> None:
    for option in (["--form", "queue"], ["--counters"]):
        assert main(["bench", "cte", "bfs", *option]) != 0
        assert "only `bench graphs` takes it" in capsys.readouterr().err
    assert main(["bench", "ccc", "--input", "rmat"]) != 0
    assert "only `bench cte` and `bench graphs` take it" in capsys.readouterr().err


def test_a_file_that_is_no_graph_is_told_before_anything_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.mtx"
    file.write_bytes(b"garbage\n1 2\n")
    monkeypatch.setattr(graphs_run, "compiled", None)
    assert main(["bench", "graphs", "bfs", "--input", str(file)]) == 1
    assert capsys.readouterr().err.startswith(f"error[CCC101]: cannot read `{file}` as Matrix Market\n")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("bfs", "p sp 0 0\n", "error[CCC101]: the graph has no vertices\n"),
        ("sssp", "p sp 2 1\na 1 2 2147483648\n", "error[CCC101]: an edge is too long: 2147483648\n"),
    ],
)
def test_a_graph_that_an_algorithm_cannot_take_is_told_once(
    name: str,
    content: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "g.gr"
    file.write_text(content)
    monkeypatch.setattr(graphs_run, "compiled", None)
    assert main(["bench", "graphs", name, "--input", str(file)]) == 1
    assert capsys.readouterr().err.startswith(said)


def test_each_form_adds_to_the_time_that_a_job_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def call(function: object, *arguments: object, seconds: float) -> graphs_run.Ran:
        given.append(seconds)
        return graphs_run.Ran((), 0, 1)

    monkeypatch.setattr(graphs_run.apart, "call", call)
    graphs_run.measured(
        "bfs", "rmat", dict.fromkeys(("plain", "queue", "pull"), ""), Platform.EMULATOR, "small", 1
    )
    assert given == [3 * graphs_run.SECONDS]
    graphs_run.measured("bfs", "rmat", {"plain": ""}, Platform.EMULATOR, "small", 1, sources=16)
    assert given[1] == 16 * graphs_run.SECONDS


@pytest.mark.nvcc
def test_searches_from_several_vertices_are_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DCTE_POLICY=cte::one_per_lane")  # whose code is short
    ring = tmp_path / "ring.txt"
    ring.write_text("".join(f"{v} {(v + 1) % 30}\n" for v in range(30)) + "3 17\n4 9\n")
    plan = GraphPlan(("bfs",), (str(ring),), ("queue",), sources=2)
    (cell,) = graphs_run.run(plan).cells
    assert (cell.sources, [row.void for row in cell.rows]) == (2, ["", ""])
    inputs = load("bfs").sample(str(ring)).inputs("small", 1)
    first, second = drawn_sources(np.asarray(inputs["offsets"]), 2, 1)
    assert first != second
    depths = [
        int(load("bfs").module.reference({**inputs, "source": source})["levels"].max())
        for source in (first, second)
    ]
    # The last launch of each search reaches no vertex.
    assert [row.iterations for row in cell.rows] == [sum(depths) + 2] * 2
    assert cell.edges == 2 * len(np.asarray(inputs["neighbors"]))


def test_a_sum_of_searches_is_wrong_where_one_is() -> None:
    launch = LaunchResult("level 0", "k", (1, 1, 1), (32, 1, 1))
    runs = [
        BuildResult("queue", (launch,), (), run_times=Times(times), elapsed=Times((9.0,)))
        for times in ((1.0, 2.0, 3.0), (10.0, 20.0))
    ]
    added = graphs_run._together(dict(zip(("a: ", "b: "), runs, strict=True)))
    assert added.times == Times((11.0, 22.0))
    assert added.elapsed == Times((18.0,))
    assert [one.label for one in added.launches] == ["a: level 0", "b: level 0"]
    runs[1] = BuildResult("queue", (), (), "3 wrong levels")
    assert graphs_run._together(dict(zip("ab", runs, strict=True))).wrong == "b3 wrong levels"


def test_sources_have_edges_and_are_no_more_than_there_are() -> None:
    offsets = np.array([0, 0, 2, 2, 3, 3])
    assert sorted(drawn_sources(offsets, 16, 7)) == [1, 3]
    assert drawn_sources(np.zeros(5, int), 3, 7) == ()
