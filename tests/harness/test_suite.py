"""The whole table, on the emulator and on a GPU for which a stand-in for PyCUDA and one for ncu run the emulator."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cccopt import resources
from cccopt.cli.main import main
from cccopt.harness import builds, ncu, suite
from cccopt.harness.choices import BuildName, Platform
from cccopt.harness.on_gpu import REPEATS
from cccopt.harness.result import Issues
from cccopt.harness.workload import Sample
from cccopt.toolchain.ptxas import Assembled, assemble
from cccopt.workers.queue import Worker
from tests.workers.driver import make_driver
from tests.workers.items import end_for_well

pytestmark = pytest.mark.nvcc


# A path of 64 dependent operations, which an eighth of the numbers take.
KERNELS = """
extern "C" __global__ void fill(unsigned n, unsigned* in) {
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x) in[i] = i * 2654435761u >> 7;
}
extern "C" __global__ void miss(unsigned n, const unsigned* out, unsigned* missing) {
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x) if (!out[i]) atomicAdd(missing, 1);
}
extern "C" __global__ void __launch_bounds__(64)
work(unsigned n, const unsigned* __restrict__ in, unsigned* __restrict__ out) {
#pragma ccc for
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    BARRIER
    out[i] = 1;
#pragma ccc if independent
    if ((in[i] & 7) == 3) {
      unsigned x = in[i];
#pragma unroll 4
      for (int k = 0; k < 64; ++k) x = (x ^ x >> 15) * 2246822519u;
      out[i] = x | 1;
    }
  }
}
"""

HANDWRITTEN = """
extern "C" __global__ void work(unsigned n, const unsigned* __restrict__ in, unsigned* __restrict__ out) {
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n + BEYOND; i += gridDim.x * blockDim.x) {
    unsigned x = in[i];
    bool path = (x & 7) == 3;
    for (int k = 0; k < 64; ++k) x = (x ^ x >> 15) * 2246822519u;
    out[i] = path ? x | 1 : OTHER;
  }
}
"""

WORKLOAD = """
import numpy as np
from cccopt.harness.workload import Launch, Zeros

SIZES = ("small", "full")
RESULTS = ("out", "missing")

def inputs(size, seed):
    n = 1999 if size == "full" else 999
    return {"n": n, "in": Zeros(n, np.uint32), "out": Zeros(n, np.uint32), "missing": Zeros(1, np.uint32)}

def setup(state):
    yield Launch("fill", (1, 1, 1), (64, 1, 1), (np.uint32(state["n"]), state["in"]))

def launches(state):
    arguments = (np.uint32(state["n"]), state["in"], state["out"])
    yield Launch("work", (2, 1, 1), (64, 1, 1), arguments)
    yield Launch("miss", (1, 1, 1), (64, 1, 1), (np.uint32(state["n"]), state["out"], state["missing"]), timed=False)

def reference(inputs):
    x = inputs["in"].copy()
    for _ in range(64):
        x = (x ^ x >> np.uint32(15)) * np.uint32(2246822519)
    return {"out": np.where(inputs["in"] & 7 == 3, x | 1, 1)}

def check(result, expected):
    if result["missing"][0]:
        return f"{result['missing'][0]} are missing"
    wrong = (result["out"] != expected["out"]).sum()
    return f"{wrong} are wrong" if wrong else ""
"""


def sample(folder: Path, name: str, *, barrier: str = "", beyond: str = "0", other: str = "1") -> str:
    """A workload with a peer written by hand."""
    peers = folder / "bench" / "handwritten"
    peers.mkdir(parents=True, exist_ok=True)
    (folder / name).mkdir()
    (folder / name / f"{name}.cu").write_text(KERNELS.replace("BARRIER", barrier))
    (folder / name / "workload.py").write_text(WORKLOAD)
    (peers / f"{name}.cu").write_text(HANDWRITTEN.replace("BEYOND", beyond).replace("OTHER", other))
    return str(folder / name)


_MADE: dict[tuple[str, str], builds.Build | builds.NoBuild] = {}


def made_once(ours: Sample, name: str, arch: str, form: str) -> builds.Build | builds.NoBuild:
    """What `builds.build` makes of a source, once for all tests; the stand-in's machine code is PTX."""
    source = peer_of(ours) if name == BuildName.HANDWRITTEN else ours.source
    key = (source.read_text(), name)
    if key not in _MADE:
        _MADE[key] = builds.build(ours, name, arch, form)
    return _MADE[key]


def peer_of(ours: Sample) -> Path:
    return ours.source.parent.parent / "bench" / "handwritten" / f"{ours.name}.cu"


