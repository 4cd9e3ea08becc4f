"""What `auto` collects: regions, single paths, clauses, `collect(k)`, shared memory, and how a profile changes it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cccopt
from cccopt.ccc.function.view import view_of
from cccopt.ccc.outcome.choices import Mode
from cccopt.ccc.outcome.report import Cost
from cccopt.ccc.profitability import profile as profiles
from cccopt.ccc.profitability.decision import (
    LEAST_RESIDENT,
    Decision,
    decide,
    remarks,
    room_for_stacks,
)
from cccopt.ccc.profitability.estimate import Estimate
from cccopt.ccc.profitability.profile import RegionProfile, RunProfile
from cccopt.ccc.regions.marked_loops import Region, find
from cccopt.diagnostic import CccError
from cccopt.driver import marked_ptx
from cccopt.emulator import Program
from cccopt.harness.sample_profile import sample_profile
from cccopt.harness.workload import Launch, fresh_state, load
from cccopt.passes import collect_contexts
from cccopt.passes.pipeline import Options, Result, run
from cccopt.ptx.parser import parse
from cccopt.region_profiles import profile_of
from tests.ccc.profitability.measured import SENSITIVITY, reaches_the_bar
from tests.ccc.profitability.test_model import cases
from tests.kernels.generators.kernels import NAME, from_seed
from tests.kernels.ptx_loops import loop as loop_of
from tests.kernels.ptx_switch import switch

SHORT, LONG = 3, 150


def path(number: int, length: int, values: int = 1, clauses: str = "") -> str:
    """A marked path that lanes whose hash is small take: ``length`` multiply-adds on ``values`` collected values."""
    extra = [f"%x{number}_{k}" for k in range(1, values)]
    # What is counted under a guard is not done again by each task.
    ahead = "  setp.ne.u32 %p5, %r4, 0;\n" + "".join(
        f"  mul.lo.u32 {n}, %r4, {3 + 2 * k};\n  @%p5 popc.b32 {n}, {n};\n" for k, n in enumerate(extra)
    )
    sums = "".join(f"  add.u32 %r6, %r6, {name};\n" for name in extra)
    work = "  mad.lo.u32 %r6, %r6, %r6, 12345;\n" * length
    return f"""{ahead}  shr.u32 %r5, %r4, {4 * number};
  and.b32 %r5, %r5, 31;
  setp.ge.u32 %p2, %r5, %r3;
  @%p2 bra JOIN{number};
  // ccc if.begin {number} line={number}:1 {clauses} file=x.cu
  xor.b32 %r6, %r4, {number};
{sums}{work}  and.b32 %r7, %r4, 1;
  mad.wide.u32 %rd2, %r7, 128, %rd1;
  red.global.add.u32 [%rd2+{4 * number}], %r6;
  // ccc if.end {number}
JOIN{number}:
"""


def kernel(*paths: str, clauses: str = "", threads: int = 64, name: str = "k") -> str:
    registers = "\n".join(f"  .reg .b32 %x{n}_<64>;" for n in range(2, 2 + len(paths)))
    return f""".visible .entry {name}(.param .u64 out, .param .u32 n, .param .u32 taken)
