"""Which places in memory a thread comes back to, and the numbers that tell (`cccopt.ccc.legality.growth`).

scratch[tid] = x;                   the same place in each iteration of a thread; two of its iterations may be under
if (...) out[i] = scratch[tid];     way at once, in two lanes: refused
scratch[i] = x;                     another place in each iteration: fine
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from cccopt.ccc.function.code import op
from cccopt.ccc.legality.growth import (
    DATA,
    SYMBOLIC,
    UNBOUNDED,
    Number,
    Scrambled,
    additions,
    combined,
    joined,
    values_of,
)
from cccopt.ccc.legality.thread_memory import ThreadMemory
from cccopt.ptx.ir import Instruction, Register
from tests.kernels.ptx_loops import loop, path, regions_of

ANY = Number(span=UNBOUNDED)
LANE, COUNTER, SPREAD = Number(apart=4), Number(growth=8), Number(span=3)


def lit(value: int) -> Number:
    return Number(value=value)


def made(opcode: str, sources: int) -> Instruction:
    return op(opcode, *(Register(f"%r{i}") for i in range(sources + 1)))


COMBINED = {
    "add.s32": ([Number(8, 1, 4), Number(2, 5, 1)], Number(10, 6, 5)),
    "add.u64": ([lit(3), lit(4)], lit(7)),
    "add.s32 of a number and what is not one": ([lit(3), COUNTER], COUNTER),
    "sub.s32": ([Number(8, 1, 4), Number(2, 5, 1)], Number(6, 6, 3)),
    "neg.s32": ([Number(8, 1, 4)], Number(-8, 1, -4)),
    "mov.u32": ([LANE], LANE),
    "cvt.s64.s32": ([COUNTER], COUNTER),
    "mul.lo.s32": ([Number(8, 1, 4), lit(3)], Number(24, 3, 12)),
    "mul.lo.s32 by 0": ([ANY, lit(0)], lit(0)),
    "mul.wide.s32": ([lit(3), lit(4)], lit(12)),
    "mul.lo.u32 of fixed ones": ([LANE, Number()], Number(apart=UNBOUNDED)),
    "mul.lo.u32 of the warp's": ([Number(), Number()], Number()),
    "mul.lo.u32 by a fixed one": ([COUNTER, Number()], Number(SYMBOLIC)),
    "mul.lo.u32 of a fixed one": ([Number(), SPREAD], Number(0, UNBOUNDED)),
    "mul.lo.u32 of a fixed one and a counter": ([Number(), COUNTER], Number(SYMBOLIC)),
    "mul.lo.u32 of data and a counter": ([Number(0, 3, 4), COUNTER], DATA),
    "shr.u32 of data by a register": ([ANY, Number()], ANY),
    "mul.lo.u32 of two counters": ([COUNTER, Number(1, 0, 4)], DATA),
    "mul.lo.u32 of a counter and data": ([COUNTER, Number(0, 3, 4)], DATA),
    "mul.lo.u32 of data": ([SPREAD, Number(0, 3, 4)], Number(0, UNBOUNDED, UNBOUNDED)),
    "mul.hi.s32": ([COUNTER, lit(3)], ANY),
    "mad.lo.s32": ([COUNTER, lit(2), SPREAD], Number(16, 3)),
    "mad.hi.s32": ([COUNTER, lit(2), SPREAD], ANY),
    "shl.b32": ([Number(8, 1, 4), lit(2)], Number(32, 4, 16)),
    "shl.b32 by a register": ([COUNTER, Number()], Number(SYMBOLIC)),
    "shr.u32": ([Number(8, 0, 4), lit(2)], Number(2, 0, 1)),
    "shr.u32 with a rest": ([Number(8, 3, 3), lit(2)], Number(2, 1.75, UNBOUNDED)),
    "shr.s32 by no divisor of the growth": ([Number(6), lit(2)], ANY),
    "shr.s32 of no counter": ([SPREAD, lit(2)], ANY),
    "shr.s32 by a register": ([COUNTER, Number()], ANY),
    "shr.u32 of data": ([ANY, lit(30)], Number(span=3)),
    "shr.u32 by more than the width": ([ANY, lit(40)], Number()),
    "div.s32": ([Number(8), lit(4)], Number(2)),
    "div.s32 by 0": ([Number(8), lit(0)], ANY),
    "div.s32 of data": ([ANY, lit(30)], ANY),
    "selp.b32": ([lit(3), lit(8), SPREAD], Number(span=5)),
    "and.b32 of data": ([Number(0, UNBOUNDED, 4), lit(3)], Number(span=3)),
    "and.b32 with places for all lanes": ([Number(0, 7, 4), lit(124)], Number(0, 124, UNBOUNDED)),
    "and.b32 with fewer": ([Number(0, 7, 4), lit(123)], Number(span=123)),
    "and.b32 of lanes far apart": ([Number(0, 7, UNBOUNDED), lit(31)], Number(0, 31, UNBOUNDED)),
    "and.b32 of lanes far apart, with fewer": ([Number(0, 7, UNBOUNDED), lit(30)], Number(span=30)),
    "and.b32 of what grows and is apart": ([Number(1, 0, 1), lit(255)], Number(span=255)),
    "rem.u32 with places for all lanes": ([Number(0, 7, 8), lit(1000)], Number(0, 1000, UNBOUNDED)),
    "and.b32 of a negative number": ([ANY, lit(-4)], ANY),
    "and.b32 of two": ([ANY, COUNTER], ANY),
    "or.b32": ([COUNTER, SPREAD], Number(8, 3)),
    "xor.b32 of fixed ones": ([LANE, Number()], Number(apart=UNBOUNDED)),
    "xor.b32 of the warp's": ([Number(), lit(3)], Number()),
    "xor.b32 of what grows and is apart": ([Number(8, 0, 4), lit(3)], ANY),
    "xor.b32 of data apart": ([Number(0, 3, 4), lit(3)], Number(0, UNBOUNDED, UNBOUNDED)),
    "rem.s32": ([Number(8, 0, 4), lit(-5)], Number(span=5)),
    "rem.u32 by a register": ([COUNTER, Number()], ANY),
    "bfe.u32": ([ANY, lit(2), lit(3)], Number(span=7)),
    "bfe.u32 by a register": ([ANY, lit(2), Number()], ANY),
    "cvt.u32.u8": ([ANY], Number(span=255)),
    "cvt.f32.s32": ([COUNTER], ANY),
    "add.f32": ([COUNTER, COUNTER], ANY),
    "add.s8": ([COUNTER, COUNTER], ANY),
}  # fmt: skip


@pytest.mark.parametrize("name", COMBINED)
def test_numbers_are_combined_as_the_instruction_combines_them(name: str) -> None:
    sources, result = COMBINED[name]
    found = combined(made(name.split()[0], len(sources)), sources)
    assert replace(found, scrambled=None) == result


def scrambled(number: Number, index: int, *, by: str = "shr.u32") -> Number:
    """What statement ``index`` makes of a number by arithmetic that is not followed."""
    return combined(made(by, 2), [number, Number()], index)


def test_what_is_computed_from_an_iterations_number_does_not_grow_with_it() -> None:
    counter = Number(8, 0, 4, counter="%i")
    quotient = scrambled(counter, 5)
    assert quotient == Number(span=UNBOUNDED, scrambled=Scrambled(5, counter="%i"))
    times = combined(made("mul.lo.u32", 2), [quotient, lit(3)], 6)
    remainder = combined(made("sub.u32", 2), [counter, times], 7)
    assert remainder == Number(span=UNBOUNDED, scrambled=Scrambled(5, -3, 8, "%i"))
    # So are remainders that a mask gives, and what is computed from them.
    assert scrambled(remainder, 8, by="xor.b32").scrambled == Scrambled(8, counter="%i")
    for mask, grows in [(0x0FFFFFF8, False), (0x7FFFFFFF, False), (7, True), (124, True)]:
        masked = combined(made("and.b32", 2), [COUNTER, lit(mask)], 9)
        assert bool(combined(made("sub.u32", 2), [COUNTER, masked], 10).growth) is grows
    # Few bits of it do not make up for its growth.
    assert combined(
        made("add.u32", 2), [COUNTER, combined(made("shr.u32", 2), [Number(9), lit(28)], 9)], 10
    ).growth
    assert scrambled(LANE, 5).scrambled is None


def test_a_remainder_is_the_threads_own_if_more_than_the_dividend_is_apart() -> None:
    dividend = Number(8, 0, 4, counter="%i")
    times = combined(made("mul.lo.u32", 2), [scrambled(dividend, 5), lit(-3)], 6)
    with_lane = combined(made("mad.lo.u32", 3), [dividend, lit(64), LANE], 7)
    for number, apart in [(dividend, 0), (with_lane, 260), (Number(8, 0, 260, counter="%j"), 260)]:
        assert combined(made("add.u32", 2), [number, times], 8).apart == apart


@pytest.mark.parametrize(
    ("row", "column", "growth"),
    [(lit(64), lit(16), 128), (lit(48), lit(16), 128), (lit(47), lit(16), 0), (Number(), lit(16), 128),
     (lit(64), Number(), 0), (lit(1), lit(1), 0)],
    ids=["wide rows", "rows as wide as columns need", "narrower ones", "a pitch", "an unknown column", "their sum"],
)  # fmt: skip
def test_a_quotient_and_its_remainder_grow_together(row: Number, column: Number, growth: float) -> None:
    """``i / 3 * row + i % 3 * column``."""
    quotient = scrambled(COUNTER, 5)
    remainder = combined(made("mad.lo.u32", 3), [quotient, lit(-3), COUNTER], 6)
    of_row = combined(made("mul.lo.u32", 2), [quotient, row], 7)
    of_column = combined(made("mul.lo.u32", 2), [remainder, column], 8)
    for terms in ([of_row, of_column], [of_column, of_row]):
        assert combined(made("add.u32", 2), terms, 9).growth == growth
    # Not if the row may be another one, or with the remainder of another division.
    chosen = joined([of_row, Number(span=UNBOUNDED)], 0)
    assert combined(made("add.u32", 2), [chosen, of_column], 9).growth == 0
    other = combined(made("mad.lo.u32", 3), [scrambled(COUNTER, 4), lit(-3), COUNTER], 6)
    assert combined(made("add.u32", 2), [of_row, other], 9).growth == 0


def test_a_number_is_fixed_that_neither_grows_nor_spreads() -> None:
    assert Number(apart=4).fixed
    assert not Number(growth=1).fixed
    assert not Number(span=1).fixed


def test_one_of_some_numbers() -> None:
    assert joined([], 3) == DATA
    assert joined([lit(3), lit(8)], 2) == Number(span=7)
    assert joined([lit(3), Number(0, 2)], 0) == Number(span=UNBOUNDED)
    assert joined([Number(4, 1, 4)], 6) == Number(4, 7, 4)
    assert joined([Number(4, 1, 4), Number(4, 2, 5)], 6) == Number(4, UNBOUNDED, 5)
    assert joined([Number(4, 0, 4), Number(5, 0, 4)], 0) == Number(0, UNBOUNDED, 4)


def test_values_of_narrow_types_are_few() -> None:
    assert [values_of(t) for t in ("u8", "s16", "b16")] == [255, 65535, 65535]
    assert {values_of(t) for t in ("u32", "f16", "pred", None)} == {UNBOUNDED}


def test_additions() -> None:
    one, two, three = (Register(f"%r{i}") for i in (1, 2, 3))
    assert additions(made("add.s32", 2)) == ((one, (two,)), (two, (one,)))
    assert additions(made("sub.s32", 2)) == ((one, (two,)),)
    assert additions(made("mad.lo.s32", 3)) == ((three, (one, two)),)
    assert additions(made("mad.hi.s32", 3)) == ()
    assert additions(made("mov.u32", 1)) == ((one, ()),)
    assert additions(made("xor.b32", 2)) == ()


OWN = "mul.wide.u32 %rd22, %tid_x, 4096; add.u64 %rd22, %other, %rd22;"
"""%rd22 is the thread's own 4096 bytes."""


