"""A run's file: what is written is read, what is wrong is named, runs add up."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cccopt.ccc.profitability import profile as profiles
from cccopt.ccc.profitability.launches import Launches
from cccopt.ccc.profitability.profile import RegionProfile, RunProfile
from cccopt.device.facts import DeviceFacts
from cccopt.diagnostic import CccError
from cccopt.profiling.merging import merged
from cccopt.profiling.run_file import (
    BranchCount,
    FunctionRun,
    LineCount,
    LoopCount,
    RunFile,
    UncountedKernel,
    as_text,
    of_json,
    read,
    schema,
    write,
)
from cccopt.profiling.sample import Sample, together

GROUPS = (2, 60, 0, 0, 3, 100)
HISTOGRAM = (10, *(0,) * 31, 5)
GPU = DeviceFacts("GPU", 132, 1_980_000, 2_619_000, 5120, 50 << 20, 2048, 233472, 65536, 32)
RUN = RunFile(
    runs=1,
    hardware=(GPU,),
    devices=("emulator",),
    sources={"a.cu": "0" * 64},
    kernels=RunProfile({"f": {1: RegionProfile("for", 1, 32, 10, 200, 40.5, 0.0, 3.25)}}),
    functions=(
        FunctionRun(
            "f",
            "f(int*)",
            True,
            "a.cu",
            launches=2,
            time_ns=1000,
            registers=32,
            launched=64,
            block=(64, 1, 1),
            sample=Sample(160, 640),
            lines=(
                LineCount("a.cu", 3, 5, 10, 200),
                LineCount("a.cu", 4, 1, 5, 160, 7, 19, GROUPS),
            ),
            branches=(
                BranchCount("a.cu", 3, 5, 15, 300, 160, 2, HISTOGRAM),
                BranchCount("a.cu", 3, 5, 15, 300, 20, 3),
            ),
            loops=(LoopCount("a.cu", 3, 5, 1, 32, 10, 200),),
        ),
        FunctionRun("g", "g()", True, "a.cu", counted=False, time_ns=7),
    ),
    uncounted=(UncountedKernel("cub::DeviceScan", 3, 500),),
    notes=("the counts of process 7 are lost",),
)


def changed(path: str, value: object) -> str:
    """The text of `RUN` with another value at a path."""
    data = json.loads(as_text(RUN))
    *outer, last = path.split(".")
    inner: Any = data
    for word in outer:
        inner = inner[int(word)] if isinstance(inner, list) else inner[word]
    if value is ...:
        del inner[last]
    elif isinstance(inner, list):
        inner[int(last)] = value
    else:
        inner[last] = value
    return json.dumps(data)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    for run in (RUN, RunFile()):
        write(tmp_path / "run.json", run)
        assert read(tmp_path / "run.json") == run
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_names_that_are_no_utf8_survive(tmp_path: Path) -> None:
    run = replace(RUN, notes=("caf\udce9.cu", "</script> 漢字"))
    write(tmp_path / "run.json", run)
    assert b"caf\xe9.cu" in (tmp_path / "run.json").read_bytes()
    assert read(tmp_path / "run.json") == run


def test_the_schema_describes_the_file() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(json.loads(as_text(RUN)), schema())
    jsonschema.validate(json.loads(as_text(RunFile())), schema())


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (RunFile, None),
        (FunctionRun, "function"),
        (LineCount, "line"),
        (BranchCount, "branch"),
        (LoopCount, "loop"),
        (Sample, "sample"),
        (UncountedKernel, "uncounted"),
        (RegionProfile, "region"),
        (DeviceFacts, "device"),
    ],
)
def test_the_schema_has_the_fields_of_the_classes_in_their_order(kind: type, name: str | None) -> None:
    described = schema() if name is None else schema()["$defs"][name]
    names = [field.name for field in fields(kind)]
    assert list(described["properties"]) == (["schema", *names] if name is None else names)


WRONG = [
    ("schema", 3, "its layout is version 3; cccopt"),
    ("schema", True, "its layout is version True; cccopt"),
    ("schema", ..., "it has no `schema`"),
    ("kernels", ..., "it has no `kernels`"),
    ("runs", -1, "`runs` is -1, not a count"),
    ("functions", {}, "`functions` is an object, not a list"),
    ("functions.0.name", ..., "it has no `functions[0].name`"),
    ("functions.0.name", 5, "`functions[0].name` is 5, not text"),
    ("functions.0.kernel", "yes", "`functions[0].kernel` is 'yes', not true or false"),
    ("functions.0.launches", 1.5, "`functions[0].launches` is 1.5, not a count"),
    ("functions.0.lines.1.warps", True, "`functions[0].lines[1].warps` is True, not a count"),
    ("functions.0.lines.1", 7, "`functions[0].lines[1]` is 7, not an object"),
    ("functions.0.branches.0.histogram", [1, 2], "a histogram of `f` does not have 33 numbers"),
    ("sources", {"a.cu": 1}, "`sources.a.cu` is 1, not text"),
    ("devices", "H100", "`devices` is 'H100', not a list"),
    ("kernels.f.1.lanes", float("inf"), "`lanes` is inf, not a count"),
]


@pytest.mark.parametrize(("path", "value", "why"), WRONG)
def test_what_is_wrong_is_named(tmp_path: Path, path: str, value: object, why: str) -> None:
    (tmp_path / "run.json").write_text(changed(path, value))
    with pytest.raises(CccError) as caught:
        read(tmp_path / "run.json")
    (found,) = caught.value.diagnostics
    assert found.code == "CCC069"
    assert why in found.why
    assert str(tmp_path / "run.json") in found.message


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "3", "[" * 100_000])
def test_other_files_are_no_runs(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    for reader in (read, profiles.read):
        with pytest.raises(CccError, match="CCC069"):
            reader(tmp_path / "run.json")


def test_keys_of_later_versions_are_passed_over() -> None:
    data = json.loads(as_text(RUN))
    data["sampled"] = data["functions"][0]["occupancy"] = data["functions"][0]["lines"][0]["misses"] = 1
    assert of_json(data) == RUN


# --- what `--ccc-profile` reads ---


def test_the_marked_regions_are_read_from_either_layout(tmp_path: Path) -> None:
    write(tmp_path / "two.json", RUN)
    profiles.write(tmp_path / "one.json", RUN.kernels)
    assert profiles.read(tmp_path / "one.json") == RUN.kernels
    assert profiles.read(tmp_path / "two.json").functions == RUN.kernels.functions
    assert read(tmp_path / "one.json") == RunFile(runs=1, kernels=RUN.kernels)


def test_launches_are_read_with_the_regions_if_all_are_of_one_gpu(tmp_path: Path) -> None:
    f, *others = RUN.functions
    timed = replace(f, launches=2, launched=24, block=(64, 3, 1), registers=40, shared=8, dynamic_shared=100)
    gpu = DeviceFacts("GPU", 132, *range(8))
    run = replace(RUN, functions=(timed, *others), hardware=(gpu,))
    write(tmp_path / "run.json", run)
    (found,) = profiles.read(tmp_path / "run.json").launches.items()
    # Twelve warps a launch, of which a block has six.
    assert found == (f.name, Launches(132, blocks=2.0, threads=192, registers=40, shared=108))
    write(tmp_path / "run.json", replace(run, hardware=(gpu, replace(gpu, name="another"))))
    assert profiles.read(tmp_path / "run.json").launches == {}


# --- several runs ---


def test_runs_add_up() -> None:
    twice = merged([RUN, RUN])
    f, g = twice.functions
    assert (twice.runs, f.launches, f.time_ns, g.time_ns) == (2, 4, 2000, 14)
    assert (f.warps, f.lanes) == (30, 720)
    assert f.registers == 32
    assert f.block == (64, 1, 1)
    assert f.sample == Sample(320, 1280)
    assert f.lines[0] == LineCount("a.cu", 3, 5, 20, 400)
    assert f.lines[1] == LineCount("a.cu", 4, 1, 10, 320, 14, 38, tuple(2 * n for n in GROUPS))
    assert [b.taken for b in f.branches] == [320, 40]
    assert f.branches[0].histogram == tuple(2 * n for n in HISTOGRAM)
    assert f.branches[1].histogram is None
    assert f.loops == (LoopCount("a.cu", 3, 5, 2, 64, 20, 400),)
    assert twice.uncounted == (UncountedKernel("cub::DeviceScan", 6, 1000),)
    assert twice.kernels.functions["f"][1].lanes == 400
    assert (twice.devices, twice.notes) == (RUN.devices, RUN.notes)
    assert merged([RunFile(), RUN]) == RUN
    assert merged([]) == RunFile()


def test_the_blocks_of_several_runs_fit_into_the_largest() -> None:
    f = RUN.functions[0]
    wide = replace(RUN, functions=(replace(f, block=(32, 4, 1)),))
    idle = replace(RUN, functions=(replace(f, block=None, launches=0),))
    untimed = replace(RUN, functions=(replace(f, block=None, launches=None),))
    assert merged([RUN, wide, idle]).functions[0].block == (64, 4, 1)
    assert merged([RUN, wide, untimed]).functions[0].block is None


def test_an_interval_is_that_of_differences_between_groups() -> None:
    """As by hand: distances of lanes from those of the efficiency of all, Student's t, and what was left out."""
    sample = Sample(16, 64)  # three of four warps left out
    assert sample.left_out == 0.75
    groups = ((100, 10), (180, 10), (0, 0), (200, 10))
    assert sample.error(groups, 480, 30) == pytest.approx(4.3 * math.sqrt(0.75 * 8400) / 30)
    assert sample.error(((100, 10), (0, 0)), 100, 10) is None
    assert sample.error((), 0, 0) is None
    assert Sample(5, 5).error(groups, 480, 30) == 0


