"""The command: a folder of one's own, the JSON, and exit status 1 for a wrong result."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cccopt.cli.main import main
from cccopt.harness import sweep
from cccopt.harness.choices import BuildName
from tests.workers.driver import make_driver

pytestmark = pytest.mark.nvcc

SOURCE = """
extern "C" __global__ void twice(const int* numbers, int* doubled, int count) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < count) doubled[i] = 2 * numbers[i];
}
"""

WORKLOAD = """
import numpy as np
from cccopt.harness.workload import Launch

SIZES = ("demo", "small")

def inputs(size, seed):
    numbers = np.arange(seed, seed + 100, dtype=np.int32)
    return {"numbers": numbers, "doubled": np.zeros_like(numbers)}

def launches(state):
    arguments = (state["numbers"], state["doubled"], np.int32(100))
    yield Launch("twice", (2, 1, 1), (64, 1, 1), arguments)

def reference(inputs):
    return {"doubled": FACTOR * inputs["numbers"]}

def check(result, expected):
    return "" if (result["doubled"] == expected["doubled"]).all() else "not doubled"
"""


def sample(folder: Path, factor: int, *, name: str = "twice", before: str = "") -> str:
    folder = folder / name
    folder.mkdir()
    (folder / f"{name}.cu").write_text(SOURCE)
    (folder / "workload.py").write_text(before + WORKLOAD.replace("FACTOR", str(factor)))
    return str(folder)


def test_a_folder_of_ones_own_without_annotations_is_the_same_before_and_after(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tmp_path / "found.json"
    assert main(["bench", sample(tmp_path, 2), "--seed", "7", "--json", str(found)]) == 0
    assert "+0.0 %" in capsys.readouterr().out
    (measurement,) = json.loads(found.read_text())["measurements"]
    assert (measurement["workload"], measurement["size"], measurement["seed"]) == ("twice", "demo", 7)
    plain, marked, ccc = measurement["builds"]
    assert plain["launches"] == marked["launches"] == ccc["launches"]
    assert plain["counts"]["active_lanes"] > 0
    assert plain["counts"]["warp_efficiency"] < 1


def test_a_wrong_result_is_exit_status_1_and_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", sample(tmp_path, 3), "--size", "small"]) == 1
    said = capsys.readouterr().out
    assert said.count("wrong result") == 3
    assert "not doubled" in said
    assert "total" not in said


def test_a_workload_that_fails_does_not_keep_others_from_being_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tmp_path / "found.json"
    ours = sample(tmp_path, 2)
    assert main(["bench", ours, "nothing", ours, "--size", "small", "--json", str(found)]) == 1
    assert len(json.loads(found.read_text())["measurements"]) == 2
    captured = capsys.readouterr()
    assert captured.out.count("twice (small, sm_90)") == 2
    assert captured.err.count("error[CCC090]") == 1


def test_workers_measure_what_one_process_measures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = [sample(tmp_path, 2 + number // 2, name=f"s{number}") for number in range(3)]
    said, found = [], []
    for workers in ("1", "2"):
        file = tmp_path / f"{workers}.json"
        words = ["bench", *samples, "nothing", "--workers", workers, "--json", str(file)]
        assert main(words) == 1
        said.append(capsys.readouterr())
        found.append(json.loads(file.read_text()))
    assert said[0] == said[1]
    assert found[0] == found[1]
    assert [one["workload"] for one in found[1]["measurements"]] == ["s0", "s1", "s2"]
    assert "error[CCC090]: unknown workload `nothing`" in said[1].err


def test_a_worker_that_dies_costs_its_workload_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dying = sample(tmp_path, 2, name="dying", before="import os\nos.kill(os.getpid(), 9)\n")
    found = tmp_path / "found.json"
    assert main(["bench", dying, sample(tmp_path, 2), "--workers", "2", "--json", str(found)]) == 1
    assert [one["workload"] for one in json.loads(found.read_text())["measurements"]] == ["twice"]
    said = capsys.readouterr().err
    assert f"error[CCC121]: the worker running `{dying}` ended before finishing it\n" in said
    assert "status -9" in said


def test_what_the_first_workload_fails_with_ends_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = sample(tmp_path, 2, name="slow", before="import time\ntime.sleep(300)\n")
    assert main(["bench", "nothing", slow, "--workers", "2"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err.count("error[")) == ("", 1)


GPUS = """
import os, time
from pathlib import Path
HERE, GPU = Path(__file__).parent, os.environ["CUDA_VISIBLE_DEVICES"]
(HERE.parent / f"busy-{GPU}").mkdir()
time.sleep(1)
(HERE.parent / f"busy-{GPU}").rmdir()
(HERE / "gpu").write_text(GPU)
"""


def test_workers_on_gpus_have_one_each(
    tmp_path: Path,
    seeming_gpu: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(make_driver(tmp_path)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-12,1")
    samples = [sample(tmp_path, 2, name=f"s{number}", before=GPUS) for number in range(3)]
    words = ["bench", *samples, "--on", "gpu", "--size", "small", "--workers", "3"]
    assert main(words) == 0
    assert {(Path(folder) / "gpu").read_text() for folder in samples} == {"GPU-12", "1"}
    assert capsys.readouterr().err.startswith("note: workers: 2, not 3: 2 GPUs are visible, and timed runs")


@pytest.mark.parametrize("number", ["0", "-1", "two"])
def test_no_number_of_workers(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "bfs", f"--workers={number}"])
    assert f"`{number}` is not a number of workers" in capsys.readouterr().err


def test_the_sweep_is_a_table_json_and_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sweep, "BUILDS", (BuildName.PLAIN, BuildName.ALWAYS, BuildName.AUTO))
    found, figures = tmp_path / "found.json", tmp_path / "figures"
    command = ["bench", "sensitivity", "--size", "small", "--json", str(found), "--figures", str(figures)]
    assert main(command) == 0
    points = {(p["build"], p["length"], p["lanes"]): p for p in json.loads(found.read_text())["points"]}
    assert points.keys() == {
        (build, n, k)
        for build in (BuildName.PLAIN, BuildName.ALWAYS, BuildName.AUTO)
        for n, k in ((80, 4), (5, 16))
    }
    long, short = points[BuildName.ALWAYS, 80, 4], points[BuildName.ALWAYS, 5, 16]
    assert long["speedup"] > 2
    assert short["speedup"] < 1
    # The path of 80 is collected for 4 lanes and for 16, that of 5 for neither.
    assert points[BuildName.AUTO, 80, 4]["counts"] == long["counts"]
    assert points[BuildName.AUTO, 5, 16]["speedup"] == 1
    assert long["counts"]["useful_efficiency"] > points[BuildName.PLAIN, 80, 4]["counts"]["useful_efficiency"]
    said = capsys.readouterr().out
    assert f"always {short['speedup']:.2f}".split() == said.splitlines()[2].split()[1:]
    assert sorted(path.name for path in figures.iterdir()) == [
        "sensitivity-lanes.svg",
        "sensitivity-lengths.svg",
    ]


def test_no_gpu_is_one_message_and_exit_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    for workloads in (["bfs"], ["ccc"], ["sensitivity"]):
        assert main(["bench", *workloads, "--on", "gpu"]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("error[CCC092]") == 1


def test_unknown_workloads_and_sizes_are_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "ccc", "nothing"]) == 1
    assert "error[CCC090]" in capsys.readouterr().err
    assert main(["bench", "ccc", "bfs", "--size", "huge"]) == 1
    assert "error[CCC091]" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"garbage\n1 2\n", b"", bytes(range(256))])
def test_a_file_that_is_no_matrix_is_told_before_anything_is_compiled(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.mtx"
    file.write_bytes(content)
    monkeypatch.setattr("cccopt.harness.cte.preparation.build", None)
    assert main(["bench", "cte", "spmv", "--input", str(file), "--json", str(tmp_path / "j.json")]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"error[CCC101]: cannot read `{file}` as Matrix Market\n  --> {file}:1:1\n")
    assert not (tmp_path / "j.json").exists()
