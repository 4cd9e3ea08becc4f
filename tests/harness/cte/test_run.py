"""`cccopt bench cte` over workloads of our own, on the emulator and on a stand-in for a GPU that runs the emulator."""

from __future__ import annotations

import ctypes
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cccopt.cli.main import main
from cccopt.harness import once
from cccopt.harness.builds import Build, NoBuild
from cccopt.harness.choices import Platform
from cccopt.harness.cte import preparation
from cccopt.harness.cte import run as cte_run
from cccopt.harness.cte import vendor as cte_vendor
from cccopt.harness.cte import workload as cte_workload
from cccopt.harness.cte.plan import CtePlan, jobs
from cccopt.harness.cte.workload import CteWorkload
from cccopt.harness.on_gpu import REPEATS
from tests.workers.driver import make_driver

pytestmark = pytest.mark.nvcc

# Sums of rows: a lane a row, but for `sub_warp<W>` W lanes. `block` is refused, `warp_staged` ends in a fault, and
# `warp` forgets the last row.
SOURCE = """
namespace cte {
struct one_per_lane { static constexpr int lanes = 1; };
template <int W> struct sub_warp { static constexpr int lanes = W; };
struct warp : one_per_lane {};
struct warp_staged : one_per_lane {};
struct automatic : sub_warp<4> {};
struct block : one_per_lane {};
template <class> constexpr bool is_block = false;
template <> constexpr bool is_block<block> = true;
template <class> constexpr bool is_warp = false;
template <> constexpr bool is_warp<warp> = true;
template <class> constexpr bool is_staged = false;
template <> constexpr bool is_staged<warp_staged> = true;
}
#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif
template <class Policy>
__device__ void sum(int rows, const int* offsets, const int* values, int* sums) {
  static_assert(!cte::is_block<Policy>, "sums are not made by blocks: choose another policy");
  const int thread = threadIdx.x + blockIdx.x * blockDim.x;
  const int row = thread / Policy::lanes, lane = thread % Policy::lanes;
  if (row >= rows - cte::is_warp<Policy>) return;
  int mine = 0;
  for (int i = offsets[row] + lane; i < offsets[row + 1]; i += Policy::lanes) mine += values[i];
  atomicAdd(sums + row + (cte::is_staged<Policy> ? 1 << 28 : 0), mine);
}
extern "C" __global__ void rows(int rows, const int* offsets, const int* values, int* sums) {
  sum<CTE_POLICY>(rows, offsets, values, sums);
}
#ifdef CTE_FORM_MERGE_PATH
extern "C" __global__ void rows_merge_path(int rows, const int* offsets, const int* values, int* sums) {
  sum<cte::sub_warp<32>>(rows, offsets, values, sums);
}
extern "C" __global__ void rows_fix_up(int* sums) {}
#endif
"""

WORKLOAD = """
import numpy as np
from cccopt.harness.workload import Launch

INPUTS = ("ragged", "even", "odd")
FORMS = ("tasks", "merge_path")
RESULTS = ("sums",)

def inputs(name, size, seed):
    rows = {"small": 133, "full": 266}[size]
    lengths = {"ragged": np.arange(rows) * 7 % 33, "even": np.full(rows, 4), "odd": np.arange(rows) % 2}[name]
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    values = np.random.default_rng(seed).integers(1, 9, offsets[-1], dtype=np.int32)
    values.flags.writeable = False
    return {"rows": rows, "offsets": offsets, "values": values, "sums": np.zeros(rows, np.int32)}

def launches(state, form):
    arguments = (np.int32(state["rows"]), state["offsets"], state["values"], state["sums"])
    grid = (-(-state["rows"] // 4), 1, 1)
    yield Launch("rows" if form == "tasks" else "rows_" + form, grid, (128, 1, 1), arguments)
    if form == "merge_path":
        yield Launch("rows_fix_up", (1, 1, 1), (32, 1, 1), (state["sums"],))

def reference(inputs):
    ends = np.concatenate(([0], np.cumsum(inputs["values"])))[inputs["offsets"]]
    return {"sums": np.diff(ends)}

def check(result, expected):
    wrong = (result["sums"] != expected["sums"]).sum()
    return f"{wrong} sums are wrong" if wrong else ""

def least_bytes(inputs):
    return 4 * len(inputs["values"]) + 8 * inputs["rows"]
"""

