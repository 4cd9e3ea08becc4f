"""Divergence and reconvergence: results, and how many warps and lanes ran each part."""

from __future__ import annotations

import numpy as np
import pytest

from cccopt.emulator import EmulatorError, emulate
from tests.emulator.kernels import run

SHUFFLES = pytest.mark.parametrize("shuffle", [None, 1, 7])

TRIPS = """
    and.b32 %r4, %r3, 7; mov.u32 %r5, 0; mov.u32 %r6, 0;
LOOP: setp.ge.u32 %p1, %r5, %r4;
    @%p1 bra DONE;
BODY: add.u32 %r6, %r6, %r5; add.u32 %r5, %r5, 1;
    bra LOOP;
DONE: st.global.u32 [%rd2], %r6;
"""


@SHUFFLES
def test_loop_with_trip_counts_that_differ(shuffle: int | None) -> None:
    out, _ = run(TRIPS, block=80, grid=2, shuffle=shuffle)
    assert out.tolist() == [(k := i % 80 % 8) * (k - 1) // 2 for i in range(160)]


def test_lanes_that_leave_a_loop_wait_for_the_others() -> None:
    _, profile = run(TRIPS, block=64)
    # 8 lanes of 32 make each number of trips from 0 to 7: trip k is run by the lanes with more than k.
    body = profile.by_label["k", "BODY"]
    assert (body.warps, body.lanes) == (2 * 7, 2 * 4 * sum(range(8)))
    assert profile.by_label["k", "LOOP"].warps == 2 * 8
    assert (profile.by_label["k", "DONE"].warps, profile.by_label["k", "DONE"].lanes) == (2, 64)
    branches = [b for b in profile.by_branch.values() if b.warps]
    assert [(b.warps, b.divergent, b.taken) for b in branches] == [(16, 14, 64)]


@SHUFFLES
def test_nested_divergence_meets_again_inside_out(shuffle: int | None) -> None:
    body = """
    and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 0; and.b32 %r5, %r3, 2; setp.eq.u32 %p2, %r5, 0; mov.u32 %r6, 0;
    @%p1 bra EVEN;
    @%p2 bra LOW;
    add.u32 %r6, %r6, 1; bra INNER;
LOW: add.u32 %r6, %r6, 2;
INNER: add.u32 %r6, %r6, 10; bra OUTER;
EVEN: add.u32 %r6, %r6, 100;
OUTER: st.global.u32 [%rd2], %r6;
    """
    out, profile = run(body, shuffle=shuffle)
    assert out.tolist() == [100 if i % 2 == 0 else 12 if i % 4 < 2 else 11 for i in range(32)]
    if shuffle is None:
        counts = {name: (c.warps, c.lanes) for (_, name), c in profile.by_label.items()}
        assert counts == {"LOW": (1, 8), "INNER": (1, 16), "EVEN": (1, 16), "OUTER": (1, 32)}


def test_only_warps_that_part_count_as_divergent() -> None:
    body = """
    setp.lt.u32 %p1, %r3, {limit};
    @%p1 bra SKIP;
    st.global.u32 [%rd2], 1;
SKIP: st.global.u32 [%rd2], 2;
    """
    for limit, divergent, taken in ((40, 1, 40), (64, 0, 64), (0, 0, 0), (96, 0, 96), (5, 1, 5)):
        _, profile = run(body.format(limit=limit), block=96)
        (branch,) = profile.by_branch.values()
        assert (branch.warps, branch.divergent, branch.lanes, branch.taken) == (3, divergent, 96, taken)
        assert profile.by_label["k", "SKIP"].warps == 3


def test_short_circuit_runs_a_shared_arm_twice() -> None:
    """Lanes meet at the immediate post-dominator, not at the first block that both sides come to."""
    body = """
    and.b32 %r4, %r3, 3; setp.eq.u32 %p1, %r4, 0; setp.eq.u32 %p2, %r4, 1;
    @%p1 bra ELSE;
    @%p2 bra ELSE;
    mov.u32 %r5, 1; bra JOIN;
ELSE: mov.u32 %r5, 2;
JOIN: st.global.u32 [%rd2], %r5;
    """
    out, profile = run(body)
    assert out.tolist() == [2 if i % 4 < 2 else 1 for i in range(32)]
    assert (profile.by_label["k", "ELSE"].warps, profile.by_label["k", "ELSE"].lanes) == (2, 16)
    assert profile.by_label["k", "JOIN"].warps == 1


@SHUFFLES
def test_lanes_that_return_early_are_waited_for_no_more(shuffle: int | None) -> None:
    body = """
    st.global.u32 [%rd2], 1;
    setp.lt.u32 %p1, %r3, 10;
    @%p1 ret;
    setp.gt.u32 %p2, %r3, 20;
    @%p2 exit;
    bar.sync 0;
    activemask.b32 %r4;
    st.global.u32 [%rd2], %r4;
    """
    out, _ = run(body, shuffle=shuffle)
    rest = sum(1 << i for i in range(10, 21))
    assert out.tolist() == [rest if 10 <= i <= 20 else 1 for i in range(32)]


@SHUFFLES
def test_indexed_branch(shuffle: int | None) -> None:
    body = """
    TABLE: .branchtargets A, B, C;
    rem.u32 %r4, %r3, 3;
    brx.idx %r4, TABLE;
A:  mov.u32 %r5, 10; bra OUT;
B:  mov.u32 %r5, 20; bra OUT;
C:  mov.u32 %r5, 30;
OUT: st.global.u32 [%rd2], %r5;
    """
    out, profile = run(body, shuffle=shuffle)
    assert out.tolist() == [10 * (i % 3 + 1) for i in range(32)]
    if shuffle is None:
        assert profile.by_label["k", "OUT"].warps == 1
        assert profile.by_label["k", "B"].lanes == 11
    with pytest.raises(EmulatorError, match="CCC071"):
        run(body.replace("%r3, 3", "%r3, 4"))


def test_guarded_instructions_touch_only_their_lanes() -> None:
    body = """
    and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 1; mov.u32 %r5, 7;
    @%p1 mov.u32 %r5, 9;
    @!%p1 st.global.u32 [%rd2], 5;
    @%p1 ld.global.u32 %r6, [%rd2];
    @%p1 add.u32 %r5, %r5, %r6;
    @%p1 st.global.u32 [%rd2], %r5;
    @!%p1 ld.global.u32 %r6, [8];
    """
    with pytest.raises(EmulatorError, match="CCC071"):
        run(body)
    out, profile = run(body.replace("[8]", "[%rd2]"))
    assert out.tolist() == [5, 9] * 16
    guarded = [c for c in profile.issues.values() if c.lanes_pred_on != c.lanes]
    assert [(c.warps, c.lanes, c.lanes_pred_on) for c in guarded] == [(1, 32, 16)] * 6


@SHUFFLES
def test_spin_lock_between_lanes_of_a_warp_makes_progress(shuffle: int | None) -> None:
    body = """
    add.u64 %rd3, %rd1, 128;
    mov.u32 %r5, 0;
TRY: atom.global.cas.b32 %r4, [%rd3], 0, 1;
    setp.ne.u32 %p1, %r4, 0;
    @%p1 bra AGAIN;
    ld.volatile.global.u32 %r6, [%rd3+4]; add.u32 %r6, %r6, 1; st.volatile.global.u32 [%rd3+4], %r6;
    membar.gl;
    atom.global.exch.b32 %r7, [%rd3], 0;
    mov.u32 %r5, 1;
AGAIN: setp.eq.u32 %p2, %r5, 0;
    @%p2 bra TRY;
    """
    out, _ = run(body, words=34, shuffle=shuffle)
    assert out[33] == 32


@SHUFFLES
def test_a_lane_may_wait_for_another_of_its_warp(shuffle: int | None) -> None:
    body = """
    setp.eq.u32 %p1, %r3, 31;
    @%p1 bra SET;
SPIN: ld.volatile.global.u32 %r4, [%rd1+128];
    setp.eq.u32 %p2, %r4, 0;
    @%p2 bra SPIN;
    st.global.u32 [%rd2], %r4;
    bra OUT;
SET: st.volatile.global.u32 [%rd1+128], 5;
OUT:
    """
    out, _ = run(body, words=33, shuffle=shuffle)
    assert out.tolist() == [5] * 31 + [0, 5]


@SHUFFLES
def test_a_lock_held_across_the_meeting_point_makes_progress(shuffle: int | None) -> None:
    """The lane that leaves the spin loop must release the lock before the others can leave it."""
    body = """
    add.u64 %rd3, %rd1, 128;
TRY: atom.global.cas.b32 %r4, [%rd3], 0, 1;
    setp.ne.u32 %p1, %r4, 0;
    @%p1 bra TRY;
    ld.volatile.global.u32 %r6, [%rd3+4]; add.u32 %r6, %r6, 1; st.volatile.global.u32 [%rd3+4], %r6;
    membar.gl;
    atom.global.exch.b32 %r7, [%rd3], 0;
    """
    out, _ = run(body, words=34, shuffle=shuffle)
    assert out[33] == 32


@SHUFFLES
def test_max_steps_ends_a_spin_loop_at_its_line(shuffle: int | None) -> None:
    body = """
SPIN: ld.volatile.global.u32 %r4, [%rd1];
    setp.eq.u32 %p1, %r4, 0;
    @%p1 bra SPIN;
    """
    with pytest.raises(EmulatorError) as caught:
        run(body, shuffle=shuffle, max_steps=500)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "CCC075"
    assert diagnostic.place is not None
    assert "ld.volatile" in diagnostic.place.line_text


def test_trap_is_an_error() -> None:
    with pytest.raises(EmulatorError, match="CCC078"):
        run("setp.eq.u32 %p1, %r3, 3; @%p1 trap;")


@SHUFFLES
def test_two_dimensional_blocks_and_grids(shuffle: int | None) -> None:
    body = """
    mov.u32 %r4, %tid.y; mov.u32 %r5, %ntid.x; mad.lo.u32 %r6, %r4, %r5, %r3; mov.u32 %r7, %tid.z;
    mov.u32 %r8, %ntid.y; mul.lo.u32 %r9, %r5, %r8; mad.lo.u32 %r6, %r7, %r9, %r6;
    mov.u32 %r10, %ctaid.y; mov.u32 %r11, %nctaid.x; mad.lo.u32 %r12, %r10, %r11, %r1;
    mov.u32 %r13, %ntid.z; mul.lo.u32 %r9, %r9, %r13; mad.lo.u32 %r14, %r12, %r9, %r6;
    mul.wide.u32 %rd4, %r14, 4; add.u64 %rd4, %rd1, %rd4;
    mov.u32 %r15, %laneid; mov.u32 %r16, %warpid; shl.b32 %r16, %r16, 5; add.u32 %r15, %r15, %r16;
    st.global.u32 [%rd4], %r15;
    """
    out, _ = run(body, block=(5, 4, 3), grid=(2, 3), shuffle=shuffle)
    assert out.tolist() == list(range(60)) * 6


def test_shuffle_repeats_exactly() -> None:
    body = "atom.global.add.u32 %r4, [%rd1], 1; st.global.u32 [%rd2+4], %r4;"
    runs = [
        run(body, block=64, grid=2, words=129, shuffle=seed)[0].tolist() for seed in (3, 3, 4, None, None)
    ]
    assert runs[0] == runs[1]
    assert runs[3] == runs[4]
    assert len({tuple(r) for r in runs}) == 3
    assert all(sorted(r[1:]) == list(range(128)) for r in runs)


def test_lanes_that_return_early_do_not_count_at_a_barrier() -> None:
    ptx = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<2>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 1;
  setp.eq.s32 %p1, %r2, 0;
  @%p1 bra END;
  bar.sync 0;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
END:
  ret;
}
"""
    out = np.zeros(64, np.uint32)
    emulate(ptx, "k", grid=1, block=64, args=[out])
    assert out.tolist() == [i if i % 2 else 0 for i in range(64)]
