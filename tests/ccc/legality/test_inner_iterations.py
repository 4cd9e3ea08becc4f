"""Whether the inner iterations of a loop have to run in order: each reason, and a twin without it.

    #pragma ccc for variable
    for (k = 0; k < bound; ++k)         32 inner iterations of one lane may run at once, in all lanes of its warp:
      out[k] = value;                   may they? `InnerIterations.in_order` is False: any order gives this memory
      out[0] = k;                       True: the last one has to be the last

Each body below is one loop; its neighbour in the table differs in what decides, and in nothing else.
"""

from __future__ import annotations

import pytest

from cccopt.ccc.legality.inner_iterations import InnerIterations
from tests.ccc.legality.illegal_loops import LOCAL
from tests.kernels.ptx_loops import inner_loop, loop, regions_of

BEFORE = "mov.u64 %rd24, %out_i; mov.u64 %rd25, %other_i; mov.u64 %rd26, %out; mov.u64 %rd27, %other;"
"""Pointers that a trip moves on by 4: two into the lane's own parts of `out` and `other`, two to their beginnings."""
ON = " ".join(f"add.u64 %rd{i}, %rd{i}, 4;" for i in (24, 25, 26, 27))
FOUND = "ld.global.nc.u32 %r16, [%rd25]; mul.wide.u32 %rd21, %r16, 4; add.u64 %rd21, %other, %rd21;"
"""%rd21 is a place in `other` found in data."""
WRAPPED = "add.u32 %r17, %k, 7; and.b32 %r17, %r17, 7; mul.wide.u32 %rd22, %r17, 4; add.u64 %rd22, {}, %rd22;"
PUT_BACK = "ld.global.u32 %r17, [{0}]; add.u32 %r17, %r17, 1; st.global.u32 [{0}], %r17;"

FLAG = "ld.global.u32 %r16, [%out]; setp.ne.u32 %p6, %r16, 0; @%p6 bra IS_SET; {} IS_SET:"
SHOWN = "st.global.u32 [%rd26], %x;"


def path_of(body: str) -> InnerIterations:
    seen, (region,) = regions_of(loop(inner_loop(f"{body} {ON}"), before=BEFORE, declarations=LOCAL))
    (path,) = region.all_paths()
    return InnerIterations(seen, path)