.maxntid {threads}
{{
  .reg .pred %p<6>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<4>;
{registers}
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  ld.param.u32 %r3, [taken];
  // ccc for.begin 1 line=1:1 {clauses} file=x.cu
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
LOOP:
  // ccc body.begin 1
  mul.lo.u32 %r4, %r2, 2146121005;
  xor.b32 %r4, %r4, 747796405;
  mul.lo.u32 %r4, %r4, -1404298415;
{"".join(paths)}  // ccc body.end 1
  add.u32 %r2, %r2, {threads};
  setp.lt.u32 %p3, %r2, %r1;
  @%p3 bra LOOP;
DONE:
  // ccc for.end 1
  ret;
}}
"""


def module(*kernels: str) -> str:
    return ".version 8.0\n.target sm_75\n.address_size 64\n" + "".join(kernels)


def decided(text: str, mode: str = "auto", profile: RunProfile | None = None) -> Result:
    return run(parse(text), Options(mode=mode, profile=profile))


def outcomes(result: Result) -> dict[int, str]:
    return {report.region: report.outcome for report in result.regions}


def rewritten(result: Result) -> set[int]:
    return {region for region, outcome in outcomes(result).items() if outcome == "rewritten"}


def codes(result: Result) -> list[str]:
    return [remark.code for remark in result.remarks if remark.code in ("CCC050", "CCC058", "CCC068")]


def memory(ptx: str | Result, trips: int = 20, taken: int = 4) -> bytes:
    out = np.zeros(64, np.uint32)
    Program(ptx if isinstance(ptx, str) else ptx.module).launch("k", 1, 64, [out, 64 * trips - 5, taken])
    return out.tobytes()


def test_a_long_path_is_collected_and_a_short_one_declined() -> None:
    texts = [module(kernel(path(2, n))) for n in (LONG, SHORT)]
    long, short = (decided(text, profile=profiled(text, [8])) for text in texts)
    assert rewritten(long) == {1, 2}
    assert codes(long) == ["CCC058"]
    assert rewritten(short) == set()
    assert codes(short) == ["CCC050"]
    assert short.module == parse(module(kernel(path(2, SHORT))))
    cost = short.regions[1].cost
    assert cost is not None
    assert cost.gain < 1
    assert not cost.assumed
    assert cost.break_even is not None
    assert cost.slots < cost.break_even
    remark = short.remarks[0].message + short.remarks[0].why
    assert f"{cost.gain:.2f}x" in remark
    assert f"{cost.break_even:,.0f}" in remark


@pytest.mark.parametrize(
    ("break_even", "said"),
    [
        (None, "collecting never pays off"),
        (0.3, "collecting pays off however little the path costs"),
        (1.2, "collecting pays off if the path costs at least 1 issue slot"),
        (1234.0, "collecting pays off if the path costs at least 1,234 issue slots"),
    ],
)
def test_a_remark_says_what_the_break_even_figure_counts(break_even: float | None, said: str) -> None:
    parsed = parse(module(kernel(path(2, SHORT))))
    (region,) = find(view_of(parsed, next(parsed.functions()))).regions
    cost = Cost(1.0, 0.25, 0.9, break_even, assumed=False)
    (remark,) = remarks(region, Decision(frozenset(), cost, (cost,)), Mode.AUTO)
    one = "25.0% of the lanes take the path, which costs 1 issue slot"
    assert remark.why == f"{one}; counting instructions alone, {said}"


@pytest.mark.parametrize("length", [LONG, SHORT])
def test_without_a_profile_a_path_is_left_alone(length: int) -> None:
    """Whether lanes differ there nobody knows, and where they do not, collecting only costs."""
    text = module(kernel(path(2, length)))
    result = decided(text)
    assert rewritten(result) == set()
    assert result.module == parse(text)
    (remark,) = [r for r in result.remarks if r.code == "CCC050"]
    assert "it is not known" in remark.message or length == SHORT
    assert "--ccc-profile" in remark.help


def test_always_rewrites_both_and_says_nothing() -> None:
    for length in (LONG, SHORT):
        result = decided(module(kernel(path(2, length))), "always")
        assert rewritten(result) == {1, 2}
        assert codes(result) == []


@pytest.mark.parametrize(("first", "second"), [(SHORT, LONG), (LONG, SHORT)])
def test_one_path_stays_in_its_loop_beside_another_that_is_collected(first: int, second: int) -> None:
    text = module(kernel(path(2, first), path(3, second)))
    result = decided(text, profile=profiled(text, [8]))
    longer = 2 if first == LONG else 3
    assert rewritten(result) == {1, longer}
    assert sorted(codes(result)) == ["CCC050", "CCC058"]
    assert "ccc if" not in cccopt.print(result.module)
    contexts = {report.region: report.context_bytes for report in result.regions}
    assert contexts[longer] > 0 == contexts[5 - longer]
    for taken in (1, 7, 30):
        assert memory(result, taken=taken) == memory(text, taken=taken)


def test_a_long_path_in_a_short_one_is_collected_alone() -> None:
    # Nearly all lanes take the outer path, few the inner one.
    inner = path(3, LONG).replace("%r6", "%r8").replace("%r5", "%r9")
    text = module(kernel(path(2, 1).replace("  red.global", inner + "  red.global").replace("%r3", "28", 1)))
    result = decided(text, profile=profiled(text, [2]))
    assert rewritten(result) == {1, 3}
    assert memory(result, taken=2) == memory(text, taken=2)


def test_copies_of_a_path_share_what_was_counted() -> None:
    once = path(2, LONG)
    text = module(kernel(once, once.replace("JOIN2", "AGAIN2")))
    taken = [
        report.cost.taken for report in decided(text, profile=profiled(text, [4])).regions[1:] if report.cost
    ]
    assert taken == [pytest.approx(4 / 32, rel=0.3)] * 2


@pytest.mark.parametrize(
    ("option", "loop", "inner", "collected"),
    [
        ("auto", "", "mode=always", True),
        ("auto", "mode=always", "", True),
        ("auto", "mode=always", "mode=auto", False),
        ("always", "mode=auto", "", False),
        ("always", "mode=auto", "mode=always", True),
        ("off", "mode=always", "mode=always", False),
    ],
)
def test_a_clause_beats_the_option_and_the_paths_own_that_of_its_loop(
    option: str, loop: str, inner: str, collected: bool
) -> None:
    text = module(kernel(path(2, SHORT, clauses=inner), clauses=loop))
    assert rewritten(decided(text, option)) == ({1, 2} if collected else set())


@pytest.mark.parametrize("mode", ["auto", "always"])
def test_collect_keeps_the_costliest(mode: str) -> None:
    text = module(kernel(path(2, 100), path(3, 200), path(4, 150), clauses="collect=2"))
    result = decided(text, mode, profiled(text, [4]))
    assert rewritten(result) == {1, 3, 4}
    (left,) = [remark for remark in result.remarks if remark.code == "CCC050"]
    assert "`collect(2)`" in left.why
    assert left.place is not None
    assert left.place.position.line == 2
    assert memory(result) == memory(text)


def test_cheap_paths_stay_where_stacks_would_leave_an_sm_too_few_threads() -> None:
    # 30 values of 4 bytes in a block of 256 threads: 30 KB a path, where 56 KB may be taken.
    assert 30 * 1024 < room_for_stacks(256) < 60 * 1024
    wide = [path(2, 100, 30), path(3, 300, 30)]
    text = module(kernel(*wide, threads=256))
    result = decided(text, profile=profiled(text, [8]))
    assert rewritten(result) == {1, 3}
    assert f"{LEAST_RESIDENT} threads" in next(r for r in result.remarks if r.code == "CCC050").why
    assert sum(report.shared_bytes for report in result.regions if report.region == 1) <= room_for_stacks(256)
    # 30 KB for 256 threads, and 1 KB for the driver: 7 such blocks.
    assert next(report.resident for report in result.regions if report.region == 1) == 7 * 256
    # One after the other goes until the rest fits.
    five = [path(n, length, 30) for n, length in ((2, 100), (3, 900), (4, 200), (5, 250), (6, 150))]
    text = module(kernel(*five, threads=256))
    assert rewritten(decided(text, profile=profiled(text, [8]))) == {1, 3}
    # What no block has is in global memory where somebody insists.
    result = decided(module(kernel(*wide, threads=256)), "always")
    assert rewritten(result) == {1, 2, 3}
    assert next(r for r in result.regions if r.region == 1).global_bytes > 60 * 32


def test_paths_that_share_a_site_are_not_taken_apart_for_want_of_shared_memory() -> None:
    parsed = parse(loop_of(body=switch(4)))
    (region,) = find(view_of(parsed, next(parsed.functions()))).regions
    flow = cases(90.0, 80.0, 100.0, 120.0)
    shared = dict.fromkeys(range(4), 9000)
    for room in (27_000, 40_000):
        assert decide(region, Estimate(flow, False), "auto", shared, room).chosen == set(range(4))
    apart = replace(flow, groups=())
    assert len(decide(region, Estimate(apart, False), "auto", shared, 27_000).chosen) == 3
    # What stands beside the site gets what is left.
    fewer = replace(flow, groups=(replace(flow.groups[0], keys=frozenset({0, 1, 2}), bytes=30_000),))
    assert decide(region, Estimate(fewer, False), "auto", shared, 35_000).chosen == {0, 1, 2}
    assert decide(region, Estimate(fewer, False), "auto", shared, 39_000).chosen == set(range(4))


def test_paths_of_two_kernels_are_decided_apart() -> None:
    text = module(kernel(path(2, LONG)), kernel(path(2, SHORT), name="other"))
    other = profiled(module(kernel(path(2, SHORT))), [8]).functions["k"]
    result = decided(text, profile=RunProfile({**profiled(text, [8]).functions, "other": other}))
    by_kernel = {(report.kernel, report.region): report.outcome for report in result.regions}
    assert by_kernel == {
        ("k", 1): "rewritten", ("k", 2): "rewritten", ("other", 1): "declined", ("other", 2): "declined",
    }  # fmt: skip
    assert "// ccc if" not in cccopt.print(result.module)


# --- profiles ---


def profiled(text: str, taken: Sequence[int], trips: int = 40) -> RunProfile:
    out = np.zeros(64, np.uint32)
    launches = [Launch("k", (1, 1, 1), (64, 1, 1), (out, 64 * trips, np.uint32(t))) for t in taken]
    return profile_of(text, launches)


def test_a_profile_decides_where_the_assumption_is_wrong() -> None:
    text = module(kernel(path(2, LONG)))
    rare, common, never = (decided(text, profile=profiled(text, [t])) for t in (1, 32, 0))
    assert rewritten(rare) == {1, 2}
    assert rewritten(common) == rewritten(never) == set()
    cost = rare.regions[1].cost
    assert cost is not None
    assert not cost.assumed
    assert cost.taken == pytest.approx(1 / 32, rel=0.5)
    assert "assumed" not in "".join(remark.why for remark in rare.remarks)


def test_a_profile_counts_lanes_and_warps() -> None:
    text = module(kernel(path(2, LONG)))
    out = np.zeros(64, np.uint32)
    program = Program(text)
    run_of = program.launch("k", 1, 64, [out, 64 * 40, 4])
    regions = profiled(text, [4]).functions["k"]
    assert (regions[1].kind, regions[2].kind) == ("for", "if")
    assert (regions[1].warps, regions[1].lanes) == (80, 80 * 32)
    body = next(iter(parse(text).functions())).body or ()
    (red,) = (i for i, s in enumerate(body) if getattr(s, "base", "") == "red")
    assert (regions[2].warps, regions[2].lanes) == (
        run_of.issues["k", red].warps,
        run_of.issues["k", red].lanes,
    )
    assert 0 < regions[2].packed < regions[2].issued
    assert regions[2].packed / regions[2].issued == pytest.approx(regions[2].lanes / (32 * regions[2].warps))
    assert regions[1].sectors == pytest.approx(run_of.global_transactions, rel=0.05)


def test_code_that_some_lanes_of_a_path_run_costs_a_full_warp_too() -> None:
    # Half of the lanes that take the path run its inner branch: nearly every full warp does.
    inner = (
        """  and.b32 %r7, %r4, 1;
  setp.ne.u32 %p4, %r7, 0;
  @%p4 bra SKIP;