def test_intervals_are_of_the_figures_that_groups_name() -> None:
    sample = Sample(16, 64)
    flat = (10, 100, 40, 2, 10, 180, 90, 4, 0, 0, 0, 0, 10, 200, 50, 3)
    branch = BranchCount("a.cu", 3, 5, 30, 480, 180, 9, groups=flat)
    function = FunctionRun("f", "f()", True, "a.cu", sample=sample, branches=(branch,))
    split, taken = function.error(branch, "split", "warps"), function.error(branch, "taken", "lanes")
    assert split == sample.error(((2, 10), (4, 10), (0, 0), (3, 10)), 9, 30)
    assert taken == sample.error(((40, 100), (90, 180), (0, 0), (50, 200)), 180, 480)
    loop = LoopCount("a.cu", 3, 5, 30, 480, 180, 900, groups=(10, 100, 40, 200, 20, 380, 140, 700))
    entries = function.error(loop, "warps", "entries")
    assert entries == sample.error(((40, 10), (140, 20)), 180, 30)
    assert replace(function, sample=None).error(branch, "split", "warps") is None


def test_groups_add_up_and_fold() -> None:
    assert together((), (1, 2)) == (1, 2)
    assert together((1, 2, 3, 4), (10, 20, 30, 40)) == (11, 22, 33, 44)
    assert together((1, 2, 3, 4), (10, 20)) == together((10, 20), (1, 2, 3, 4)) == (14, 26)