SPMV = """
def spmv(state):
    x = np.zeros(1, np.float32)
    return 1, 1, 1, state["offsets"], state["offsets"], state["values"], x, state["sums"]
"""

GOOD = ("one_per_lane", "sub_warp<4>", "sub_warp<32>", "automatic", "kernel_merge_path")


def folder_of(folder: Path, name: str = "rows", more: str = "") -> str:
    (folder / name).mkdir()
    (folder / name / f"{name}.cu").write_text(SOURCE)
    (folder / name / "workload.py").write_text(WORKLOAD + more)
    return str(folder / name)


def bench(folder: str, tmp_path: Path, *options: str) -> tuple[int, Any]:
    """Exit status and JSON."""
    told = tmp_path / "table.json"
    status = main(["bench", "cte", folder, "--json", str(told), *options])
    return status, json.loads(told.read_text())


def asked(*builds: str) -> list[str]:
    return [word for build in builds for word in ("--policy", build)]


def rows(cell: Any) -> dict[str, Any]:
    return {row["build"]: row for row in cell["rows"]}


def line(text: str, *words: str) -> list[str]:
    """The cells of the first line that has these ``words``, from there on."""
    for cells in map(str.split, text.splitlines()):
        for start in range(len(cells)):
            if cells[start : start + len(words)] == list(words):
                return cells[start + len(words) :]
    raise AssertionError(words)


_MADE: dict[str, Build | NoBuild] = {}


@pytest.fixture(autouse=True)
def made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds are made once for all tests, and the stand-in's machine code is PTX."""
    build = cte_workload.build

    def kept(workload: CteWorkload, name: str, arch: str) -> Build | NoBuild:
        if name not in _MADE:
            made = build(workload, name, arch)
            _MADE[name] = made if isinstance(made, NoBuild) else replace(made, cubin=made.ptx.encode())
        return _MADE[name]

    monkeypatch.setattr(preparation, "build", kept)
    monkeypatch.setattr(cte_workload, "build", kept)


