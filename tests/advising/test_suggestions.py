"""What is suggested for the samples without their annotations, beside what was written by hand."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cccopt.advising import preferences
from cccopt.advising.applying import apply, with_pragmas
from cccopt.advising.selections import Selection
from cccopt.advising.suggestions import Advice, advise_on_run, advise_on_source
from cccopt.advising.trials import MOST, Trial
from cccopt.ccc.outcome.choices import Form, Outcome
from cccopt.ccc.outcome.report import Cost, RegionReport
from cccopt.ccc.profitability.model import IN_LANE_GAIN, LEAST_GAIN, SAFE_GAIN
from cccopt.clauses import Kind
from cccopt.driver import compile, marked_ptx
from cccopt.emulator import Program
from cccopt.harness import workload
from cccopt.harness.sample_profile import marked_launches, sample_profile
from cccopt.harness.workload import Sample, base_state
from cccopt.profiling.candidate_counts import candidates_of
from cccopt.profiling.merging import merged
from cccopt.profiling.run_file import FunctionRun, RunFile
from cccopt.region_profiles import program_of

ARCH = "sm_90"
_PRAGMA = re.compile(
    r'^[ \t]*#pragma ccc.*\n|PRAGMA\(ccc(?:[^()]|\([^()]*\))*\)|_Pragma\("ccc[^"]*"\)', re.MULTILINE
)

pytestmark = pytest.mark.nvcc


def stripped(sample: Sample, folder: Path) -> Path:
    """A copy of the sample's source without annotations."""
    source = Path(sample.source)
    for name in {source.parent.name, "bfs"}:  # whose graphs others include
        shutil.copytree(source.parents[1] / name, folder / name)
    for file in (*folder.glob("*/*.cu"), *folder.glob("*/*.cuh")):
        file.write_text(_PRAGMA.sub("", file.read_text()))
    return folder / source.parent.name / source.name


def counted(sample: Sample, source: Path) -> RunFile:
    """The counts of the sample's launches, of the copy ``source``."""
    program: Program = program_of(marked_ptx(source, arch=ARCH, candidates=True))
    runs = []
    for launch in marked_launches(sample, base_state(sample.inputs("small", 1))):
        run = program.launch(launch.kernel, launch.grid, launch.block, launch.arguments)
        runs.append(RunFile(candidates=candidates_of(str(source), program.module, run.issues)))
    return merged(runs)


def by_hand(sample: Sample) -> dict[str, float]:
    """The predicted gain of each kernel's marked loop as it was annotated by hand."""
    report = compile(sample.source, arch=ARCH, ccc="always", profile=sample_profile(sample, ARCH)).report
    regions = [region for unit in report["units"] for region in unit["regions"]]
    return {r["kernel"]: r["cost"]["gain"] for r in regions if r["kind"] == "for" and r["cost"] is not None}


def rewritten(source: Path, found: list[Advice]) -> set[str]:
    """The kernels in which all is rewritten that is written into the source."""
    apply(with_pragmas(pragma for advice in found for pragma in advice.pragmas))
    report = compile(source, arch=ARCH, ccc="always").report
    regions = [region for unit in report["units"] for region in unit["regions"]]
    assert {region["outcome"] for region in regions} == {"rewritten"}
    return {region["kernel"] for region in regions}


def gain_of(advice: Advice) -> float:
    assert advice.best is not None
    return advice.best.gain or 0.0


