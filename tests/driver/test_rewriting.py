"""The way from preprocessed text to PTX: what is compiled how often, and what comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from cccopt import driver
from cccopt.ccc.outcome.choices import Form, Outcome
from cccopt.diagnostic import CccError, Diagnostic, Severity, error
from cccopt.driver import rewrite_unit, rewriting
from cccopt.driver.unit_report import CompiledUnit, diagnostics_of, failure_data, report_data
from cccopt.passes.pipeline import Options
from cccopt.text import Place, Position, SourceText

LOOPS = {1: object(), 3: object()}

# Regions 1 (a loop) and 2 in it, 3 (another loop) and 4 in it.
TEXT = """\
# 1 "k.cu"
__global__ void k(int n, int* x) {
#pragma ccc for
  for (int i = 0; i < n; ++i) {
#pragma ccc if
    if (x[i]) { x[i] = 1; }
  }
#pragma ccc for
  for (int i = 0; i < n; ++i) {
#pragma ccc if
    if (x[i]) { x[i] = 2; }
  }
}
"""


@dataclass(frozen=True)
class Report:
    """As much of a region's report as the driver looks at."""

    region: int
    outcome: Outcome
    kernel: str = "k"
    code: object = None
    form: Form = Form.SPLIT
    in_place: bool = False
    unrolled: int = 0


@dataclass(frozen=True)
class Result:
    module: str
    regions: tuple[Report, ...]
    remarks: tuple[Diagnostic, ...] = ()


def marks(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"// ccc (?:for|if)\.begin (\d+)", text)}


class Compiler:
    """A device compiler whose PTX is the text itself; it remembers which regions were marked each time."""

    def __init__(self) -> None:
        self.calls: list[set[int]] = []

    def __call__(self, text: str) -> str:
        self.calls.append(marks(text))
        return text


Pipeline = Callable[..., None]


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """Replace the pipeline by one that gives regions the named outcomes, and the PTX layer by nothing."""

    def install(
        *, refuse: bool = False, form: Form = Form.SPLIT, in_place: tuple[int, ...] = (), **by_region: str
    ) -> None:
        def run(text: str, options: Options, source: SourceText) -> Result:
            if refuse:
                raise CccError(error("CCC038", "the marked loop runs a barrier"))
            reports = [
                Report(
                    r,
                    Outcome(by_region.get(f"r{r}", "rewritten")),
                    code=LOOPS.get(r),
                    form=form,
                    in_place=r in in_place,
                )
                for r in sorted(marks(text))
            ]
            return Result(f"rewritten {text}", tuple(reports))

        monkeypatch.setattr(rewriting, "run", run)
        monkeypatch.setattr(rewriting, "parse", lambda text, name: text)
        monkeypatch.setattr(rewriting, "digests", lambda module: {})
        monkeypatch.setattr(rewriting, "print_module", lambda module: module)

    return install


def options(**fields: object) -> Options:
    return Options(**{"mode": "always", "keep_going": False, "file": "k.cu", **fields})  # type: ignore[arg-type]


def test_all_accepted_is_one_compilation(outcomes: Pipeline) -> None:
    outcomes()
    compiler = Compiler()
    unit = rewrite_unit(TEXT, options(), compiler)
    assert unit.ptx.startswith("rewritten ")
    assert compiler.calls == [{1, 2, 3, 4}]


def test_none_accepted_is_the_unmarked_text(outcomes: Pipeline) -> None:
    outcomes(r1="declined", r2="declined", r3="declined", r4="declined")
    compiler = Compiler()
    unit = rewrite_unit(TEXT, options(), compiler)
    assert "ccc" not in unit.ptx
    assert unit.ptx.count("\n") == TEXT.count("\n")
    assert compiler.calls == [{1, 2, 3, 4}, set()]
    assert [(r.region, r.outcome) for r in unit.regions] == [(n, "declined") for n in (1, 2, 3, 4)]


def test_some_accepted_are_marked_again_alone_and_keep_their_loop(outcomes: Pipeline) -> None:
    # The loop of an accepted path is marked whatever its own report says.
    outcomes(r1="declined", r2="declined", r3="declined")
    compiler = Compiler()
    unit = rewrite_unit(TEXT, options(), compiler)
    assert compiler.calls == [{1, 2, 3, 4}, {3, 4}]
    assert unit.ptx.startswith("rewritten ")
    assert {(r.region, r.outcome) for r in unit.regions} >= {(2, "declined"), (4, "rewritten")}


