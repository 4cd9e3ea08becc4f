"""What `cccopt advise` says of promises: in text, JSON, SARIF and on the page, and what it writes by default."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cccopt.advising.judgement_words import in_words, lines_of
from cccopt.ccc.legality.independence import Judgement, NamedAccess, State
from cccopt.cli.main import main
from cccopt.report.profile_advice import SuggestedPragma, Suggestion, advice
from cccopt.text import Place, Position

KERNELS = """__device__ unsigned mix(unsigned x) { for (int q = 0; q < 60; ++q) x = __umulhi(x, x | 1u) ^ x; return x; }
__global__ void __launch_bounds__(256) rows(
    int n, const int* row, const int* __restrict__ column, const unsigned* __restrict__ x, unsigned* y) {
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < n; v += gridDim.x * blockDim.x) {
    int first = row[v], last = row[v + 1];
    unsigned sum = 0;
    for (int k = first; k < last; ++k) sum += mix(x[column[k]]);
    y[v] = sum;
  }
}
__global__ void __launch_bounds__(256) total(
    int n, const int* __restrict__ row, const unsigned* __restrict__ x, unsigned* __restrict__ sum) {
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < n; v += gridDim.x * blockDim.x) {
    int first = row[v], last = row[v + 1];
    unsigned own = 0;
    for (int k = first; k < last; ++k) own += mix(x[k]);
    sum[0] += own;
  }
}
"""


@pytest.mark.nvcc
def test_all_outputs_say_what_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.cu").write_text(KERNELS)
    assert main(["advise", "rows.cu", "--all", "--json", "out.json", "--sarif", "out.sarif"]) == 0
    text = capsys.readouterr().out
    assert "Open for rows.cu:4:3: proven if `y` does not overlap `row`." in text
    assert "Proven for rows.cu:7:5: no inner iteration writes to memory that another one accesses." in text
    assert "Contradicted for rows.cu:13:3: all iterations of a thread access the same location:" in text
    assert "rows.cu:17:5 stores: sum[0] += own;" in text
    assert "rows.cu:17:5 loads: sum[0] += own;" in text
    kernels = {k["shown"].partition("(")[0]: k for k in json.loads(Path("out.json").read_text())["kernels"]}
    states = {
        name: [(i["line"], i["state"], i["conditions"]) for i in k["independence"]]
        for name, k in kernels.items()
    }
    assert states == {
        "rows": [(4, "open", ["`y` does not overlap `row`"]), (7, "proven", [])],
        "total": [(13, "contradicted", []), (16, "proven", [])],
    }
    (broken, _) = kernels["total"]["independence"]
    assert [(a["does"], a["line"]) for a in broken["accesses"]] == [("stores", 17), ("loads", 17)]
    results = json.loads(Path("out.sarif").read_text())["runs"][0]["results"]
    (remark,) = [result["message"]["text"] for result in results]
    assert "`rows(" in remark
    assert (
        "independence of the iterations at rows.cu:4:3 is open: proven if `y` does not overlap `row`"
        in remark
    )
    assert "independence of the iterations at rows.cu:7:5 is proven: no inner iteration writes" in remark


@pytest.mark.nvcc
def test_what_is_contradicted_is_written_only_if_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.cu").write_text(KERNELS)
    assert main(["advise", "rows.cu", "--diff"]) == 0
    every = capsys.readouterr().out
    assert main(["advise", "rows.cu", "--diff", "--only", "1,2"]) == 0
    named = capsys.readouterr().out
    assert every.count("+#pragma ccc for\n") == 1
    assert named.count("+#pragma ccc for\n") == 2


def test_words() -> None:
    place = Place("a.cu", Position(7, 3), "  sum += x;")
    broken = Judgement(
        State.CONTRADICTED, "they meet", (NamedAccess("stores", place, "sum += x;"),), sums=True
    )
    assert lines_of(broken, None) == [
        "Contradicted: they meet:",
        "  a.cu:7:3 stores: sum += x;",
        "Atomics add floating-point numbers in a different order, which changes the last digits of sums.",
    ]
    overlapping = Judgement(State.OPEN, "", conditions=("`y` does not overlap `x`",))
    assert lines_of(overlapping, place) == [
        "Open for a.cu:7:3: proven if `y` does not overlap `x`.",
        "`__restrict__` pointers say that, and `cccopt check` tests it on an input.",
    ]
    several = Judgement(State.OPEN, "", conditions=("a holds", "b holds", "c holds"))
    assert in_words(several) == (
        "open: proven if a holds, b holds and c holds; `cccopt check` tests it on an input"
    )


def test_the_page_says_it_beside_the_promise() -> None:
    pragma = SuggestedPragma(
        "#pragma ccc for",
        "a.cu",
        7,
        "any order",
        "proven: no iteration writes to memory that another one accesses",
    )
    shown = advice([Suggestion("k", "2x", True, (pragma,))], "k")
    assert "proven: no iteration writes to memory that another one accesses" in str(shown)