@pytest.fixture
def samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One where all is well, and one that is refused and whose peer ends in a fault."""
    folder = resources.folder
    monkeypatch.setattr(
        builds.resources, "folder", lambda name: tmp_path / "bench" if name == "bench" else folder(name)
    )
    monkeypatch.setattr(suite, "build", made_once)

    def kept(ptx: str, arch: str) -> Assembled:
        return replace(assemble(ptx, arch), cubin=ptx.encode())

    monkeypatch.setattr(builds, "assemble", kept)
    return [
        sample(tmp_path, "well"),
        sample(tmp_path, "ill", barrier="__syncthreads();", beyond="100000000"),
    ]


def rows(table: Any, name: str) -> dict[str, Any]:
    (found,) = [sample for sample in table["samples"] if sample["name"] == name]
    return {row["build"]: row for row in found["rows"]}


def line(text: str, *words: str) -> list[str]:
    """The cells of the one line that begins so."""
    (found,) = [x.split() for x in text.splitlines() if x.split()[: len(words)] == list(words)]
    return found


def test_on_a_gpu_a_row_that_fails_voids_itself_alone(
    samples: list[str], seeming_gpu: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = tmp_path / "table.json"
    assert main(["bench", "ccc", *samples, "--on", "gpu", "--json", str(told)]) == 1
    table = json.loads(told.read_text())
    assert (table["on"], table["arch"], table["suite"]) == ("Stand-in GPU", "sm_90", "CCC")
    well, ill = rows(table, "well"), rows(table, "ill")
    assert [row["void"] for row in well.values()] == [""] * 5
    for row in well.values():
        (launch,) = row["launches"]
        assert launch["kernel"] == "work"
        assert len(launch["times"]["milliseconds"]) == REPEATS
        # The stand-ins count alike at the small size; times are those of what ncu counts at the other.
        assert row["profiled"]["warp_instructions"] == row["emulated"]["warp_instructions"]
        assert row["profiled"]["guarded_on_lanes"] == pytest.approx(
            row["emulated"]["guarded_on_lanes"], abs=2
        )
        at_full = row["profiled_as_timed"]["warp_instructions"]
        assert at_full > 1.5 * row["profiled"]["warp_instructions"]
        assert row["times"]["median"] == pytest.approx(at_full / 1000)
        assert row["counted"] == row["profiled_as_timed"]
        assert row["kernels"][0]["threads"] == 64
        assert row["kernels"][0]["limited_by"]
    assert well["always"]["kernels"][0]["shared_bytes_a_thread"] > 0
    assert well["always"]["emulated"]["useful_lanes"] < well["always"]["emulated"]["active_lanes"]
    assert well["always"]["contexts"][0]["bytes"] > 0
    speedups = table["samples"][0]["speedups"]
    plain, always = (well[name]["times"]["median"] for name in ("plain", "always"))
    assert speedups["always"] == pytest.approx(plain / always)
    assert speedups["always"] > 1

    assert [ill[name]["void"] for name in ("plain", "marked")] == ["", ""]
    for mode in ("always", "auto"):
        assert ill[mode]["void"].startswith("CCC03")
        assert not ill[mode]["failed"]
    assert ill["handwritten"]["void"].startswith("CCC095: a kernel failed on the GPU")
    assert ill["handwritten"]["failed"]

    said = capsys.readouterr().out
    assert line(said, "well", "plain")[-1] == "right"
    assert line(said, "ill", "plain")[-1] == "right"
    assert said.count("CCC095") == 2
    assert f"median of {REPEATS} repeats" in said
    assert "active/on, warp instr.: ncu (SASS) at the timed size (full)." in said
    assert line(said, "well", "plain")[7] == f"{well['plain']['profiled_as_timed']['warp_instructions']:,}"
    assert "points, size small" in said
    # The agreement of the counters.
    assert line(said, "well", "+0.0")[1:] == ["+0.0"] * 5


@pytest.mark.parametrize("on", ["gpu", "emulator"])
def test_workers_give_the_same_table(
    on: str, samples: list[str], seeming_gpu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(make_driver(tmp_path)))
    tables = []
    for workers in ("1", "2"):
        told = tmp_path / f"{workers}.json"
        words = ["bench", "ccc", *samples, "--on", on, "--size", "small", "--json", str(told)]
        assert main([*words, "--workers", workers]) == 1
        tables.append({**json.loads(told.read_text()), "seconds": None})
    assert tables[0] == tables[1]
    assert [found["name"] for found in tables[1]["samples"]] == ["well", "ill"]


def test_a_worker_that_dies_voids_its_sample_alone(
    samples: list[str], seeming_gpu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(make_driver(tmp_path)))
    monkeypatch.setattr(suite, "_timed", end_for_well)
    plan = suite.SuitePlan("CCC", tuple(samples), Platform.GPU, "small", builds=("plain",), profile=False)
    found = suite.run(plan, (Worker("0"), Worker("1")))
    well, ill = (one.rows[0] for one in found.samples)
    assert well.void == f"CCC121: the worker running `{samples[0]}` ended before finishing it"
    assert (well.failed, ill.void) == (True, "")


def test_without_counters_the_table_says_so(
    samples: list[str], seeming_gpu: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (seeming_gpu / "ncu").write_text(
        "#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'\n"
    )
    told = tmp_path / "table.json"
    assert main(["bench", "ccc", samples[0], "--on", "gpu", "--json", str(told)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "well: no counts from ncu: ncu cannot read the GPU's counters here (ERR_NVGPUCTRPERM)" in said
    assert "warp instr.: e: emulator (PTX) at size small." in said
    assert "minus emulator" not in said
    plain = rows(json.loads(told.read_text()), "well")["plain"]
    assert (plain["profiled"], plain["profiled_as_timed"]) == (None, None)
    assert plain["counted"] == plain["emulated"]


SIZES_ASKED = [
    # Sizes at which ncu counts, the size that is timed; where ncu is asked, and why it counted nothing there.
    (("small", "full"), "full", ["small", "full"], ("", "")),
    (("small",), "full", ["small", "full"], ("", "not full")),
    (("full",), "full", ["small"], ("not small", "")),
    (("small", "full"), "small", ["small"], ("", "")),
    ((), "small", ["small"], ("not small", "not small")),
]


@pytest.mark.parametrize(("counts_at", "timed", "asked", "uncounted"), SIZES_ASKED)
def test_ncu_is_asked_at_both_sizes_and_each_answer_has_its_place(
    samples: list[str],
    seeming_gpu: Path,
    monkeypatch: pytest.MonkeyPatch,
    counts_at: tuple[str, ...],
    timed: str,
    asked: list[str],
    uncounted: tuple[str, str],
) -> None:
    told = {"small": Issues(10, 320, 160), "full": Issues(1000, 32000, 24000)}
    met = []

    def profile(run: ncu.ProfiledRun, seconds: float) -> ncu.Profiled:
        assert run.builds == ("plain",)
        assert builds.cubin_file(run.cubins, "well", "plain").is_file()
        met.append(run.size)
        if run.size not in counts_at:
            return ncu.Profiled(why=f"not {run.size}")
        return ncu.Profiled({"plain": told[run.size]})

    monkeypatch.setattr(suite.ncu, "profile", profile)
    plan = suite.SuitePlan("CCC", (samples[0],), Platform.GPU, timed, builds=("plain",))
    (found,) = suite.run(plan).samples
    (row,) = found.rows
    assert met == asked
    at_timed = told[timed] if timed in met and timed in counts_at else None
    at_small = told["small"] if "small" in counts_at else None
    assert (row.void, row.profiled, row.profiled_as_timed) == ("", at_small, at_timed)
    assert row.counted == (at_timed or at_small or row.emulated)
    assert (found.uncounted, found.uncounted_as_timed) == uncounted


def test_where_ncu_fails_at_the_timed_size_its_counts_at_the_other_stand_in(
    samples: list[str], seeming_gpu: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = seeming_gpu / "ncu"
    program.write_text(
        program.read_text().replace(
            "\nlog,", "\nif 'full' in sys.argv: sys.exit('==ERROR== out of memory')\nlog,"
        )
    )
    assert main(["bench", "ccc", samples[0], "--on", "gpu"]) == 0
    said = capsys.readouterr().out
    assert "well: no counts from ncu at size full: ncu counted nothing: ==ERROR== out of memory" in said
    assert "active/on, warp instr.: s: ncu (SASS) at size small." in said
    assert [cell.endswith("s") for cell in line(said, "well", "plain")[5:8]] == [True, False, True]
    assert line(said, "well", "+0.0")[1:] == ["+0.0"] * 5


def test_on_the_emulator_a_wrong_result_voids_its_row(
    samples: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = sample(tmp_path, "wrong", other="2")
    told = tmp_path / "table.json"
    assert main(["bench", "ccc", wrong, "--json", str(told)]) == 1
    found = rows(json.loads(told.read_text()), "wrong")
    assert "are wrong" in found["handwritten"]["void"]
    assert found["plain"]["launches"][0]["counts"]["warp_instructions"] > 0
    assert found["auto"]["void"] == ""
    said = capsys.readouterr().out
    assert line(said, "handwritten")[-1] == "WRONG"
    assert line(said, "wrong", "plain")[-1] == "right"
    assert "wrong handwritten: " in said
