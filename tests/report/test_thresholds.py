"""Kernels below the efficiency that is asked for, and diagnostics as SARIF."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from cccopt.diagnostic import Diagnostic, Severity, error
from cccopt.profiling.run_file import FunctionRun, LineCount, RunFile
from cccopt.profiling.sample import Sample
from cccopt.profiling.sources import Source
from cccopt.report.profile_view import SourceView
from cccopt.report.sarif import as_sarif
from cccopt.report.thresholds import Threshold, missed
from cccopt.text import Place, Position

LINES = LineCount("a.cu", 1, 1, 10, 320), LineCount("a.cu", 2, 3, 30, 320)
KERNEL = FunctionRun("_Z1kPi", "k(int*)", True, "a.cu", lines=LINES)  # 640 of 1280 slots
TEXTS = {"a.cu": Source("int* k;\n#pragma ccc for\n  while (x) ++x;\n")}


def view(*functions: FunctionRun) -> SourceView:
    return SourceView(RunFile(runs=1, functions=functions), TEXTS)


def test_a_kernel_below_is_an_error_at_its_worst_line() -> None:
    for name in ("k", "k(int*)", "_Z1kPi"):
        (found,) = missed(view(KERNEL), [Threshold(name, 0.51)])
        assert (found.code, found.severity) == ("CCC119", Severity.ERROR)
        assert found.message == "the warp efficiency of `k(int*)` is 50.0 %, less than the 51.0 % asked for"
        # The annotation above it is no line of the program that was counted.
        assert str(found.place) == "a.cu:3:3"
        assert found.why.startswith("50.0 % of its lane slots")
        assert not list(missed(view(KERNEL), [Threshold(name, 0.5)]))


def test_a_sample_is_below_where_its_interval_is() -> None:
    groups = (10, 120, 10, 200, 10, 120, 10, 200)
    lines = (replace(LINES[1], warps=40, lanes=640, groups=groups),)
    sampled = replace(KERNEL, lines=lines, sample=Sample(40, 40 * 64))
    width = (sampled.error(sampled) or 0.0) / 32
    assert 0.05 < width < 0.3
    assert not list(missed(view(sampled), [Threshold("k", 0.5 + width - 0.01)]))
    (found,) = missed(view(sampled), [Threshold("k", 0.5 + width + 0.01)])
    assert "50.0 % ± " in found.message


def test_a_kernel_that_was_not_counted_is_an_error() -> None:
    (found,) = missed(view(KERNEL, replace(KERNEL, name="n", shown="n", lines=())), [Threshold("n", 0.0)])
    assert found.message == "no counts of a kernel `n`"
    assert found.why == "these were counted: `k(int*)`"
    (found,) = missed(view(), [Threshold("k", 0.0)])
    assert found.why == "no kernel was counted"


def test_sarif_has_places_in_the_folder_and_outside(tmp_path: Path) -> None:
    inside = Place(str(tmp_path / "my dir" / "a.cu"), Position(3, 7))
    outside = Place("/usr/include/b.h", Position(9))
    found = [
        error("CCC119", "too empty", inside, why="of this", help="do that", notes=(("and here", outside),)),
        Diagnostic("CCC120", Severity.REMARK, "worth it"),
        Diagnostic("CCC120", Severity.WARNING, "perhaps"),
    ]
    data = json.loads(as_sarif(found, tmp_path))
    assert data["version"] == "2.1.0"
    (run,) = data["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["CCC119", "CCC120"]
    first, second, third = run["results"]
    assert [result["level"] for result in run["results"]] == ["error", "note", "warning"]
    assert first["message"]["text"] == "too empty\nwhy: of this\nhelp: do that"
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "my%20dir/a.cu"
    assert place["region"] == {"startLine": 3, "startColumn": 7}
    (note,) = first["relatedLocations"]
    assert note["physicalLocation"]["artifactLocation"]["uri"] == "file:///usr/include/b.h"
    assert note["message"]["text"] == "and here"
    assert "locations" not in second
    assert "locations" not in third