@pytest.fixture
def gpu(seeming_gpu: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that seems to have a GPU and ncu; gives the folder of the latter."""
    monkeypatch.setattr(cte_run, "COPIED_BYTES", 1 << 20)
    return seeming_gpu


def test_on_the_emulator_warp_instructions_stand_for_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    figures = tmp_path / "figures"
    status, table = bench(folder_of(tmp_path), tmp_path, *asked(*GOOD), "--figures", str(figures))
    assert status == 0
    ragged, even = table["cells"]
    assert (ragged["workload"], ragged["input"], ragged["size"], even["input"]) == (
        "rows",
        "ragged",
        "small",
        "even",
    )
    assert tuple(rows(ragged)) == GOOD
    one, wide, form = (rows(ragged)[name] for name in ("one_per_lane", "sub_warp<32>", "kernel_merge_path"))
    counts = {name: row["counted"]["issues"]["warp_instructions"] for name, row in rows(ragged).items()}
    ours, regular = (rows(cell)["one_per_lane"]["counted"]["issues"] for cell in (ragged, even))
    assert ours["warp_efficiency"] < regular["warp_efficiency"]
    assert (one["kind"], form["kind"], form["launches"], one["launches"]) == ("policy", "kernel form", 2, 1)
    assert one["times"] is None
    assert [kernel["kernel"] for kernel in form["kernels"]] == ["rows_merge_path", "rows_fix_up"]
    assert wide["kernels"][0]["registers"] > 0
    assert ragged["speedups"]["sub_warp<32>"] == pytest.approx(
        counts["one_per_lane"] / counts["sub_warp<32>"]
    )
    best = min(counts["sub_warp<4>"], counts["sub_warp<32>"])
    assert ragged["speedups_over_sub_warp"]["automatic"] == pytest.approx(best / counts["automatic"])
    assert ragged["gigabytes"] == {}
    # What 133 rows of 0 to 32 take, in bytes.
    lengths = [7 * i % 33 for i in range(133)]
    assert ragged["least_bytes"] == 4 * sum(lengths) + 8 * 133

    said = capsys.readouterr().out
    shown = line(said, "rows", "ragged", "one_per_lane")
    assert shown[0] == "1.00x"
    assert f"{counts['one_per_lane']:,}" in shown
    assert "No times here" in said
    drawn = (figures / "cte-rows.svg").read_text()
    assert all(word in drawn for word in ("ragged", "even", "sub_warp&lt;4&gt;", "warp execution efficiency"))


def test_a_wrong_result_a_fault_and_a_refusal_void_their_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builds = ("one_per_lane", "warp", "warp_staged", "merge_path", "block", "automatic")
    folder = folder_of(tmp_path)
    status, table = bench(folder, tmp_path, "--input", "even", *asked(*builds))
    assert status == 1
    found = rows(table["cells"][0])
    assert found["warp"]["void"] == "1 sums are wrong"
    assert found["warp_staged"]["void"].startswith("CCC")
    assert "error" in found["merge_path"]["void"]
    assert [found[name]["failed"] for name in ("warp", "warp_staged", "merge_path")] == [True] * 3
    assert found["block"]["void"] == "sums are not made by blocks: choose another policy"
    assert not found["block"]["failed"]
    assert (found["one_per_lane"]["void"], found["automatic"]["void"]) == ("", "")
    said = capsys.readouterr().out
    assert line(said, "rows", "even", "one_per_lane")[-1] == "right"
    assert [line(said, name, "-")[-1] for name in ("warp", "block")] == ["WRONG", "none"]
    assert "rows warp: 1 sums are wrong" in said
    assert "rows block: sums are not made by blocks" in said
    # A refusal alone is no failure.
    assert bench(folder, tmp_path, "--input", "even", *asked("block"))[0] == 0


def test_on_a_gpu_times_rates_and_counts(
    tmp_path: Path, gpu: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Library rows: one that is not installed, and one that does not load."""
    library = tmp_path / "broken.so"
    library.write_text("no library")
    made = {"cub": cte_vendor.Library(library), "cusparse": NoBuild("cusparse", "no cusparse.h")}
    monkeypatch.setattr(cte_vendor, "build", lambda part, arch, folder: made[part])
    policies = ("sub_warp<8>", "warp_staged", "kernel_merge_path", "cusparse_alg1", "cub_segmented_reduce")
    folder = folder_of(tmp_path, more=SPMV)
    status, table = bench(folder, tmp_path, "--on", "gpu", "--input", "odd", *asked(*policies))
    assert status == 1
    assert (table["on"], table["arch"]) == ("Stand-in GPU", "sm_90")
    copy = table["copy"]
    assert copy["gigabytes"] == pytest.approx(2 * copy["bytes"] / copy["times"]["median"] / 1e6)
    (cell,) = table["cells"]
    found = rows(cell)
    assert (cell["size"], cell["uncounted"]) == ("full", "")
    for name in ("one_per_lane", "sub_warp<8>", "kernel_merge_path"):
        row = found[name]
        assert len(row["times"]["milliseconds"]) == REPEATS
        # The stand-in's instruction takes a microsecond, and its ncu counts them at the size that is timed.
        assert row["counted"]["issues"]["warp_instructions"] == round(1000 * row["times"]["median"])
        assert (row["counted"]["source"], row["counted"]["size"]) == ("ncu (SASS)", "full")
        assert cell["gigabytes"][name] == pytest.approx(cell["least_bytes"] / row["times"]["median"] / 1e6)
    assert found["warp_staged"]["void"].startswith("CCC095")
    assert found["cusparse_alg1"]["void"] == "no cusparse.h"
    assert not found["cusparse_alg1"]["failed"]
    assert found["cub_segmented_reduce"]["void"].startswith("CCC092: cannot measure")
    said = capsys.readouterr().out
    share = 100 * cell["gigabytes"]["one_per_lane"] / copy["gigabytes"]
    assert f"{share:.1f}" in line(said, "rows", "odd", "one_per_lane")
    assert "size full" in said.lower()


def test_many_launches_and_no_counters(
    tmp_path: Path, gpu: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cte_run, "PROFILED_LAUNCHES", 0)
    command = ("--on", "gpu", "--input", "odd", *asked("one_per_lane"))
    folder = folder_of(tmp_path)
    status, table = bench(folder, tmp_path, *command)
    counted = rows(table["cells"][0])["one_per_lane"]["counted"]
    assert (status, counted["size"], counted["source"]) == (0, "small", "ncu (SASS)")
    assert any(cell.endswith("s") for cell in line(capsys.readouterr().out, "odd", "one_per_lane"))

    (gpu / "ncu").write_text("#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM - no permission'\n")
    status, table = bench(folder, tmp_path, *command)
    same = rows(table["cells"][0])["one_per_lane"]["counted"]
    assert (status, same) == (0, {**counted, "source": "emulator (PTX)"})
    said = capsys.readouterr().out
    assert "rows odd: no counts from ncu: ncu cannot read" in said
    assert any(cell.endswith("e") for cell in line(said, "odd", "one_per_lane"))
    status, table = bench(folder, tmp_path, *command, "--no-profile")
    assert (status, rows(table["cells"][0])["one_per_lane"]["counted"]) == (0, None)


def test_where_nothing_compiles_all_rows_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        preparation, "build", lambda workload, name, arch: NoBuild(name, "CCC085: nvcc failed")
    )
    status, table = bench(folder_of(tmp_path), tmp_path, *asked("warp"), "--input", "even")
    assert status == 1
    assert [row["void"] for row in table["cells"][0]["rows"]] == ["CCC085: nvcc failed"] * 2


