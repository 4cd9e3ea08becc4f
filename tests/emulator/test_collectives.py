"""Warp collectives and block barriers, on whole warps, parts of warps and from both sides of a branch."""

from __future__ import annotations

import numpy as np
import pytest

from cccopt.emulator import EmulatorError
from tests.emulator.kernels import run

SHUFFLES = pytest.mark.parametrize("shuffle", [None, 1, 7])
ALL = "0xffffffff"


@SHUFFLES
def test_votes(shuffle: int | None) -> None:
    body = f"""
    setp.lt.u32 %p1, %r3, 5; setp.ge.u32 %p2, %r3, 0; setp.lt.s32 %p3, %r3, 0;
    vote.sync.ballot.b32 %r4, %p1, {ALL};
    vote.sync.ballot.b32 %r5, !%p1, {ALL};
    vote.sync.any.pred %p4, %p1, {ALL}; selp.u32 %r6, 1, 0, %p4;
    vote.sync.all.pred %p5, %p1, {ALL}; selp.u32 %r7, 2, 0, %p5;
    vote.sync.all.pred %p5, %p2, {ALL}; selp.u32 %r8, 4, 0, %p5;
    vote.sync.uni.pred %p5, %p3, {ALL}; selp.u32 %r9, 8, 0, %p5;
    vote.sync.uni.pred %p5, %p1, {ALL}; selp.u32 %r10, 16, 0, %p5;
    xor.b32 %r4, %r4, %r5; setp.ne.u32 %p6, %r4, {ALL}; selp.u32 %r11, 32, 0, %p6;
    or.b32 %r6, %r6, %r7; or.b32 %r6, %r6, %r8; or.b32 %r6, %r6, %r9; or.b32 %r6, %r6, %r10; or.b32 %r6, %r6, %r11;
    st.global.u32 [%rd2], %r6;
    """
    out, _ = run(body, shuffle=shuffle)
    assert (out == 1 + 4 + 8).all()


def shuffled(mode: str, b: int, c: int) -> list[tuple[int, int]]:
    """`shfl` as the ISA spells it."""
    found = []
    for lane in range(32):
        clamp, segment = c & 31, c >> 8 & 31
        top = lane & segment | clamp & ~segment & 31
        j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": lane & segment | b & ~segment & 31}[
            mode
        ]
        inside = j >= top if mode == "up" else j <= top
        found.append((j if inside else lane, int(inside)))
    return found


@SHUFFLES
@pytest.mark.parametrize(
    ("mode", "b", "c"),
    [("up", 1, 0), ("down", 3, 31), ("bfly", 16, 31), ("idx", 7, 31), ("down", 2, 0x181F & ~0x1000), ("idx", 3, 0x1807),
     ("up", 4, 0x1800), ("bfly", 5, 0x1C03)],
)  # fmt: skip
def test_shuffles(mode: str, b: int, c: int, shuffle: int | None) -> None:
    body = f"""
    mul.lo.u32 %r4, %r3, 10;
    shfl.sync.{mode}.b32 %r5|%p1, %r4, {b}, {c}, {ALL};
    selp.u32 %r6, 1, 0, %p1; add.u32 %r5, %r5, %r6; st.global.u32 [%rd2], %r5;
    """
    out, _ = run(body, shuffle=shuffle)
    assert out.tolist() == [10 * source + inside for source, inside in shuffled(mode, b, c)]


@SHUFFLES
def test_a_lane_that_takes_no_part_is_not_read(shuffle: int | None) -> None:
    body = """
    setp.ge.u32 %p1, %r3, 16; @%p1 ret;
    add.u32 %r4, %r3, 100; shfl.sync.bfly.b32 %r5, %r4, 16, 31, 0x0000ffff; st.global.u32 [%rd2], %r5;
    """
    out, _ = run(body, shuffle=shuffle)
    assert out.tolist() == [i + 100 for i in range(16)] + [0] * 16


