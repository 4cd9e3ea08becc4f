"""Hazard mode: two lanes, the same shared bytes, no barrier between."""

from __future__ import annotations

import pytest

from cccopt.emulator import EmulatorError
from tests.emulator.kernels import run

NEIGHBOUR = """
    .shared .align 4 .b8 s[4096];
    mov.u32 %r4, s; shl.b32 %r5, %r3, 2; add.u32 %r6, %r4, %r5;
    st.shared.u32 [%r6], %r3;
    {barrier}
    xor.b32 %r7, %r5, {distance}; add.u32 %r8, %r4, %r7; ld.shared.u32 %r9, [%r8];
    st.global.u32 [%rd2], %r9;
"""
WARP = "bar.warp.sync 0xffffffff;"
BLOCK = "bar.sync 0;"


@pytest.mark.parametrize("shuffle", [None, 1, 2])
@pytest.mark.parametrize(("barrier", "distance"), [(WARP, 4), (BLOCK, 4), (BLOCK, 128), ("", 0)])
def test_ordered_accesses_pass(barrier: str, distance: int, shuffle: int | None) -> None:
    out, _ = run(NEIGHBOUR.format(barrier=barrier, distance=distance), block=64, shuffle=shuffle)
    assert out.tolist() == [i ^ (distance // 4) for i in range(64)]


@pytest.mark.parametrize("shuffle", [None, 1])
@pytest.mark.parametrize(
    ("barrier", "distance"),
    [("", 4), ("vote.sync.ballot.b32 %r10, %p1, 0xffffffff;", 4), ("membar.cta;", 4), (WARP, 128)],
)
def test_unordered_accesses_are_reported_with_both_lines(
    barrier: str, distance: int, shuffle: int | None
) -> None:
    with pytest.raises(EmulatorError) as caught:
        run(NEIGHBOUR.format(barrier=barrier, distance=distance), block=64, shuffle=shuffle)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "CCC073"
    assert diagnostic.place is not None
    lines = {
        diagnostic.place.line_text.strip().split()[0],
        diagnostic.notes[0][1].line_text.strip().split()[0],
    }
    assert lines == {"xor.b32", "st.shared.u32"}


def test_hazards_can_be_left_out() -> None:
    out, _ = run(NEIGHBOUR.format(barrier="", distance=4), hazards=False)
    assert out.tolist() == [i ^ 1 for i in range(32)]


def test_write_after_read_is_a_hazard() -> None:
    body = """
    .shared .align 4 .b8 s[64];
    mov.u32 %r4, s; ld.shared.u32 %r5, [%r4];
    setp.eq.u32 %p1, %r3, 5;
    @%p1 st.shared.u32 [%r4], %r3;
    """
    with pytest.raises(EmulatorError, match="CCC073"):
        run(body)
    run(body.replace("setp", f"{WARP} setp"))


def test_two_lanes_that_write_different_values_in_one_instruction_race() -> None:
    body = ".shared .align 4 .b8 s[64]; mov.u32 %r4, s; st.shared.u32 [%r4], {value};"
    with pytest.raises(EmulatorError, match="CCC073") as raised:
        run(body.format(value="%r3"))
    (found,) = raised.value.diagnostics
    assert "in the same instruction" in found.why
    assert "use an atomic" in found.help  # no barrier would do
    run(body.format(value="7"))


def test_an_earlier_run_of_the_same_instruction_is_another_access() -> None:
    body = """
    .shared .align 4 .b8 s[64];
    mov.u32 %r4, s; mov.u32 %r5, 0;
    MORE: setp.eq.u32 %p1, %r3, %r5; @%p1 st.shared.u32 [%r4], %r3;
    add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 2; @%p2 bra MORE;
    """
    with pytest.raises(EmulatorError, match="CCC073") as raised:
        run(body)
    (found,) = raised.value.diagnostics
    assert found.help == "put a `__syncwarp()` (`bar.warp.sync`) between them"


def test_lanes_of_several_warps_need_more_than_a_warps_barrier() -> None:
    body = """
    .shared .align 4 .b8 s[64];
    mov.u32 %r4, s;
    ld.shared.u32 %r6, [%r4]; {barrier}
    setp.eq.u32 %p1, %r3, 5; @%p1 st.shared.u32 [%r4], %r3;
    st.global.u32 [%rd2], %r6;
    """
    for barrier in ("", WARP):
        with pytest.raises(EmulatorError, match="CCC073") as raised:
            run(body.format(barrier=barrier), block=64)
        (found,) = raised.value.diagnostics
        assert found.help.startswith("put a `__syncthreads()` (`bar.sync`) between them")
        assert "if all of these lanes are in one warp" in found.help
    run(body.format(barrier=BLOCK), block=64)


def test_atomics_do_not_race_with_one_another_but_with_plain_accesses() -> None:
    body = """
    .shared .align 4 .b8 s[64];
    mov.u32 %r4, s; setp.eq.u32 %p1, %r3, 0;
    @%p1 st.shared.u32 [%r4], 0;
    {barrier}
    atom.shared.add.u32 %r5, [%r4], 1;
    {barrier}
    ld.shared.u32 %r6, [%r4]; st.global.u32 [%rd2], %r6;
    """
    out, _ = run(body.format(barrier=BLOCK), block=96)
    assert (out == 96).all()
    with pytest.raises(EmulatorError, match="CCC073"):
        run(body.format(barrier=""), block=96)


def test_a_barrier_of_half_a_warp_orders_that_half_only() -> None:
    body = NEIGHBOUR.replace(
        "{barrier}",
        "setp.lt.u32 %p1, %r3, 16; @%p1 bra LOW; bar.warp.sync 0xffff0000; bra BOTH;"
        " LOW: bar.warp.sync 0x0000ffff; BOTH:",
    )
    out, _ = run(body.format(distance=4))
    assert out.tolist() == [i ^ 1 for i in range(32)]
    with pytest.raises(EmulatorError, match="CCC073"):
        run(body.format(distance=64))


def test_every_reader_counts_not_only_the_last() -> None:
    body = """
    .shared .align 4 .b8 s[64];
    mov.u32 %r4, s; setp.eq.u32 %p1, %r3, 0; setp.eq.u32 %p2, %r3, 1;
    @%p1 ld.shared.u32 %r5, [%r4];
    {barrier}
    @%p2 ld.shared.u32 %r6, [%r4];
    @%p2 st.shared.u32 [%r4], 9;
    """
    with pytest.raises(EmulatorError, match="after an earlier load by"):
        run(body.format(barrier=""))
    run(body.format(barrier=WARP))


def test_bytes_are_told_apart() -> None:
    body = """
    .shared .align 4 .b8 s[64];
    mov.u32 %r4, s; add.u32 %r5, %r4, %r3; st.shared.u8 [%r5], %r3;
    {barrier}
    and.b32 %r6, %r5, -4; ld.shared.u32 %r7, [%r6];
    """
    run(body.format(barrier=WARP))
    with pytest.raises(EmulatorError, match="CCC073"):
        run(body.format(barrier=""))
    run(body.format(barrier="").replace("ld.shared.u32 %r7, [%r6]", "ld.shared.u8 %r7, [%r5]"))


def test_a_second_write_of_the_same_value_is_no_hazard() -> None:
    body = """
    .shared .align 4 .b8 s[64];
    mov.u32 %r4, s; setp.lt.u32 %p1, %r3, 4;
    @%p1 st.shared.u32 [%r4], 3;
    @!%p1 st.shared.u32 [%r4], {value};
    """
    run(body.format(value=3))
    with pytest.raises(EmulatorError, match="CCC073"):
        run(body.format(value=4))