def test_what_there_is_is_told_after_each_job(tmp_path: Path) -> None:
    told: list[list[str]] = []
    plan = CtePlan((folder_of(tmp_path),), policies=("one_per_lane",))
    table = cte_run.run(plan, lambda so_far: told.append([cell.input for cell in so_far.cells]))
    assert told[-1] == [cell.input for cell in table.cells] == ["ragged", "even"]
    assert len(told) == 2


@pytest.mark.parametrize("on", ["emulator", "gpu"])
def test_workers_give_the_same_cells(
    on: str, tmp_path: Path, gpu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "driver").mkdir()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(make_driver(tmp_path / "driver")))
    folder = folder_of(tmp_path)
    command = ("--on", on, "--size", "small", *asked("one_per_lane"), "--input", "odd", "--input", "even")
    tables = [bench(folder, tmp_path, *command, "--workers", workers)[1] for workers in ("1", "2")]
    assert tables[0]["cells"] == tables[1]["cells"]
    assert [cell["input"] for cell in tables[1]["cells"]] == ["odd", "even"]


def test_once_runs_the_builds_of_an_input(
    tmp_path: Path, gpu: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [folder_of(tmp_path), "--input", "odd", "--cubins", str(tmp_path / "cubins")]
    assert once.main([command[0], "one_per_lane", "kernel_merge_path", *command[1:]]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "rows one_per_lane: right, 1 launch",
        "rows kernel_merge_path: right, 2 launches",
    ]
    command[2] = "even"
    assert once.main([command[0], "warp", *command[1:]]) == 1
    assert "1 sums are wrong" in capsys.readouterr().out
    assert once.main([command[0], "warp", *command[1:], "--unchecked"]) == 0
    assert capsys.readouterr().out == "rows warp: unchecked, 1 launch\n"
    assert once.main([command[0], "block", *command[1:]]) == 2
    assert once.main([command[0], "warp@before", *command[1:]]) == 2
    assert "no such build: CCC091: there are no headers `before`" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        once.main([command[0], "nothing", *command[1:]])


def test_other_headers_stand_beside_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the other folder have `automatic` take other lanes."""
    folder = tmp_path / "before"
    folder.mkdir()
    (folder / "cte.cuh").write_text("")
    (folder / "lanes.h").write_text("")
    name = folder_of(tmp_path)
    told = SOURCE.replace("automatic : sub_warp<4>", "automatic : sub_warp<LANES>")
    chosen = "#if __has_include(<lanes.h>)\n#define LANES 1\n#else\n#define LANES 4\n#endif\n"
    (Path(name) / "rows.cu").write_text(chosen + told)
    options = ["--input", "ragged", *asked("automatic"), "--headers", f"before={folder}"]
    _MADE.clear()
    status, table = bench(name, tmp_path, *options)
    _MADE.clear()
    (cell,) = table["cells"]
    assert status == 0
    assert list(rows(cell)) == ["one_per_lane", "automatic", "automatic@before"]
    assert rows(cell)["automatic@before"]["kind"] == "other headers"
    counts = [row["counted"]["issues"]["warp_instructions"] for row in cell["rows"]]
    assert counts[1] != counts[0]
    said = capsys.readouterr().out
    ratio = counts[2] / counts[1]
    assert (
        f"automatic over automatic@before, 1 input: geometric mean {ratio:.2f}x, {ratio:.2f}x to {ratio:.2f}x"
        in said
    )


def test_on_a_gpu_other_headers_are_timed_and_counted(tmp_path: Path, gpu: Path) -> None:
    folder = tmp_path / "before"
    folder.mkdir()
    (folder / "cte.cuh").write_text("")
    forms = asked("automatic", "kernel_merge_path")
    options = ["--on", "gpu", "--input", "even", *forms, "--headers", f"before={folder}"]
    status, table = bench(folder_of(tmp_path), tmp_path, *options)
    found = rows(table["cells"][0])
    assert status == 0
    for ours in ("automatic", "kernel_merge_path"):
        theirs = found[f"{ours}@before"]
        assert theirs["launches"] == found[ours]["launches"]
        assert theirs["counted"] == found[ours]["counted"]
        assert theirs["times"]["milliseconds"]


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ("a=one --headers a=two", "error[CCC091]: several header folders are named `a`"),
        ("before", "error[CCC089]: cannot use the argument `--headers before`"),
        ("=folder", "it is not NAME=FOLDER"),
        ("before=nowhere", "error[CCC091]: the headers `before` are not in"),
    ],
)
def test_headers_that_are_none(
    headers: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "cte", folder_of(tmp_path), "--headers", *headers.split()]) == 1
    assert said in capsys.readouterr().err


def test_an_input_that_fails_voids_its_rows_alone(tmp_path: Path) -> None:
    fails = """
of_name = inputs
def inputs(name, size, seed):
    from cccopt.diagnostic import CccError, error
    if name == "even":
        raise CccError(error("CCC086", "cannot read it"))
    return of_name(name, size, seed)
"""
    status, table = bench(folder_of(tmp_path, more=fails), tmp_path, *asked("automatic"))
    ragged, even = (rows(cell)["automatic"] for cell in table["cells"])
    assert (status, ragged["void"]) == (1, "")
    assert even["void"] == "its input failed: CCC086: cannot read it"


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--input", "nothing"], "CCC091", "choose one of `ragged`, `even`, `odd`"),
        (["--policy", "nothing"], "CCC091", "`automatic`, `kernel_merge_path`"),
        (["--size", "huge"], "CCC091", "choose one of `small`, `full`"),
        (["--policy", "cusparse_alg1"], "CCC091", "there is no build `cusparse_alg1`"),
    ],
)
def test_unknown_names_are_told_with_what_there_is(
    options: list[str], code: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "cte", folder_of(tmp_path), *options]) == 1
    told = capsys.readouterr().err
    assert f"error[{code}]" in told
    assert said in told


def test_inputs_are_outermost_and_a_name_may_stand_for_several(tmp_path: Path) -> None:
    names = tuple(folder_of(tmp_path, name) for name in ("ours", "theirs"))
    found = jobs(CtePlan(names, policies=("sub_warp",)))
    told = [(job.input, job.workload.name) for job in found]
    assert told == [(name, who) for name in ("ragged", "even") for who in ("ours", "theirs")]
    assert found[0].builds == ("one_per_lane", *(f"sub_warp<{width}>" for width in (2, 4, 8, 16, 32)))
    assert {job.input for job in jobs(CtePlan(names, on=Platform.GPU))} == {"ragged", "even", "odd"}
    assert [job.input for job in jobs(CtePlan(names[:1], inputs=("odd", "even")))] == ["odd", "even"]


def test_a_file_is_an_input_of_those_that_take_matrices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = tmp_path / "a.mtx"
    matrix.write_text("")
    names = (folder_of(tmp_path, "ours"), folder_of(tmp_path, "theirs", "INPUTS += ('rmat',)"))
    monkeypatch.setattr("cccopt.harness.cte.plan.names", lambda: names)
    found = jobs(CtePlan(inputs=(str(matrix),)))
    assert [(job.workload.name, job.input) for job in found] == [("theirs", str(matrix))]


def test_unknown_workloads_and_options_of_others_are_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "cte", "nothing"]) == 1
    assert "error[CCC090]" in capsys.readouterr().err
    assert main(["bench", "ccc", "bfs", "--input", "rmat"]) == 1
    assert "error[CCC089]: cannot use the argument `--input`" in capsys.readouterr().err
    assert main(["bench", "cte", folder_of(tmp_path), "--input", __file__]) == 1
    assert "has none of the inputs" in capsys.readouterr().err
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "odd.cu").write_text("")
    (tmp_path / "odd" / "workload.py").write_text("INPUTS = FORMS = ()\n")
    assert main(["bench", "cte", str(tmp_path / "odd")]) == 1
    assert (
        "does not define `inputs`, `launches`, `reference`, `check`, `least_bytes`" in capsys.readouterr().err
    )


def test_a_library_is_called_with_addresses_and_numbers(tmp_path: Path) -> None:
    """A library of ours stands in for CUB's: it notes what it was called with."""
    source = tmp_path / "library.cpp"
    source.write_text(
        """
extern "C" int note(long long rows, long long* seen, const char* text) { *seen = rows + text[0]; return rows == 7; }
extern "C" const char* vendor_error(int status) { return status == 1 ? "it is seven" : "?"; }
"""
    )
    subprocess.run(["g++", "-shared", "-fPIC", source, "-o", tmp_path / "library.so"], check=True)
    kernel = cte_vendor.Library(tmp_path / "library.so").kernel("note")
    seen, text = ctypes.c_longlong(), ctypes.create_string_buffer(b"A")
    places = [ctypes.addressof(seen), ctypes.addressof(text)]
    big = np.int64(1 << 40)
    kernel.function(big, *places, grid=(1, 1, 1), block=(1, 1, 1))
    assert seen.value == (1 << 40) + 65
    with pytest.raises(Exception, match=r"CCC095(?s:.*)it is seven"):
        kernel.function(np.int64(7), *places, grid=(1, 1, 1), block=(1, 1, 1))


def test_cub_compiles(tmp_path: Path) -> None:
    cub = cte_vendor.build("cub", "sm_90", tmp_path)
    assert isinstance(cub, cte_vendor.Library)
    cub.kernel("cub_segmented_reduce_float32")
    cub.kernel("cub_segmented_reduce_float64")


def test_cusparse_is_there_or_says_what_lacks(tmp_path: Path) -> None:
    cusparse = cte_vendor.build("cusparse", "sm_90", tmp_path)
    assert isinstance(cusparse, cte_vendor.Library) or "cusparse" in cusparse.why