def reused(
    code: str, *, ahead: str = "", latch: str = "", store: str = "st.global.u32 [%rd20], %value;"
) -> bool:
    """Whether a thread may come back, in another iteration, to where ``store`` stores in ``code``."""
    text = loop(path(code.replace("STORE", store)), ahead=f"{OWN} {ahead}", latch=latch)
    seen, (region,) = regions_of(text)
    (place,) = (
        i for i, s in seen.instructions(region.nodes) if s.base in ("st", "red") and s.parts[-1] == "u32"
    )
    return ThreadMemory(seen, region).is_reused(place)


MOVE = "mov.u64 %rd20, %rd22; STORE"
ADVANCE = "add.u64 %rd22, %rd22, {};"
NARROW = "and.b32 %r20, %value, 3; mul.wide.u32 %rd21, %r20, 4; add.u64 %rd20, %rd22, %rd21; STORE"
RING = """shl.b32 %r20, %tid_x, 3; and.b32 %r21, %value, 7; add.s32 %r20, %r20, %r21; and.b32 %r20, %r20, {};
mul.wide.u32 %rd21, %r20, 4; add.u64 %rd20, %other, %rd21; STORE"""
INNER = """mov.u64 %rd20, %rd22; mov.u64 %rd23, %rd22; mov.u32 %r30, 0;
INNER: add.u64 %rd21, %rd20, 8; st.global.u32 [%rd21], %value; {}
add.u32 %r30, %r30, 1; setp.lt.u32 %p10, %r30, 8; @%p10 bra INNER;"""
BY_4 = "add.u64 %rd20, %rd20, 4;"
DEEPER = f"mov.u32 %r31, 0; DEEP: {BY_4} add.u32 %r31, %r31, 1; setp.lt.u32 %p11, %r31, 5; @%p11 bra DEEP;"
PLACES = {
    "one place of the thread's own": (True, MOVE, "", ""),
    "another place in each iteration": (False, MOVE, "", ADVANCE.format(4)),
    "half a place further": (True, MOVE, "", ADVANCE.format(2)),
    "backwards": (False, MOVE, "", "sub.u64 %rd22, %rd22, 4;"),
    "four places, on by four": (False, NARROW, "", ADVANCE.format(16)),
    "four places, on by three": (True, NARROW, "", ADVANCE.format(12)),
    "past the places of the next lanes": (False, NARROW, "", ADVANCE.format(8192)),
    "past the next lanes, which are near": (
        False, NARROW.replace("%value, 3", "%value, 255").replace("%rd22", "%rd25"),
        "mul.wide.u32 %rd25, %tid_x, 4; add.u64 %rd25, %other, %rd25;", "add.u64 %rd25, %rd25, 64;"
    ),
    "places found in data": (False, "mul.wide.u32 %rd21, %value, 4; add.u64 %rd20, %other, %rd21; STORE", "", ""),
    "places of the thread's own in a ring of all threads": (True, RING.format(2047), "", ""),
    "places in a ring that is too small for a warp": (False, RING.format(127), "", ""),
    "on by a register": (False, NARROW, "cvt.u64.u32 %rd24, %n;", "add.u64 %rd22, %rd22, %rd24;"),
    "another register, and something": (
        True, "mov.u64 %rd20, %rd25; STORE", "mov.u64 %rd25, %rd22;", "add.u64 %rd25, %rd22, 64;"
    ),
    "another register's step": (
        True, "mov.u64 %rd20, %rd25; STORE", "mov.u64 %rd25, %rd22;", "mov.u64 %rd25, %rd22;"
    ),
    "a carried register, set anew": (
        True, "mov.u64 %rd21, %rd25; mov.u64 %rd25, %rd22; mov.u64 %rd20, %rd25; STORE", "mov.u64 %rd25, 0;", ""
    ),
    "by literals in registers": (
        False, "mov.u32 %r21, 3; and.b32 %r20, %value, %r21; mul.wide.u32 %rd21, %r20, 4;"
        " add.u64 %rd20, %rd22, %rd21; STORE", "", ADVANCE.format(16)
    ),
    "by a literal under a guard": (
        True, NARROW.replace(", 4;", ", %r21;"), "mov.u32 %r21, 400; @%p5 mov.u32 %r21, 4;", ADVANCE.format(16)
    ),
    "by a literal or what was there": (
        True, NARROW.replace(", 4;", ", %r21;"), "@%p5 mov.u32 %r21, 4;", ADVANCE.format(16)
    ),
    "by one literal or another": (
        True, NARROW.replace(", 4;", ", %r21;"),
        "mov.u32 %r21, 4; @%p5 bra ON; mov.u32 %r21, 400; ON:", ADVANCE.format(16)
    ),
    "by what is no literal": (
        True, NARROW.replace(", 4;", ", %r21;"), "neg.s32 %r21, 4;", ADVANCE.format(16)
    ),
    "a counter of an inner loop": (False, INNER.format(BY_4), "", ADVANCE.format(64)),
    "down in an inner loop": (False, INNER.format("sub.u64 %rd20, %rd20, 4;"), "", ADVANCE.format(64)),
    "a counter of an inner loop that goes further": (True, INNER.format(BY_4), "", ADVANCE.format(24)),
    "twice on in an inner loop": (True, INNER.format(BY_4 + BY_4), "", ADVANCE.format(40)),
    "once more in a loop in an inner loop": (True, INNER.format(DEEPER), "", ADVANCE.format(64)),
    "on or not in an inner loop": (False, INNER.format("@%p5 " + BY_4), "", ADVANCE.format(64)),
    "on in two ways in an inner loop": (
        True, INNER.format(f"@%p5 bra ELSE; {BY_4} bra ON; ELSE: add.u64 %rd20, %rd20, 40; ON:"),
        "", ADVANCE.format(64)
    ),
    "on from another register in an inner loop": (
        True, INNER.format("add.u64 %rd23, %rd23, 40; add.u64 %rd20, %rd23, 4;"), "", ADVANCE.format(64)
    ),
    "doubled in an inner loop": (True, INNER.format("shl.b64 %rd20, %rd20, 1;"), "", ADVANCE.format(64)),
    "on by a register in an inner loop": (True, INNER.format("add.u64 %rd20, %rd20, %offset;"), "", ADVANCE.format(64)),
    "an inner loop of unknown length": (
        True, INNER.format(BY_4).replace("%r30, 8;", "%r30, %value;"), "", ADVANCE.format(64)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_a_thread_comes_back_to_what_is_its_own(name: str) -> None:
    back, code, ahead, latch = PLACES[name]
    assert reused(code, ahead=ahead, latch=latch) is back