ORDERED = {
    "a place in each trip": (False, "st.global.u32 [%rd24], %value;"),
    "one place, the last wins": (True, "st.global.u32 [%out], %k;"),
    "one place, one value": (False, "st.global.u32 [%out], 1;"),
    "one place, two values": (True, "st.global.u32 [%out], 1; st.global.u32 [%out], 2;"),
    "a flag, tested": (False, FLAG.format("st.global.u32 [%out], 1;")),
    "a flag, tested in a guard": (
        False, "ld.global.u32 %r16, [%out]; setp.eq.u32 %p6, %r16, 0; @%p6 st.global.u32 [%out], 1;"
    ),
    "a flag, tested and a value copied once more": (
        False, "mov.u32 %x, %k;" + FLAG.format("st.global.u32 [%out], 1; mov.u32 %x, %k;") + SHOWN
    ),
    "a flag, tested and a value changed": (True, FLAG.format("st.global.u32 [%out], 1; mov.u32 %x, %k;") + SHOWN),
    "a flag, tested and something else stored": (
        True, FLAG.format("st.global.u32 [%out], 1; st.global.u32 [%rd24], 2;")
    ),
    "a flag, tested and read": (True, FLAG.format("st.global.u32 [%out], 1;") + "add.u32 %x, %x, %r16;" + SHOWN),
    "a flag, set to what it holds": (
        True, "ld.global.u32 %r16, [%out]; setp.eq.u32 %p6, %r16, 0; @%p6 st.global.u32 [%out], %k;"
    ),
    "a flag, tested and set elsewhere to another value": (
        True, FLAG.format("st.global.u32 [%out], 1;") + "st.global.u32 [%out], 2;"
    ),
    "a flag, tested where another one is set": (
        True, "ld.global.u32 %r16, [%out]; setp.eq.u32 %p6, %r16, 0; @%p6 st.global.u32 [%other], 1;"
    ),
    "a flag, tested before its address changes": (
        True, "mov.u64 %rd21, %out; ld.global.u32 %r16, [%rd21]; mov.u64 %rd21, %other; setp.eq.u32 %p6, %r16, 0;"
        " @%p6 st.global.u32 [%rd21], 1;"
    ),
    "a flag, its offset spelled": (
        False, "ld.global.u32 %r16, [%out+0]; setp.eq.u32 %p6, %r16, 0; @%p6 st.global.u32 [%out], 1;"
    ),
    "a flag of other bytes": (True, FLAG.format("st.global.u8 [%out], 1;")),
    "a flag, and a part of it set": (True, FLAG.format("st.global.u32 [%out], 1;") + "st.global.u8 [%out], 1;"),
    "a flag beside another one, tested together": (
        True, "ld.global.v2.u32 {%r16, %r17}, [%out]; or.b32 %r16, %r16, %r17; setp.eq.u32 %p6, %r16, 0;"
        " @%p6 st.global.u32 [%out], 1;"
    ),
    "two flags": (
        False, FLAG.format("st.global.u32 [%out], 1;") + "ld.global.u32 %r17, [%other]; setp.eq.u32 %p7, %r17, 0;"
        " @%p7 st.global.u32 [%other], 1;"
    ),
    "a flag whose store is reached in two ways": (
        True, "setp.eq.u32 %p7, %k, 3; @%p7 bra SET; ld.global.u32 %r16, [%out]; setp.ne.u32 %p6, %r16, 0;"
        " @%p6 bra IS_SET; SET: st.global.u32 [%out], 1; IS_SET:"
    ),
    "a flag whose store ends the loop": (True, FLAG.format("st.global.u32 [%out], 1; bra INNER_DONE;")),
    "a flag, tested and a value of another block copied": (
        True, "setp.eq.u32 %p7, %k, 3; @%p7 bra NEXT; mov.u32 %x, %k; NEXT:"
        + FLAG.format("st.global.u32 [%out], 1; mov.u32 %x, %k;") + SHOWN
    ),
    "a flag, tested and a value that has changed copied": (
        True, "mov.u32 %x, %r17; add.u32 %r17, %k, 1;"
        + FLAG.format("st.global.u32 [%out], 1; mov.u32 %x, %r17;") + SHOWN
    ),
    "a place found in data, updated, its offset spelled": (
        True, FOUND + "ld.global.u32 %r17, [%rd21+0]; add.u32 %r17, %r17, 1; st.global.u32 [%rd21], %r17;"
    ),
    "a flag, tested and reset by an atomic": (
        True, FLAG.format("st.global.u32 [%out], 1;") + "atom.global.exch.b32 %r17, [%out], 0;"
    ),
    "a flag that ends the loop": (
        True, "st.global.u32 [%out], 1; ld.global.u32 %r16, [%out]; setp.ne.u32 %p6, %r16, 0; @%p6 bra INNER_DONE;"
    ),
    "one place and others": (False, "st.global.u32 [%out], 1; st.global.u32 [%rd24], 2;"),
    "local memory": (False, "st.local.u32 [depot], %k;"),
    "an atomic at a place of its own": (True, "atom.global.exch.b32 %r16, [%out_i], %k; add.u32 %x, %x, %r16;"),
    "an atomic at a place of all": (False, "atom.global.exch.b32 %r16, [%other], %k; add.u32 %x, %x, %r16;"),
    "what nobody writes": (False, "ld.global.nc.u32 %r16, [%out_i]; add.u32 %x, %x, %r16;"),
    "a place found in data, updated": (True, FOUND + PUT_BACK.format("%rd21")),
    "a place found in data, set": (False, FOUND + "ld.global.u32 %r17, [%rd21]; st.global.u32 [%rd21], %value;"),
    "a place found in data, set by its neighbour": (
        False, FOUND + "ld.global.u32 %r17, [%rd21+4]; add.u32 %r17, %r17, 1; st.global.u32 [%rd21], %r17;"
    ),
    "a pair found in data, updated": (
        True, FOUND + "ld.global.v2.u32 {%r16, %r17}, [%rd21]; add.u32 %r17, %r17, %r16;"
        " st.global.v2.u32 [%rd21], {%r16, %r17};"
    ),
    "a pair found in data, one half of it updated": (
        True, FOUND + "ld.global.v2.u32 {%r16, %r17}, [%rd21]; add.u32 %r17, %r17, %r16; st.global.u32 [%rd21+4], %r17;"
    ),
    "a pair found in data, the place after it set": (
        False, FOUND + "ld.global.v2.u32 {%r16, %r17}, [%rd21]; add.u32 %r17, %r17, %r16;"
        " st.global.u32 [%rd21+8], %r17;"
    ),
    "a place of the trip's own, updated": (False, PUT_BACK.format("%rd26")),
    "what the next trip stores": (True, "ld.global.u32 %r16, [%rd26+4]; st.global.u32 [%rd26], %r16;"),
    "what the next trip would store elsewhere": (False, "ld.global.u32 %r16, [%rd27+4]; st.global.u32 [%rd26], %r16;"),
    "the lane's own part": (
        True, WRAPPED.format("%out_i") + "ld.global.u32 %r16, [%rd22]; st.global.u32 [%rd24], %r16;"
    ),
    "the lane's own part of another array": (
        False, WRAPPED.format("%other_i") + "ld.global.u32 %r16, [%rd22]; st.global.u32 [%rd24], %r16;"
    ),
    "a part that is not the lane's own, read": (
        False, WRAPPED.format("%out") + "ld.global.u32 %r16, [%rd22]; st.global.u32 [%rd24], %r16;"
    ),
    "a part that is not the lane's own, written": (
        False, WRAPPED.format("%out_i") + "ld.global.u32 %r16, [%rd22]; st.global.u32 [%rd26], %r16;"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERED)
def test_trips_keep_their_order_for_a_reason(name: str) -> None:
    ordered, body = ORDERED[name]
    assert path_of(body).in_order() is ordered


MEETING = {
    "one pointer": (False, "st.global.u32 [%rd24], %value; ld.global.u32 %r16, [%rd24];"),
    "one pointer, a place on": (True, "st.global.u32 [%rd24], %value; ld.global.u32 %r16, [%rd24+4];"),
    "one pointer, half a place on": (True, "st.global.u32 [%rd24], %value; ld.global.u16 %h1, [%rd24+2];"),
    "two pointers": (True, "st.global.u32 [%rd24], %value; ld.global.u32 %r16, [%rd25];"),
    "an address found in data": (True, FOUND + "st.global.u32 [%rd21], %value; ld.global.u32 %r17, [%rd21];"),
    "an address by the counter": (
        False, "mul.wide.u32 %rd20, %k, 8; add.u64 %rd20, %out, %rd20; st.global.u32 [%rd20], %value;"
        " ld.global.u32 %r16, [%rd20+4];"
    ),
    "an address by the counter, made anew between": (
        True, "mul.wide.u32 %rd20, %k, 8; add.u64 %rd20, %out, %rd20; st.global.u32 [%rd20], %value;"
        " mul.wide.u32 %rd20, %k, 4; add.u64 %rd20, %out, %rd20; ld.global.u32 %r16, [%rd20+4];"
    ),
    "two addresses by the counter": (
        True, "mul.wide.u32 %rd20, %k, 8; add.u64 %rd21, %out, %rd20; add.u64 %rd20, %other, %rd20;"
        " st.global.u32 [%rd20], %value; ld.global.u32 %r16, [%rd21+4];"
    ),
    "variables": (True, "st.local.u32 [depot], %value; ld.local.u32 %r16, [depot+8];"),
}  # fmt: skip


@pytest.mark.parametrize("name", MEETING)
def test_accesses_of_different_trips_meet(name: str) -> None:
    meet, body = MEETING[name]
    trips = path_of(body)
    found = [
        i
        for i, s in trips.view.instructions(trips.path.nodes)
        if s.base in ("st", "ld") and "nc" not in s.parts
    ]
    assert trips.may_meet(*found) is meet
