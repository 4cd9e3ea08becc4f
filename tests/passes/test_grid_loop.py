"""The loop over thread blocks: every block's work is done once, in waves; what is refused; what stays untouched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cccopt
from cccopt.ccc.plan.devices import DEVICES, UNKNOWN_DEVICE
from cccopt.diagnostic import Severity
from cccopt.emulator import Program
from cccopt.passes.pipeline import Options, Refusal
from cccopt.passes.pipeline import run as rewrite_module
from cccopt.ptx.ir import Function, Marker, Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.region_profiles import profile_of
from cccopt.toolchain.occupancy import limits_of
from tests.kernels.running import CUDA, MAX_STEPS, compiled, only, phases


@dataclass(frozen=True)
class Launched:
    """A launch to make a profile of."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: Sequence[Any]


Shape = int | tuple[int, ...]

ARCHS = ("sm_90", "sm_100")


def _run(
    module: Module, kernel: str, grid: Shape, block: Shape, args: Sequence[Any], shuffle: int | None = None
) -> tuple[list[bytes], Any]:
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    profile = Program(module).launch(kernel, grid, block, own, shuffle=shuffle, max_steps=MAX_STEPS)
    return [a.tobytes() for a in own if isinstance(a, np.ndarray)], profile


def _compare(
    module: Module,
    kernel: str,
    grid: Shape,
    block: Shape,
    args: Sequence[Any],
    resident: int,
    *,
    form: str = "auto",
    shuffle: int | None = None,
) -> dict[str, int]:
    """Runs a kernel before and after with ``resident`` blocks; how often warps ran each phase of the new code."""
    expected, _ = _run(module, kernel, grid, block, args)
    result = rewrite_module(module, Options("always", form=form, resident=resident))
    got, profile = _run(result.module, kernel, grid, block, args, shuffle)
    assert got == expected
    return phases(result, profile)