"""
        + "  mad.lo.u32 %r6, %r6, %r6, 12345;\n" * 100
        + "SKIP:\n"
    )
    text = module(kernel(path(2, 2).replace("  red.global", inner + "  red.global")))
    found = profiled(text, [8]).functions["k"][2]
    whole = found.lanes / 32 * 200
    assert whole * 0.99 < found.packed < whole * 1.2
    # A loop that lanes leave at different trips takes a full warp longer than eight lanes, as more of them may be slow.
    inner = (
        """  and.b32 %r7, %r4, 7;
AGAIN:
"""
        + "  mad.lo.u32 %r6, %r6, %r6, 12345;\n" * 100
        + """  sub.u32 %r7, %r7, 1;
  setp.gt.s32 %p4, %r7, 0;
  @%p4 bra AGAIN;
"""
    )
    text = module(kernel(path(2, 2).replace("  red.global", inner + "  red.global")))
    found = profiled(text, [8]).functions["k"][2]
    trips = found.issued / found.warps / 206
    assert trips > 4
    now = found.lanes / 32 * trips * 206
    assert now < found.packed < 1.5 * now


def test_a_loop_that_few_lanes_come_to_runs_as_often_in_a_full_warp() -> None:
    # One lane in eight that takes the path runs the loop, 40 times: five on average, but in nearly each full warp.
    inner = (
        """  and.b32 %r7, %r4, 7;
  setp.ne.u32 %p4, %r7, 0;
  @%p4 bra SKIP;
  mov.u32 %r7, 40;