@pytest.mark.parametrize("name", workload.names())
def test_what_is_suggested_is_as_good_as_what_was_written_by_hand(name: str, tmp_path: Path) -> None:
    sample = workload.load(name)
    source = stripped(sample, tmp_path)
    found = {advice.kernel: advice for advice in advise_on_run(counted(sample, source))}
    ran = {kernel: gain for kernel, gain in by_hand(sample).items() if found[kernel].gain is not None}
    assert ran
    for kernel, gain in ran.items():
        if gain >= SAFE_GAIN:
            # In the carried form, `auto` leaves a loop alone in which one of the points gains nothing by itself.
            assert found[kernel].pays or (name == "emies" and found[kernel].may_pay), kernel
            # By hand, `dqg` has a longer chunk than what is chosen without one.
            assert gain_of(found[kernel]) >= 0.92 * gain, kernel
        else:
            assert not found[kernel].pays or gain_of(found[kernel]) > gain, kernel
    paying = [advice for advice in found.values() if advice.pays]
    if name not in ("walk", "iefa", "emies"):  # a macro's kernels; nothing that pays
        assert rewritten(source, paying) >= {advice.kernel for advice in paying}


def test_without_a_run_nothing_is_claimed_but_what_needs_none(tmp_path: Path) -> None:
    source = tmp_path / "two.cu"
    source.write_text(
        """
        __global__ void rows(int n, const int* row, const int* column, const unsigned* x, unsigned* y) {
          for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
            unsigned sum = 0;
            for (int k = row[i]; k < row[i + 1]; ++k) sum += x[column[k]];
            y[i] = sum;
          }
        }
        __global__ void rare(int n, const float* x, float* y) {
          int i = threadIdx.x + blockIdx.x * blockDim.x;
          if (i >= n) return;
          if (x[i] > 3) y[i] = sinf(x[i]) * expf(x[i]);
        }
        __global__ void even(int n, float* y) { y[threadIdx.x] = n; }
        """
    )
    found = {advice.shown.partition("(")[0]: advice for advice in advise_on_source(source, arch=ARCH)}
    assert set(found) == {"rows", "rare"}
    assert found["rare"].gain is None
    assert not found["rare"].pays
    assert [str(p.kind) for p in found["rare"].pragmas] == ["grid", "if"]
    assert found["rows"].pragmas
    assert all(advice.time_ns is None for advice in found.values())


def test_a_loop_of_sums_names_them(tmp_path: Path) -> None:
    source = tmp_path / "rows.cu"
    source.write_text(
        """
        __global__ void __launch_bounds__(256) rows(
            int n, const int* __restrict__ row, const int* __restrict__ column, const float* __restrict__ value,
            const float* __restrict__ x, float* __restrict__ y) {
          for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
            int first = row[i], last = row[i + 1];
            float sum = 0;
            for (int k = first; k < last; ++k) sum += value[k] * sinf(expf(x[column[k]]));
            y[i] = sum;
          }
        }
        """
    )
    (advice,) = advise_on_source(source, arch=ARCH)
    assert [p.text for p in advice.pragmas] == ["#pragma ccc for reduce(+: sum)", "#pragma ccc for variable"]
    assert advice.pays
    assert rewritten(source, [advice]) == {advice.kernel}


def test_a_function_that_calls_itself_is_a_loop_of_the_kernel_that_calls_it(tmp_path: Path) -> None:
    source = tmp_path / "chain.cu"
    source.write_text(
        """
        __device__ __noinline__ void walk(const int* next, const float* w, int node, float x, float* sum) {
          if (node < 0) return;
          if (w[node] > x) atomicAdd(sum + (node & 15), sqrtf(w[node]));
          walk(next, w, next[node], x, sum);
        }
        __global__ void __launch_bounds__(256) chains(
            const int* next, const float* w, const float* x, const int* first, float* sum) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          walk(next, w, first[i], x[i], sum);
        }
        """
    )
    (advice,) = advise_on_source(source, arch=ARCH)
    assert [str(p.kind) for p in advice.pragmas] == ["grid", "recursive"]
    assert rewritten(source, [advice]) == {advice.kernel}