def _numbers(n: int) -> np.ndarray:
    return np.random.default_rng(11).integers(1, 27, n).astype(np.int32)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("kernel", "block", "resident"),
    [("shade", 64, 3), ("shade", (8, 5, 3), 2), ("shade", 33, 4), ("trips", 64, 3), ("trips", (4, 8), 2)],
)
def test_results_are_the_same(kernel: str, block: Shape, resident: int, arch: str) -> None:
    module = only(compiled("grid", arch), kernel)
    n = 7 * int(np.prod(block)) - 5
    args = [_numbers(n), np.zeros(n, np.int32), n]
    ran = _compare(module, kernel, 7, block, args, resident)
    warps = resident * -(-int(np.prod(block)) // 32)
    assert ran["whole"] + ran["original"] == warps
    assert ran["drain"]
    if arch == ARCHS[0]:
        _compare(module, kernel, 7, block, args, resident, form="idle lanes", shuffle=1)


@pytest.mark.parametrize("resident", [1, 2, 5, 7, 12, 1000])
def test_a_grid_of_three_dimensions(resident: int) -> None:
    module = only(compiled("grid", "sm_90"), "image")
    w, h, d = 21, 7, 4
    args = [_numbers(w * h * d), np.zeros(w * h * d, np.int32), np.zeros(1, np.int32), w, h, d]
    _compare(module, "image", (3, 2, 2), (8, 4, 2), args, resident, shuffle=3 if resident == 5 else None)


@pytest.mark.parametrize("grid", [(1,), (11,), (1, 9), (1, 1, 8), (4, 3), (2, 3, 4), (7, 1, 2)])
@pytest.mark.parametrize("resident", [1, 3, 4, 6, 13])
def test_each_block_runs_once(grid: tuple[int, ...], resident: int) -> None:
    module = only(compiled("grid", "sm_90"), "visits")
    blocks = int(np.prod(grid))
    result = rewrite_module(module, Options("always", resident=resident))
    (count,), profile = _run(result.module, "visits", grid, 64, [np.zeros(blocks, np.int32)])
    # 13 of the 64 threads leave rest 2 by 5, 7 in the first warp and 6 in the second.
    assert np.frombuffer(count, np.int32).tolist() == [13] * blocks
    assert phases(result, profile)["whole"] == 2 * min(resident, blocks)


def test_no_work_at_all() -> None:
    module = only(compiled("grid", "sm_100"), "shade")
    _compare(module, "shade", 3, 64, [_numbers(4), np.zeros(4, np.int32), 0], 2)


def test_early_returns_in_every_order() -> None:
    module = only(compiled("grid", "sm_90"), "shade")
    n = 5 * 64 - 40
    args = [_numbers(n), np.zeros(n, np.int32), n]
    for seed in range(3):
        _compare(module, "shade", 5, 64, args, 2, shuffle=seed)


# --- how many blocks ---

_KERNEL = """.version 9.0
.target {target}
.address_size 64
{module}
.visible .entry k(.param .u64 out, .param .u32 n)
{directives}
{{
    .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [n];
    // ccc grid.begin 1 line=10:1 {clauses} file=k.cu
    mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.u32 %r5, %r3, %r4, %r2;
    {ahead}
    setp.ge.u32 %p1, %r5, %r1; @%p1 {early};
    {body}
    mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2;
    and.b32 %r6, %r5, 5; setp.ne.u32 %p2, %r6, 0; @%p2 bra JOIN;
    {path}
JOIN:
    ret;
}}
"""
_PATH = """
    // ccc if.begin 2 line=20:3 file=k.cu
    mad.lo.u32 %r7, %r5, 7, %r3; st.global.u32 [%rd3], %r7;
    // ccc if.end 2
"""


def _kernel(**holes: str) -> Module:
    given = {
        "target": "sm_90",
        "module": "",
        "directives": ".maxntid 128",
        "clauses": "",
        "ahead": "",
        "early": "ret",
        "body": "",
        "path": _PATH,
    }
    return parse(_KERNEL.format(**given | holes), "k.ptx")


def _resident(module: Module, resident: int | None = None) -> int:
    """The number of blocks that do work, of a launch of 9999 with one thread each."""
    result = rewrite_module(module, Options("always", resident=resident))
    args = [np.zeros(9999, np.uint32), 9999]
    got, profile = _run(result.module, "k", 9999, 1, args)
    assert got == _run(module, "k", 9999, 1, args)[0]
    return phases(result, profile)["original"]


@pytest.mark.parametrize(
    ("holes", "expected"),
    [
        ({"directives": ".maxntid 128, 1, 1"}, 132 * 16),
        ({"directives": ".maxntid 32"}, 132 * 32),
        ({"directives": ".maxntid 768", "target": "sm_86"}, 84 * 2),
        ({"directives": "", "clauses": "block=256"}, 132 * 8),
        ({"directives": ""}, 132 * 32),  # the launch has one thread a block
        ({"target": "sm_90a"}, 132 * 16),
    ],
)
def test_as_many_blocks_as_run_at_once(holes: dict[str, str], expected: int) -> None:
    assert _resident(_kernel(**holes)) == expected


def test_a_required_size_of_blocks_counts() -> None:
    result = rewrite_module(_kernel(directives=".reqntid 128, 8"), Options("always"))
    assert f", {132 * 2};" in print_module(result.module)


def test_an_option_tells_how_many_blocks() -> None:
    assert _resident(_kernel(), 17) == 17
    assert not rewrite_module(_kernel(target="sm_72"), Options("always", resident=17)).remarks


def test_a_target_that_is_not_known_is_said() -> None:
    (said,) = rewrite_module(_kernel(target="sm_72"), Options("always")).remarks
    assert (said.code, said.severity) == ("CCC064", Severity.REMARK)
    assert str(UNKNOWN_DEVICE.processors) in said.why


def test_devices_are_those_of_the_occupancy_table() -> None:
    for number, device in DEVICES.items():
        limits = limits_of(f"sm_{number}")
        assert limits is not None
        assert (device.threads, device.blocks) == (limits.warps * 32, limits.blocks)


# --- what is refused, each with a twin that is not ---

_READS = ".func f() { .reg .b32 %r1; mov.u32 %r1, %ctaid.x; ret; }"
_LEAVES = (
    ".func f(.param .b32 a) { .reg .b32 %r1; .reg .pred %p1; ld.param.b32 %r1, [a]; setp.eq.u32 %p1, %r1, 3;"
    " @%p1 exit; ret; }"
)
_WAITS = ".func f() { bar.sync 0; ret; }"
_VOTES = ".func f() { .reg .pred %p<3>; setp.eq.u32 %p1, 0, 1; vote.sync.any.pred %p2, %p1, -1; ret; }"
_HARMLESS = ".func f() { .reg .b32 %r1; mov.u32 %r1, %nctaid.x; ret; }"
_VOTE = "setp.eq.u32 %p3, %r5, 9; vote.sync.any.pred %p4, %p3, -1;"


@pytest.mark.parametrize(
    ("code", "detail", "holes"),
    [
        ("CCC060", "bar.sync", {"ahead": "bar.sync 0;"}),
        ("CCC060", "barrier.sync", {"body": "barrier.sync 0;"}),
        ("CCC060", "bar.sync", {"module": _WAITS, "ahead": "call f, ();"}),
        ("CCC060", "barrier.cluster.arrive", {"ahead": "barrier.cluster.arrive;"}),
        ("CCC060", "griddepcontrol.wait", {"ahead": "griddepcontrol.wait;"}),
        ("CCC060", ".reqnctapercluster", {"directives": ".maxntid 128 .reqnctapercluster 2"}),
        ("CCC060", "%cluster_ctarank", {"ahead": "mov.u32 %r9, %cluster_ctarank;"}),
        ("CCC060", "%envreg1", {"ahead": "mov.b32 %r9, %envreg1;"}),
        ("CCC061", "`s`", {"module": ".shared .b32 s;", "ahead": "st.shared.u32 [s], %r2;"}),
        ("CCC062", "`f` reads the block index", {"module": _READS, "ahead": "call f, ();"}),
        ("CCC062", "`f` ends the thread", {"module": _LEAVES, "ahead": "call f, (%r2);"}),
        (
            "CCC062",
            "`k` reads the block index as a vector",
            {"ahead": ".reg .v4 .b32 %v; mov.v4.u32 %v, %ctaid;"},
        ),
        ("CCC062", "`k` allocates memory on the stack", {"ahead": "alloca.u64 %rd8, 16;"}),
        ("CCC062", "cannot be inspected: `f`", {"module": ".extern .func f();", "ahead": "call f, ();"}),
        ("CCC063", "vote.sync.any.pred", {"body": _VOTE}),
        ("CCC063", "activemask.b32", {"body": "activemask.b32 %r9;"}),
        ("CCC063", "bar.warp.sync", {"body": "bar.warp.sync -1;"}),
        ("CCC063", "call f", {"module": _VOTES, "body": "call f, ();"}),
    ],
)
def test_what_cannot_be_in_a_loop_over_blocks(code: str, detail: str, holes: dict[str, str]) -> None:
    module = _kernel(**holes)
    with pytest.raises(Refusal) as refused:
        rewrite_module(module, Options("always"))
    (said,) = refused.value.diagnostics
    assert (said.code, said.place and said.place.position.line) == (code, 10)
    assert detail in said.message
    # With --ccc-keep-going it stays as it is.
    result = rewrite_module(module, Options("always", keep_going=True))
    assert [(d.code, d.severity) for d in result.remarks] == [(code, Severity.WARNING)]
    assert result.module == module


@pytest.mark.parametrize(
    "holes",
    [
        {"ahead": _VOTE},
        {"module": _VOTES, "ahead": "call f, ();"},
        {"module": _HARMLESS, "body": "call f, ();"},
        {"module": ".shared .b32 s;"},
        {"body": "setp.lt.u32 %p5, %r5, 70; @%p5 exit;"},
        {"body": "setp.lt.u32 %p5, %r5, 70; @%p5 ret;"},
        {"early": "bra JOIN"},
        {"body": "setp.eq.u32 %p5, %r5, 1000000; @%p5 trap;"},
    ],
)
def test_what_can_be(holes: dict[str, str]) -> None:
    module = _kernel(**holes)
    args = [np.zeros(6 * 64, np.uint32), 6 * 64 - 50]
    _compare(module, "k", 6, 64, args, 2)


# --- untouched ---


def _marks(function: Function) -> list[str]:
    return [s.event for s in function.body or () if isinstance(s, Marker)]


def test_a_kernel_without_a_path_stays_as_it_is() -> None:
    module = _kernel(path="st.global.u32 [%rd3], %r5;")
    result = rewrite_module(module, Options("always"))
    assert [(d.code, d.severity) for d in result.remarks] == [("CCC054", Severity.REMARK)]
    assert result.module == module


def test_paths_in_a_marked_loop_of_the_kernel_need_no_loop_over_blocks() -> None:
    loop = f"""
    // ccc for.begin 3 line=15:3 file=k.cu
LOOP:
    // ccc body.begin 3
    setp.lt.u32 %p3, %r5, 9; @%p3 bra NEXT;
    {_PATH}
NEXT:
    // ccc body.end 3
    add.u32 %r5, %r5, 32; add.u64 %rd3, %rd3, 128; setp.lt.u32 %p4, %r5, %r1; @%p4 bra LOOP;
    // ccc for.end 3
    """
    result = rewrite_module(_kernel(path=loop), Options("always"))
    assert [(r.kind, r.outcome) for r in result.regions] == [("for", "rewritten"), ("if", "rewritten")]
    assert [d.code for d in result.remarks] == ["CCC054"]
    assert "%nctaid" not in print_module(result.module)


def test_what_is_declined_or_refused_later_has_no_loop() -> None:
    short = _kernel(path=_PATH.replace("mad.lo.u32 %r7, %r5, 7, %r3;", "mov.u32 %r7, %r5;"))
    declined = rewrite_module(short, Options("auto"))
    assert {r.outcome for r in declined.regions} == {"declined"}
    assert declined.module == short
    spoilt = _kernel(path=_PATH.replace("st.global", "shfl.sync.down.b32 %r7, %r7, 1, 31, -1; st.global"))
    # The collective in the path is refused as one that not all lanes come to; a live value is refused by the last pass.
    carried = _kernel(path=_PATH.replace("mad.lo.u32 %r7, %r5, 7, %r3;", "add.u32 %r7, %r7, %r3;"))
    for module, code in ((spoilt, "CCC063"), (carried, "CCC035")):
        kept = rewrite_module(module, Options("always", keep_going=True, form="split"))
        assert [d.code for d in kept.remarks] == [code]
        assert kept.module == module


def test_beside_a_rewritten_kernel_the_others_stay_without_marks() -> None:
    good, plain = _kernel(), _kernel(path="st.global.u32 [%rd3], %r5;")
    (other,) = (f for f in plain.functions() if f.name == "k")
    other = replace(
        other,
        name="other",
        body=tuple(replace(s, region=9) if isinstance(s, Marker) else s for s in other.body or ()),
    )
    result = rewrite_module(Module((*good.items, other)), Options("always"))
    (after,) = (f for f in result.module.functions() if f.name == "other")
    assert after.body == tuple(s for s in other.body or () if not isinstance(s, Marker))
    (kernel,) = (f for f in result.module.functions() if f.name == "k")
    assert set(_marks(kernel)) == {"overhead.begin", "overhead.end"}


def test_off_leaves_everything() -> None:
    module = _kernel()
    assert rewrite_module(module, Options("off")).module == module


def test_the_loop_is_told_from_the_program() -> None:
    """Counters take the loop's own code for overhead, but for its branches and jumps."""
    module = only(compiled("grid", "sm_90"), "shade")
    n = 8 * 32
    args = [np.zeros(n, np.int32) + 1, np.zeros(n, np.int32), n]  # nobody takes the path
    _, before = _run(module, "shade", 8, 32, args)
    result = rewrite_module(module, Options("always", resident=2))
    _, after = _run(result.module, "shade", 8, 32, args)
    own = after.warp_instructions - after.overhead_warp_instructions
    # Each of 8 blocks asks whether it has work. The path's branch is the join's, and one of two blocks returns.
    assert before.warp_instructions - 8 * 2 <= own <= before.warp_instructions + 8


def _decided(most: int, blocks: int, launches: int, resident: int | None) -> set[str]:
    """What `auto` makes of `trips` for trip counts of numbers below ``most``, by a profile of its launches."""
    marked = print_module(only(compiled("grid", "sm_90"), "trips"))
    n = 64 * blocks - 12
    values = np.random.default_rng(2).integers(1, most, n).astype(np.int32)
    launch = Launched("trips", (blocks, 1, 1), (64, 1, 1), [values, np.zeros(n, np.int32), n])
    profile = profile_of(marked, [launch] * launches)
    counted = profile.functions["trips"]
    assert [(r.kind, r.entered, r.launches) for r in counted.values()] == [
        ("grid", 64 * blocks * launches, launches),
        ("while", n * launches, 0),
    ]
    result = rewrite_module(parse(marked), Options("auto", profile=profile, resident=resident))
    assert not any(d.code == "CCC068" for d in result.remarks)
    return {r.outcome for r in result.regions}


def test_a_profile_is_made_with_the_loop() -> None:
    assert _decided(most=5, blocks=128, launches=1, resident=2) == {"declined"}
    assert _decided(most=64, blocks=128, launches=1, resident=2) == {"rewritten"}


def test_a_block_that_runs_alone_leaves_its_tasks() -> None:
    """A warp ends the loop over blocks with tasks that fill no warp: in each launch, and after few blocks for most."""
    assert _decided(most=64, blocks=128, launches=1, resident=128) == {"declined"}
    assert _decided(most=64, blocks=128, launches=1, resident=None) == {"declined"}
    assert _decided(most=64, blocks=8, launches=16, resident=2) == {"declined"}


def test_the_option_travels_with_nvcc(tmp_path: Path) -> None:
    source = tmp_path / "grid.cu"
    source.write_text((CUDA / "grid.cu").read_text().partition("// Several early")[0])
    program = cccopt.compile(source, ccc="always", resident=345)
    assert ", 345;" in program.ptx
    assert ", 345;" not in program.original_ptx
    assert [r["kind"] for r in program.report["units"][0]["regions"]] == ["grid", "if"]
