"""What the gallery's runner says of `--ccc-find`, on a made-up program: its builds and runs are not made here."""

import argparse
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tomllib", reason="Python 3.11")

from rich.console import Console

from bench.real import found
from bench.real.measure import Run
from bench.real.program import Program
from bench.real.recipe import Recipe

PROGRAM = Program("scale", "https://example.org", "0" * 40, "made-up", "src", "none", "named", ())
RECIPE = Recipe(build=("true",), run="./scale", same=("sum .*",))
GIVEN = argparse.Namespace(rounds=3, plain_runs=2, limit=1.0)
MADE = {"program": "scale", "kernels": ["scale"], "wrong": ""}


def measured(
    monkeypatch: pytest.MonkeyPatch, outputs: Mapping[str, list[str]], found_ns: float = 2e6
) -> dict[str, Any]:
    """What is said where the builds print these outputs in turn, the last again and again."""
    left = {variant: list(texts) for variant, texts in outputs.items()}

    def run(recipe: Recipe, folder: Path, inputs: Path, limit: float) -> Run:
        variant = folder.parents[1].name
        texts = left.get(variant, ["sum 1"])
        text = texts.pop(0) if len(texts) > 1 else texts[0]
        scale = found_ns if variant == found.FOUND else 4e6
        return Run(0, text, 0.1, {"scale": scale, "other": 1e6})

    monkeypatch.setattr(found, "run", run)
    return found.measured(MADE, PROGRAM, RECIPE, Path("out"), GIVEN)


def test_times_of_the_rewritten_kernel_and_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    said = measured(monkeypatch, {})
    assert said["speedups"] == {"scale": 2.0}
    assert said["all"] == pytest.approx(5 / 3)
    assert said["ms"] == pytest.approx(5.0)
    assert (said["wrong"], said["exact"]) == ("", "equal")


@pytest.mark.parametrize(
    ("outputs", "wrong", "exact"),
    [
        ({found.FOUND_EXACT: ["sum 2"]}, "", "not equal"),
        ({found.PLAIN_EXACT: ["sum 1", "sum 2"]}, "", "plain runs differ"),
        ({found.FOUND: ["sum 1", "sum 2"]}, "other results than the plain build", "equal"),
        ({found.PLAIN: ["nothing"]}, "plain: the plain build prints no results", "equal"),
    ],
)
def test_what_became_of_results(
    monkeypatch: pytest.MonkeyPatch, outputs: Mapping[str, list[str]], wrong: str, exact: str
) -> None:
    said = measured(monkeypatch, outputs)
    assert (said["wrong"], said["exact"]) == (wrong, exact)


def test_a_kernel_that_was_not_timed_has_no_speedup() -> None:
    runs = {variant: [Run(0, "", 0.1, {})] for variant in (found.PLAIN, found.FOUND)}
    assert math.isnan(found._speedup(runs, ["scale"]))


def test_rewritten_kernels_are_read_from_reports(tmp_path: Path) -> None:
    regions = [
        {"kernel": "_Z5scaleiPf", "outcome": "rewritten"},
        {"kernel": "_Z5scaleiPf", "outcome": "rewritten"},
        {"kernel": "_Z4leftiPf", "outcome": "declined"},
    ]
    (tmp_path / "1.json").write_text(json.dumps({"units": [{"regions": regions}]}))
    assert found._rewritten(tmp_path) == ["scale"]


def test_the_table_tells_what_was_not_run() -> None:
    into = io.StringIO()
    some = [MADE, {**MADE, "program": "plain", "kernels": []}, {**MADE, "program": "bad", "wrong": "why"}]
    found.show(some, Console(file=into, width=160))
    text = into.getvalue()
    assert "scale: not run: scale" in text
    assert "1 programs with nothing to rewrite: plain" in text
    assert "bad: why" in text