def test_why_a_function_that_calls_itself_twice_is_no_loop_is_said(tmp_path: Path) -> None:
    source = tmp_path / "tree.cu"
    source.write_text(
        """
        __device__ void walk(const int* next, const float* w, int node, float* sum) {
          if (node < 0) return;
          atomicAdd(sum + (node & 15), w[node]);
          walk(next, w, next[2 * node], sum);
          walk(next, w, next[2 * node + 1], sum);
        }
        __global__ void trees(const int* next, const float* w, const int* first, float* sum) {
          walk(next, w, first[blockIdx.x * blockDim.x + threadIdx.x], sum);
        }
        __global__ void even(int n, float* y) { y[threadIdx.x] = n; }
        """
    )
    (advice,) = advise_on_source(source, arch=ARCH)
    assert advice.shown.startswith("trees(")
    assert not advice.pragmas
    assert [d.code for d in advice.refusals] == ["CCC065"]


def test_an_index_is_no_stride_over_threads(tmp_path: Path) -> None:
    """The number of a thread is computed from the size of its block, and is added to what a loop loads from."""
    source = tmp_path / "walks.cu"
    source.write_text(
        """
        __global__ void walks(int n, const unsigned* next, unsigned* length) {
          int i = threadIdx.x + blockIdx.x * blockDim.x;
          if (i >= n) return;
          unsigned at = next[i], steps = 0;
          while (at & 255u) {
            at = next[(at & 1023u) + i] * 3u;
            ++steps;
          }
          length[i] = steps;
        }
        """
    )
    (advice,) = advise_on_source(source, arch=ARCH)
    assert [pragma.kind for pragma in advice.pragmas] == [Kind.GRID, Kind.WHILE]


def test_what_is_computed_from_an_index_is_no_stride_over_threads(tmp_path: Path) -> None:
    """A position is counted up from the size of the block, and the loop's iterations need their order."""
    source = tmp_path / "least.cu"
    source.write_text(
        """
        __global__ void __launch_bounds__(128) least(const int* __restrict__ in, int* __restrict__ out) {
          int first = blockDim.x * 3, least = in[0], where = 0;
          for (int i = 1; i <= threadIdx.x; ++i) {
            if (in[i] * 7 / 3 <= least) {
              least = in[i] * 5 / 3;
              where = first + i;
            }
          }
          out[threadIdx.x] = where;
        }
        """
    )
    for advice in advise_on_source(source, arch=ARCH):
        assert all(pragma.kind is not Kind.FOR or pragma.in_lane for pragma in advice.pragmas)


def test_all_loops_over_tasks_are_tried(tmp_path: Path) -> None:
    """Also where the kernel around them has more loops than there are trials."""
    walks = "\n".join(
        f"for (unsigned k = 0; k < (x & {n}u); ++k) x = x * {n}u + y[(x + k) % n];" for n in range(3, 17)
    )
    source = tmp_path / "many.cu"
    source.write_text(
        f"""
        __global__ void many(unsigned n, int rounds, const unsigned* start, unsigned* y) {{
          unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
          if (i >= n) return;
          unsigned x = start[i], steps = 0;
          {walks}
          for (int k = 0; k < rounds; ++k) {{
            unsigned z = x + k;
            while (z > 1u) {{ z = z % 2u ? 3u * z + 1u : z / 2u; ++steps; }}
          }}
          y[i] = steps;
        }}
        """
    )
    (advice,) = advise_on_source(source, arch=ARCH)
    assert len(advice.tried) >= MOST
    assert {trial.selection.kinds[0][1] for trial in advice.tried} == {Kind.GRID, Kind.FOR}