AGAIN:
"""
        + "  mad.lo.u32 %r6, %r6, %r6, 12345;\n" * 20
        + """  sub.u32 %r7, %r7, 1;
  setp.gt.s32 %p4, %r7, 0;
  @%p4 bra AGAIN;
SKIP:
"""
    )
    text = module(kernel(path(2, 2).replace("  red.global", inner + "  red.global")))
    found = profiled(text, [8]).functions["k"][2]
    of_one = found.packed / (found.lanes / 32)
    assert of_one == pytest.approx(40 * 46, rel=0.15)


def test_profiles_of_launches_add_up_and_survive_their_file(tmp_path: Path) -> None:
    text = module(kernel(path(2, LONG)))
    both = profiled(text, [1, 20])
    assert both == profiled(text, [1]) + profiled(text, [20])
    profiles.write(tmp_path / "p.json", both)
    assert profiles.read(tmp_path / "p.json") == both
    found = cccopt.transform(text, profile=str(tmp_path / "p.json"))
    assert found.report == cccopt.transform(text, profile=both).report


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "1", '{"schema": 3, "kernels": {}}', '{"schema": 1}', '{"schema": 1, "kernels": {"k": {"x": {}}}}',
     '{"schema": 1, "kernels": {"k": {"1": {"kind": "for", "entries": -1}}}}', '{"schema": 1, "kernels": {"k": 7}}',
     "[" * 100_000],
    ids=range(10),
)  # fmt: skip
def test_what_is_no_profile_is_an_error(content: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(content)
    with pytest.raises(CccError, match="CCC069"):
        profiles.read(tmp_path / "p.json")
    with pytest.raises(CccError, match="CCC086"):
        profiles.read(tmp_path / "none.json")


def test_a_profile_of_another_program_is_a_remark() -> None:
    text = module(kernel(path(2, LONG)))
    good = profiled(text, [1])
    other = RunProfile({"other": good.functions["k"]})
    changed = RunProfile({"k": {**good.functions["k"], 2: RegionProfile("while", 1, 1, 1, 1)}})
    for profile in (other, changed):
        result = decided(text, profile=profile)
        assert codes(result) == ["CCC050", "CCC068"]
        assert all(report.cost is not None and report.cost.assumed for report in result.regions)
    assert codes(decided(text, profile=good)) == ["CCC058"]


# --- the sample with which gains were measured ---


@pytest.fixture(scope="module")
def sensitivity() -> str:
    return marked_ptx(load("sensitivity").source)


@pytest.mark.nvcc
@pytest.mark.parametrize(("length", "lanes", "speedup"), SENSITIVITY)
def test_the_sensitivity_sample_is_decided_as_it_was_measured(
    sensitivity: str, length: int, lanes: int, speedup: float
) -> None:
    cells = np.zeros(1 << 20, np.float32)
    launch = Launch(f"path_{length}", (1, 1, 1), (256, 1, 1), (np.uint32(1 << 15), np.uint32(lanes), cells))
    report = cccopt.transform(sensitivity, profile=profile_of(sensitivity, [launch])).report
    (loop,) = (
        r for r in report["units"][0]["regions"] if r["kernel"] == launch.kernel and r["kind"] == "for"
    )
    assert not loop["cost"]["assumed"]
    assert loop["cost"]["gain"] == pytest.approx(speedup, rel=0.11)
    assert reaches_the_bar(loop["outcome"] == "rewritten", speedup)


@pytest.mark.nvcc
def test_breadth_first_search_gains_by_coalesced_trips() -> None:
    sample = load("bfs")
    marked = marked_ptx(sample.source)
    profile = profile_of(marked, sample.workload.launches(fresh_state(sample.inputs("small", 1))))
    outer, tasks = profile.functions["bfs"][2], profile.functions["bfs"][3]
    assert tasks.entered <= outer.lanes < tasks.lanes
    assert tasks.entries <= outer.warps < tasks.warps / 4
    regions = cccopt.transform(marked, profile=profile).report["units"][0]["regions"]
    assert {region["outcome"] for region in regions} == {"rewritten"}
    # 3.5 at full size on an H200, where lanes with many neighbours keep their warps waiting besides.
    assert 1.8 < regions[0]["cost"]["gain"] < 3.5


# Speedups by `always` on an H200, 2026-11-21.
@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("name", "speedup", "collected"), [("sssp", 1.24, 2), ("iefa", 1.06, 0), ("ff", 2.10, 10)]
)
def test_samples_are_decided_as_they_were_measured(name: str, speedup: float, collected: int) -> None:
    sample = load(name)
    regions = cccopt.transform(
        marked_ptx(sample.source), profile=sample_profile(sample, "sm_90")
    ).report["units"][0]["regions"]  # fmt: skip
    (loop,) = (region for region in regions if region["kind"] == "for")
    assert not loop["cost"]["assumed"]
    assert reaches_the_bar(loop["outcome"] == "rewritten", speedup)
    assert [r["outcome"] for r in regions if r is not loop].count("rewritten") == collected


# --- whatever is chosen ---


def test_any_choice_of_paths_keeps_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    settle = collect_contexts.decide

    def any_choice(region: Region, *rest: Any) -> Decision:
        chosen: set[int] = set()
        keys = {path.begin: key for key, path in enumerate(region.all_paths())}
        work = list(region.paths)
        while work:
            one = work.pop()
            taken = rng.random() < 0.6
            chosen |= {keys[one.begin]} if taken else set()
            # What stands in a loop of tasks goes with it.
            work += one.children if taken or not one.is_loop else ()
        return replace(settle(region, *rest), chosen=frozenset(chosen))

    monkeypatch.setattr(collect_contexts, "decide", any_choice)
    mixed = 0
    for seed in range(1000, 1025):
        case = from_seed(seed)
        before = parse(case.ptx)
        result = run(before, Options(mode="auto"))
        outcomes_of_paths = {report.outcome for report in result.regions if report.kind != "for"}
        mixed += len(outcomes_of_paths) == 2
        memories = []
        for ptx in (before, result.module):
            arguments = case.arguments()
            Program(ptx).launch(NAME, case.grid, case.block, arguments)
            memories.append([a.tobytes() for a in arguments if isinstance(a, np.ndarray)])
        assert memories[0] == memories[1], f"seed {seed}"
    assert mixed > 3