def test_time_from_one_run_and_counts_from_another() -> None:
    (f, *_) = RUN.functions
    counted = replace(RUN, functions=(replace(f, launches=None, time_ns=None, launched=None),))
    timed = replace(RUN, functions=(replace(f, lines=(), branches=(), loops=(), counted=False, sample=None),))
    for runs in ([counted, timed], [timed, counted]):
        assert merged(runs).functions == RUN.functions[:1]


def test_kernels_of_one_name_in_two_units_are_two() -> None:
    other = replace(RUN, functions=(replace(RUN.functions[0], unit="b.cu"),))
    assert [(f.name, f.unit, f.warps) for f in merged([RUN, other]).functions if f.warps] == [
        ("f", "a.cu", 15),
        ("f", "b.cu", 15),
    ]


def test_runs_of_different_texts_are_refused() -> None:
    with pytest.raises(CccError) as caught:
        merged([RUN, replace(RUN, sources={"a.cu": "1" * 64})])
    assert caught.value.diagnostics[0].code == "CCC068"
    assert "`a.cu`" in caught.value.diagnostics[0].message


def test_shares() -> None:
    f, g = RUN.functions
    assert f.idle_share == 1 - 360 / (32 * 15)
    assert g.idle_share is None
    assert f.lines[0].idle == 120
    assert RUN.time_ns == 1507
    assert RunFile().time_ns is None