def test_what_runs_most_is_tried_first(tmp_path: Path) -> None:
    """Short loops before it, which are as many as there are trials, gain nothing."""
    shorts = "\n".join(
        f"for (unsigned k = 0; k < rounds + {n}u; ++k) x += y[(x + k) % n];" for n in range(14)
    )
    source = tmp_path / "walk.cu"
    source.write_text(
        f"""
        extern "C" __global__ void __launch_bounds__(64) walk(unsigned n, unsigned rounds, unsigned* y) {{
          unsigned i = threadIdx.x + blockIdx.x * blockDim.x, steps = 0;
          if (i >= n) return;
          unsigned x = i * 2654435761u >> 16;
          {shorts}
          unsigned z = 97u * i % 4096u + 1u;
          while (z > 1u) {{
            unsigned left = z % 8u ? 0u : 300u;
            z = z % 2u ? 3u * z + 1u : z / 2u;
            if (left) for (unsigned k = 0; k < left; ++k) steps = steps * 5u ^ (z + k) >> 3;
            ++steps;
          }}
          y[i] = steps + x;
        }}
        """
    )
    program = program_of(marked_ptx(source, arch=ARCH, candidates=True))
    run = program.launch(
        "walk", (4, 1, 1), (64, 1, 1), [np.uint32(256), np.uint32(1), np.zeros(256, np.uint32)]
    )
    counts = candidates_of(str(source), program.module, run.issues)
    (advice,) = advise_on_run(RunFile(candidates=counts))
    assert [(p.text, p.place.line_text.strip()[:5]) for p in advice.pragmas[1:]] == [
        ("#pragma ccc while", "while"),
        ("#pragma ccc if", "if (l"),
    ]
    # Loops over tasks in which little runs cannot make the kernel faster.
    (walk,) = {trial.selection.outer for trial in advice.tried if trial.selection.in_lane}
    assert advice.best is not None
    assert walk in advice.best.selection.regions


BLOCKS = """
template <int K> __global__ void steps(unsigned n, const unsigned* x, unsigned* y) {
  unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  unsigned v = x[i], sum = 0;
  if (v % 8u == 0u)
    for (unsigned k = 0; k < 40u + v % 32u; ++k) sum = sum * 5u ^ (v + k * K) >> 3;
  y[i] = sum;
}
template __global__ void steps<1>(unsigned, const unsigned*, unsigned*);
template __global__ void steps<2>(unsigned, const unsigned*, unsigned*);
"""


def suggested(source: Path, blocks: Sequence[tuple[int, ...] | None]) -> set[str]:
    """The pragmas for the kernels of `BLOCKS`, that were launched with such blocks."""
    program = program_of(marked_ptx(source, arch=ARCH, candidates=True))
    names = [f.name for f in program.module.functions() if f.kind == "entry"]
    runs = []
    for name in names:
        values = [np.uint32(256), np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)]
        run = program.launch(name, (4, 1, 1), (64, 1, 1), values)
        runs.append(RunFile(candidates=candidates_of(str(source), program.module, run.issues)))
    functions = [
        FunctionRun(name, name, True, str(source), block=block)
        for name, block in zip(names, blocks, strict=True)
    ]
    found = advise_on_run(replace(merged(runs), functions=tuple(functions)))
    assert len(found) == len(names)
    return {pragma.text for advice in found for pragma in advice.pragmas[:1]}


def test_stacks_are_sized_for_the_blocks_of_the_run(tmp_path: Path) -> None:
    source = tmp_path / "steps.cu"
    source.write_text(BLOCKS)
    assert suggested(source, [(64, 1, 1), (64, 1, 1)]) == {"#pragma ccc grid block(64)"}
    # Both kernels have the same pragma.
    assert suggested(source, [(64, 1, 1), (32, 4, 1)]) == {"#pragma ccc grid block(64, 4)"}
    assert suggested(source, [(64, 1, 1), None]) == {"#pragma ccc grid"}
    assert suggested(source, [(1024, 1, 1), (32, 4, 1)]) == {"#pragma ccc grid"}


def test_a_kernel_with_bounds_needs_no_block(tmp_path: Path) -> None:
    source = tmp_path / "steps.cu"
    source.write_text(
        BLOCKS.replace(
            "template <int K> __global__ void", "template <int K> __global__ void __launch_bounds__(64)"
        )
    )
    assert suggested(source, [(64, 1, 1), (64, 1, 1)]) == {"#pragma ccc grid"}