@SHUFFLES
def test_match_and_reduce(shuffle: int | None) -> None:
    body = f"""
    and.b32 %r4, %r3, 3;
    match.any.sync.b32 %r5, %r4, {ALL};
    redux.sync.add.u32 %r6, %r3, {ALL};
    sub.u32 %r7, %r3, 5; redux.sync.min.s32 %r8, %r7, {ALL};
    redux.sync.or.b32 %r9, %r4, %r5;
    match.all.sync.b32 %r10|%p1, %r4, %r5;
    add.u32 %r6, %r6, %r8; add.u32 %r6, %r6, %r9; xor.b32 %r6, %r6, %r10; st.global.u32 [%rd2], %r6;
    """
    out, _ = run(body, shuffle=shuffle)
    assert out.tolist() == [(496 - 5 + i % 4) ^ (0x11111111 << i % 4) for i in range(32)]


@SHUFFLES
def test_collective_reached_from_both_sides_of_a_branch(shuffle: int | None) -> None:
    """The halves wait for one another: a machine that runs one side to its end first would hang."""
    body = f"""
    setp.lt.u32 %p1, %r3, 12;
    @%p1 bra LOW;
    mov.u32 %r4, 100;
    shfl.sync.idx.b32 %r5, %r4, 3, 31, {ALL};
    bra JOIN;
LOW: mul.lo.u32 %r4, %r3, 7;
    shfl.sync.idx.b32 %r5, %r4, 20, 31, {ALL};
JOIN: activemask.b32 %r6; xor.b32 %r5, %r5, %r6; st.global.u32 [%rd2], %r5;
    """
    out, profile = run(body, shuffle=shuffle)
    assert (out ^ 0xFFFFFFFF).tolist() == [100] * 12 + [21] * 20
    if shuffle is None:
        assert profile.by_label["k", "JOIN"].warps == 1


@SHUFFLES
def test_collectives_of_disjoint_masks_do_not_wait_for_one_another(shuffle: int | None) -> None:
    body = """
    and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 0; setp.lt.u32 %p2, %r3, 9;
    @%p1 bra EVEN;
    vote.sync.ballot.b32 %r5, %p2, 0xaaaaaaaa;
    bra JOIN;
EVEN: vote.sync.ballot.b32 %r5, %p2, 0x55555555;
JOIN: st.global.u32 [%rd2], %r5;
    """
    out, _ = run(body, shuffle=shuffle)
    assert out.tolist() == [0x155, 0xAA] * 16


@SHUFFLES
def test_masks_of_partial_warps_and_exited_lanes(shuffle: int | None) -> None:
    body = f"""
    setp.eq.u32 %p1, %r3, 2; @%p1 exit;
    setp.ge.u32 %p2, %r3, 0; vote.sync.ballot.b32 %r4, %p2, {ALL};
    st.global.u32 [%rd2], %r4;
    """
    out, _ = run(body, block=40, shuffle=shuffle)
    assert out.tolist() == [0 if i == 2 else 0xFFFFFFFB if i < 32 else 0xFF for i in range(40)]


@SHUFFLES
def test_guarded_collective(shuffle: int | None) -> None:
    body = """
    setp.lt.u32 %p1, %r3, 16; setp.lt.u32 %p2, %r3, 3; mov.u32 %r4, 9;
    @%p1 vote.sync.ballot.b32 %r4, %p2, 0x0000ffff;
    st.global.u32 [%rd2], %r4;
    """
    out, profile = run(body, shuffle=shuffle)
    assert out.tolist() == [7] * 16 + [9] * 16
    if shuffle is None:
        vote = next(c for c in profile.issues.values() if c.lanes_pred_on == 16 and c.lanes == 32)
        assert vote.warps == 1
        store = list(profile.issues.values())[-2]
        assert (store.warps, store.lanes) == (1, 32)


