"""Where the carry flag is live."""

from __future__ import annotations

from cccopt.analysis.carry import carry_readers
from cccopt.analysis.cfg import build

from .kernels import find, kernel


def test_the_flag_is_live_from_a_reader_back_to_what_sets_it() -> None:
    function = kernel(
        """
        add.cc.u32 %r1, %r2, %r3;
        @%p1 bra JOIN;
        add.u32 %r4, %r4, 1;
        JOIN:
        addc.u32 %r5, %r6, %r7;
        """
    )
    assert function.body is not None
    reader = find(function, "addc")
    first, second, join, *rest = range(len(build(function.body).blocks))
    assert carry_readers(build(function.body), function.body) == {second: reader, join: reader}
    assert first not in carry_readers(build(function.body), function.body)
    assert not rest or rest[0] > join


def test_a_loop_of_limbs_keeps_it_alive_and_a_guarded_instruction_does_not_end_it() -> None:
    function = kernel(
        """
        add.u32 %r1, %r2, %r3;
        LOOP:
        @%p2 add.cc.u32 %r1, %r2, %r3;
        addc.cc.u32 %r4, %r5, %r6;
        @%p1 bra LOOP;
        st.global.u32 [%rd1], %r4;
        """
    )
    assert function.body is not None
    live = carry_readers(build(function.body), function.body)
    assert live == {0: find(function, "addc"), 1: find(function, "addc")}