def test_what_auto_leaves_does_not_pay() -> None:
    """The in-lane form has a margin of its own, and so have expanded loops."""

    def pays(form: Form, gain: float, *others: Form) -> bool:
        one = trial(0, gain, form)
        inner = [replace(one.reports[0], form=other, cost=None) for other in others]
        return preferences.pays(replace(one, reports=(*one.reports, *inner)))

    assert pays(Form.SPLIT, SAFE_GAIN)
    assert pays(Form.IN_LANE, IN_LANE_GAIN)
    assert not pays(Form.IN_LANE, SAFE_GAIN)
    assert pays(Form.SPLIT, LEAST_GAIN, Form.EXPANDED)
    assert not pays(Form.SPLIT, LEAST_GAIN)
    assert not pays(Form.CARRIED, LEAST_GAIN, Form.EXPANDED)


def trial(number: int, gain: float, form: Form = Form.SPLIT) -> Trial:
    """A trial of a loop of this number that is all of its kernel."""
    loop = RegionReport(
        "k", number, "", None, Outcome.REWRITTEN, form, cost=Cost(1.0, 1.0, gain, None, False)
    )
    return Trial("k", Selection(number, ()), (loop,))


@pytest.mark.parametrize(
    ("gains", "auto", "best", "pays"),
    [
        ([2.4, 2.2], {0, 1}, 0, True),
        ([2.4, 2.2], {1}, 1, True),  # as `fk` of the gallery: in lane, in place of a form that `auto` leaves
        ([5.8, 4.0], {1}, 0, False),  # as `knn`: far more is predicted for what only `always` rewrites
        ([2.4, 2.2], set(), 0, False),
        ([1.3, 1.2], {1}, 0, False),  # what pays too little is not suggested in its place
        ([1.2, 1.1], {0, 1}, 0, False),
        ([], set(), None, False),
    ],
)
def test_what_auto_rewrites_is_suggested_first(
    gains: list[float], auto: set[int], best: int | None, pays: bool
) -> None:
    tried = [trial(number, gain) for number, gain in enumerate(gains)]
    found, does = preferences.best_chosen(tried, lambda selection: selection.outer in auto)
    assert (None if found is None else found.selection.outer) == best
    assert does == pays


PATH, LOOP = (Kind.IF,), (Kind.WHILE,)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([(PATH, 1.9, Form.SPLIT)], []),  # another path, which is nearly the same code
        ([(LOOP, 1.3, Form.SPLIT), (LOOP, 1.2, Form.SPLIT)], [1.3]),
        ([(LOOP, 1.3, Form.SPLIT), (LOOP, 1.4, Form.CARRIED)], [1.4, 1.3]),
        ([(LOOP, 1.3, Form.SPLIT), (PATH, 1.4, Form.CARRIED), (LOOP + PATH, 1.2, Form.SPLIT)], [1.4, 1.3]),
        ([(LOOP, 1.04, Form.SPLIT)], []),
        ([(LOOP, 1.3, Form.IN_LANE), (LOOP + PATH, 1.2, Form.IN_LANE)], [1.3]),
    ],
)
def test_alternatives_differ_in_form_or_in_what_they_mark(
    others: list[tuple[tuple[Kind, ...], float, Form]], expected: list[float]
) -> None:
    best, *tried = (marking(kinds, gain, form) for kinds, gain, form in [(PATH, 2.0, Form.SPLIT), *others])
    found = preferences.alternatives([best, *tried], best)
    assert [each.gain_of_kernel for each in found] == pytest.approx(expected)


def marking(kinds: tuple[Kind, ...], gain: float, form: Form) -> Trial:
    """A trial of a loop with these pragmas in it."""
    selection = Selection(0, ((0, Kind.FOR), *enumerate(kinds, 1)))
    return replace(trial(0, gain, form), selection=selection)