@SHUFFLES
def test_a_whole_warp_sees_itself_whole(shuffle: int | None) -> None:
    out, _ = run("activemask.b32 %r4; st.global.u32 [%rd2], %r4;", block=50, shuffle=shuffle)
    assert out.tolist() == [0xFFFFFFFF] * 32 + [(1 << 18) - 1] * 18


@SHUFFLES
def test_elected_lane(shuffle: int | None) -> None:
    body = "elect.sync %r4|%p1, 0xffffffff; selp.u32 %r5, 1, 0, %p1; st.global.u32 [%rd2], %r5;"
    out, _ = run(body, shuffle=shuffle)
    assert out.tolist() == [1] + [0] * 31


@SHUFFLES
def test_missing_lane_is_a_deadlock_that_names_the_lines(shuffle: int | None) -> None:
    body = f"""
    setp.eq.u32 %p1, %r3, 0; @%p1 bra JOIN;
    bar.warp.sync {ALL};
JOIN: st.global.u32 [%rd2], 1;
    bar.warp.sync 1;
    """
    with pytest.raises(EmulatorError) as caught:
        run(body.replace("bar.warp.sync 1;", "bar.sync 0;"), shuffle=shuffle)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "CCC074"
    assert any(f"bar.warp.sync {ALL}" in place.line_text for _, place in diagnostic.notes)


@SHUFFLES
def test_block_barriers(shuffle: int | None) -> None:
    body = """
    .shared .align 4 .b8 s[512];
    mov.u32 %r4, s; shl.b32 %r5, %r3, 2; add.u32 %r6, %r4, %r5; st.shared.u32 [%r6], %r0;
    bar.sync 0;
    sub.u32 %r7, 99, %r3; shl.b32 %r7, %r7, 2; add.u32 %r7, %r4, %r7; ld.shared.u32 %r8, [%r7];
    st.global.u32 [%rd2], %r8;
    """
    out, _ = run(body, block=100, grid=3, shuffle=shuffle)
    assert out.tolist() == [100 * b + 99 - t for b in range(3) for t in range(100)]


@SHUFFLES
def test_barrier_reductions_and_counts(shuffle: int | None) -> None:
    body = """
    setp.lt.u32 %p1, %r3, 40; setp.lt.u32 %p2, %r3, 32;
    barrier.cta.red.popc.u32 %r4, 0, %p1;
    barrier.cta.red.and.pred %p3, 0, %p1; selp.u32 %r5, 1000, 0, %p3;
    barrier.cta.red.or.pred %p4, 0, %p1; selp.u32 %r6, 2000, 0, %p4;
    @!%p2 bra OTHERS;
    bar.sync 1, 64; bra JOIN;
OTHERS: bar.arrive 1, 64;
JOIN: add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6; st.global.u32 [%rd2], %r4;
    """
    out, _ = run(body, block=64, shuffle=shuffle)
    assert (out == 2040).all()


@SHUFFLES
def test_fragments_of_one_warp_may_reach_a_barrier_apart(shuffle: int | None) -> None:
    body = """
    and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 0;
    @%p1 bra EVEN;
    bar.sync 0; mov.u32 %r5, 1; bra JOIN;
EVEN: bar.sync 0; mov.u32 %r5, 2;
JOIN: st.global.u32 [%rd2], %r5;
    """
    out, _ = run(body, block=96, shuffle=shuffle)
    assert out.tolist() == [2, 1] * 48


def test_reduction_over_a_warp_by_shuffles() -> None:
    step = "shfl.sync.down.b32 %r5, %r4, {n}, 31, 0xffffffff; add.u32 %r4, %r4, %r5;"
    steps = "\n".join(step.format(n=n) for n in (16, 8, 4, 2, 1))
    out, _ = run(f"mov.u32 %r4, %r0; {steps} st.global.u32 [%rd2], %r4;", block=64)
    assert out[[0, 32]].tolist() == [int(np.arange(32).sum()), int(np.arange(32, 64).sum())]