@pytest.mark.parametrize(
    ("form", "in_place", "calls"),
    [
        (Form.IN_LANE, (2,), [{1, 2, 3, 4}, {1, 3, 4}]),
        (Form.IN_LANE, (2, 4), [{1, 2, 3, 4}, {1, 3}]),
        (Form.IN_LANE, (), [{1, 2, 3, 4}]),
        (Form.SPLIT, (2,), [{1, 2, 3, 4}]),
    ],
)
def test_what_lanes_run_in_place_is_compiled_without_marks(
    outcomes: Pipeline, form: Form, in_place: tuple[int, ...], calls: list[set[int]]
) -> None:
    outcomes(form=form, in_place=in_place)
    compiler = Compiler()
    unit = rewrite_unit(TEXT, options(), compiler)
    assert compiler.calls == calls
    assert marks(unit.ptx) == calls[-1]
    assert [(r.region, r.outcome) for r in unit.regions] == [(n, "rewritten") for n in (1, 2, 3, 4)]


def test_off_compiles_the_unmarked_text_only(outcomes: Pipeline) -> None:
    outcomes()
    compiler = Compiler()
    unit = rewrite_unit(TEXT, options(mode="off"), compiler)
    assert "ccc" not in unit.ptx
    assert compiler.calls == [set()]


def test_a_refusal_ends_the_work_or_leaves_the_text_unmarked(outcomes: Pipeline) -> None:
    outcomes(refuse=True)
    with pytest.raises(CccError):
        rewrite_unit(TEXT, options(), Compiler())
    unit = rewrite_unit(TEXT, options(keep_going=True), Compiler())
    assert "ccc" not in unit.ptx
    assert [(r.code, r.severity) for r in unit.remarks] == [("CCC038", Severity.WARNING)]


def test_a_mistake_in_an_annotation_is_an_error_or_leaves_that_one_out(outcomes: Pipeline) -> None:
    outcomes(r1="declined")
    compiler = Compiler()
    mistaken = TEXT.replace("ccc if", "ccc iff", 1)
    with pytest.raises(CccError) as caught:
        rewrite_unit(mistaken, options(), compiler)
    assert [d.code for d in caught.value.diagnostics] == ["CCC010"]
    assert compiler.calls == []
    unit = rewrite_unit(mistaken, options(keep_going=True), compiler)
    assert compiler.calls == [{1, 2, 3}, {2, 3}]
    assert [(d.code, d.severity) for d in unit.remarks] == [("CCC010", Severity.WARNING)]
    assert unit.ptx.startswith("rewritten ")


def test_what_reaches_no_kernel_is_told_once(outcomes: Pipeline) -> None:
    outcomes()

    def compiler(text: str) -> str:
        kept, _, rest = text.partition('asm volatile("// ccc for.begin 3')
        return kept + rest.replace("// ccc body.begin 3", "").replace("// ccc if.begin 4", "")

    unit = rewrite_unit(TEXT, options(), compiler)
    assert [(d.code, str(d.place), len(d.notes)) for d in unit.remarks] == [("CCC019", "k.cu:8:3", 1)]


def test_diagnostics_travel_through_json() -> None:
    place = Place("k.cu", Position(3, 7), "    for (;;)")
    diagnostic = Diagnostic("CCC034", Severity.ERROR, "m", place, "why", "help", (("read here", place),))
    failure = json.loads(json.dumps(failure_data(CccError(diagnostic), "k.cu", "compute_90")))
    assert diagnostics_of(failure["errors"]) == (diagnostic,)
    report = json.loads(json.dumps(report_data(CompiledUnit("", (), (diagnostic,)), "k.cu", "compute_90")))
    assert diagnostics_of(report["remarks"]) == (diagnostic,)
    assert (report["file"], report["arch"]) == ("k.cu", "compute_90")


def test_text_in_place_of_a_file_is_an_error() -> None:
    with pytest.raises(CccError, match="takes a file name") as problem:
        driver.compile("__global__ void k() {}\n" * 50)
    assert "CCC086" in str(problem.value)
