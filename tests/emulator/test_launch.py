"""Launches: names, sizes, arguments, and what a run counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cccopt.emulator import EmulatorError, Profile, Program, emulate
from cccopt.emulator.run import unmangled
from tests.emulator.kernels import kernel, run


def copied(type_name: str, argument: Any) -> bytes:
    """The bytes that a parameter of the given type has when ``argument`` is passed."""
    bits = int(type_name[1:])
    register, width = ("%rd5", 64) if bits == 64 else ("%r5", 32)
    body = f"ld.param.{type_name} {register}, [x]; st.global.b{width} [%rd1], {register};"
    out = np.zeros(8, np.uint8)
    emulate(kernel(body, parameters=f".param .{type_name} x"), "k", grid=1, block=1, args=[out, argument])
    return out.tobytes()[: bits // 8]


@pytest.mark.parametrize(
    ("type_name", "argument", "expected"),
    [
        ("u32", 5, np.uint32(5)),
        ("u32", -1, np.int32(-1)),
        ("s32", np.int64(-7), np.int32(-7)),
        ("u64", 2**64 - 1, np.uint64(2**64 - 1)),
        ("f32", 2, np.float32(2)),
        ("f32", 0.1, np.float32(0.1)),
        ("f64", np.float32(0.5), np.float64(0.5)),
        ("b32", 1.5, np.float32(1.5)),
        ("u8", True, np.uint8(1)),
        ("s16", -2, np.int16(-2)),
        ("f32", float("inf"), np.float32("inf")),
        ("u32", np.array(7), np.uint32(7)),
    ],
)
def test_numbers_take_the_parameters_type(type_name: str, argument: Any, expected: np.generic) -> None:
    assert copied(type_name, argument) == expected.tobytes()


@pytest.mark.parametrize(
    ("type_name", "argument", "words"),
    [
        ("u32", 2**32, "out of range"),
        ("s32", 2**31, "out of range"),
        ("u8", 256, "out of range"),
        ("u8", -129, "out of range"),
        ("f32", 1e60, "out of range"),
        ("u32", 1.5, "the number 1.5"),
        ("u32", "five", "type `str`"),
        ("u32", np.zeros(3), "not a pointer"),
        ("u32", b"ab", "has 4 bytes"),
    ],
)
def test_arguments_that_do_not_fit(type_name: str, argument: Any, words: str) -> None:
    with pytest.raises(EmulatorError, match=words) as caught:
        copied(type_name, argument)
    assert caught.value.diagnostics[0].code == "CCC076"


def test_structs_are_bytes() -> None:
    body = (
        "ld.param.u32 %r4, [s+4]; ld.param.u16 %r5, [s+8]; add.u32 %r4, %r4, %r5; st.global.u32 [%rd2], %r4;"
    )
    ptx = kernel(body, parameters=".param .align 4 .b8 s[12]")
    out = np.zeros(1, np.uint32)
    emulate(ptx, "k", grid=1, block=1, args=[out, np.array([1, 1000, 7], np.uint32).tobytes()])
    assert out[0] == 1007
    with pytest.raises(EmulatorError, match="struct of 12 bytes"):
        emulate(ptx, "k", grid=1, block=1, args=[out, 5])
    with pytest.raises(EmulatorError, match="12 bytes, but its argument has 8"):
        emulate(ptx, "k", grid=1, block=1, args=[out, bytes(8)])


COPY = "ld.param.u64 %rd3, [a]; mul.wide.u32 %rd4, %r0, 4; add.u64 %rd3, %rd3, %rd4; ld.global.u32 %r4, [%rd3];" \
       " add.u32 %r4, %r4, 1; st.global.u32 [%rd2], %r4;"  # fmt: skip


def test_arrays_that_share_memory_share_it_on_the_device() -> None:
    ptx = kernel(COPY, parameters=".param .u64 a")
    whole = np.arange(64, dtype=np.uint32)
    emulate(ptx, "k", grid=1, block=32, args=[whole[8:], whole])
    assert whole.tolist() == [*range(8), *range(1, 33), *range(40, 64)]
    whole = np.arange(64, dtype=np.uint32)
    emulate(ptx, "k", grid=1, block=32, args=[whole[24:], whole[:40]])
    assert whole.tolist() == [*range(24), *range(1, 33), *range(56, 64)]
    same = np.arange(32, dtype=np.uint32)
    emulate(ptx, "k", grid=1, block=32, args=[same, same])
    assert same.tolist() == list(range(1, 33))


def test_arrays_that_cannot_be_buffers() -> None:
    ptx = kernel(COPY, parameters=".param .u64 a")
    out, data = np.zeros(32, np.uint32), np.zeros(64, np.uint32)
    with pytest.raises(EmulatorError, match="not a contiguous array"):
        emulate(ptx, "k", grid=1, block=32, args=[out, data[::2]])
    with pytest.raises(EmulatorError, match="Python objects"):
        emulate(ptx, "k", grid=1, block=32, args=[out, np.array([None] * 32)])
    data.flags.writeable = False
    emulate(ptx, "k", grid=1, block=32, args=[out, data])
    assert out.all()
    with pytest.raises(EmulatorError, match="read-only"):
        emulate(ptx, "k", grid=1, block=32, args=[data, out])


def test_a_faulty_run_leaves_the_arrays_alone() -> None:
    out = np.zeros(32, np.uint32)
    with pytest.raises(EmulatorError):
        emulate(
            kernel("st.global.u32 [%rd2], 1; st.global.u32 [%rd2+4], 1;"), "k", grid=1, block=32, args=[out]
        )
    assert not out.any()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"block": 1025}, "at most 1024"),
        ({"block": (2, 2, 65)}, "64 in z"),
        ({"block": 0}, "`0` is not a valid block"),
        ({"grid": (1, 1, 1, 1)}, "one to three"),
        ({"block": 128, "directives": ".maxntid 64, 1, 1"}, ".maxntid 64, 1, 1"),
        ({"block": 32, "directives": ".reqntid 64"}, ".reqntid 64"),
        ({"shared_bytes": 240_000}, "shared memory"),
        ({"args": (5,)}, "takes 1 argument, but 2 were given"),
    ],
)
def test_launches_that_cannot_be(options: dict[str, Any], words: str) -> None:
    with pytest.raises(EmulatorError, match=words) as caught:
        run("", words=4, **options)
    assert caught.value.diagnostics[0].code == "CCC076"


def test_static_shared_memory_is_what_ptxas_takes() -> None:
    most, more = (f".shared .b8 all[{size}];" for size in (49_152, 49_153))
    mention = "{ .reg .u32 %a; mov.u32 %a, all; }"
    run(mention, module=most, shared_bytes=1024)
    with pytest.raises(EmulatorError, match="49153 bytes of static shared memory") as caught:
        run(mention, module=more)
    assert caught.value.diagnostics[0].code == "CCC076"


def test_kernel_names() -> None:
    assert [unmangled(n) for n in ("_Z3one1Ti", "_Z3bfsiPi", "plain", "_ZN2ns4deepEPf", "_Z4meltIiEvPT_")] == [
        "one", "bfs", "plain", "deep", "melt",
    ]  # fmt: skip
    with pytest.raises(EmulatorError, match=r"did you mean `kernel`\? name one of `_Z6kernelPj`"):
        emulate(
            kernel("").replace(" k(", " _Z6kernelPj("),
            "kernal",
            grid=1,
            block=1,
            args=[np.zeros(1, np.uint32)],
        )
    with pytest.raises(EmulatorError, match=r"why: its parameters are \.u64; pointers"):
        emulate(kernel(""), "k", grid=1, block=1, args=[])
    with pytest.raises(EmulatorError, match="name one of `k`"):
        emulate(kernel(""), "bfs", grid=1, block=1, args=[np.zeros(1, np.uint32)])


COUNTED = """
    .file 1 "a.cu"
    .loc 1 10 0
    setp.lt.u32 %p1, %r3, 8;
    .loc 1 11 0
    @%p1 bra PATH;
    // ccc overhead.begin 0
    add.u32 %r4, %r3, 1;
    @!%p1 add.u32 %r4, %r4, 1;
    // ccc overhead.end 0
    bra JOIN;
PATH: .loc 1 12 0
    st.global.u32 [%rd2], %r3;
JOIN: .loc 1 13 0
"""


def test_a_kernel_counted_by_hand() -> None:
    ptx = kernel(COUNTED.replace('.file 1 "a.cu"', "")).replace(".visible", '.file 1 "a.cu"\n.visible')
    profile = emulate(ptx, "k", grid=2, block=48, args=[np.zeros(96, np.uint32)])
    # Per block a warp of 32 and one of 16 lanes. The declarations' 7 instructions, setp, bra and ret: all lanes.
    # PATH: 8 lanes of the first warp. The other side (3 instructions): 24 and 16 lanes, in both warps.
    everywhere = 7 + 2 + 1
    assert profile.warp_instructions == 2 * (2 * everywhere + 1 + 2 * 3)
    assert profile.thread_instructions == 2 * (48 * everywhere + 8 + 40 * 3)
    # The branch is on in 8 lanes of each block, the guarded add in all lanes that come there.
    assert profile.thread_instructions_pred_on == profile.thread_instructions - 2 * 40
    assert (profile.overhead.warps, profile.overhead.lanes) == (2 * 2 * 2, 2 * 2 * 40)
    assert profile.warp_efficiency == profile.thread_instructions / (32 * profile.warp_instructions)
    assert profile.useful_efficiency == (profile.thread_instructions - 160) / (32 * profile.warp_instructions)
    histogram = profile.active_lanes_histogram
    assert {k: n for k, n in enumerate(histogram) if n} == {
        8: 2, 16: 2 * (everywhere + 3), 24: 2 * 3, 32: 2 * everywhere,
    }  # fmt: skip
    assert sum(histogram) == profile.warp_instructions
    lines = {line: (c.warps, c.lanes) for (file, line), c in profile.by_line.items() if file == "a.cu"}
    assert lines == {10: (4, 96), 11: (4 + 4 * 3, 96 + 80 * 3), 12: (2, 16), 13: (4, 96)}
    (branch,) = (b for b in profile.by_branch.values())
    assert (branch.warps, branch.divergent, branch.lanes, branch.taken) == (4, 2, 96, 16)
    assert profile.by_label["k", "PATH"].lanes == 16
    assert (profile.global_accesses, profile.global_transactions) == (2, 2)


def test_profiles_add_up() -> None:
    _, one = run("setp.lt.u32 %p1, %r3, 8; @%p1 st.global.u32 [%rd2], %r3;")
    _, two = run("st.global.u32 [%rd2], %r3;", block=16, grid=3)
    both = one + two
    assert both.launches == 2
    assert both.warp_instructions == one.warp_instructions + two.warp_instructions
    assert both.warp_efficiency == (one.thread_instructions + two.thread_instructions) / (
        32 * (one.warp_instructions + two.warp_instructions)
    )
    assert both.active_lanes_histogram[16] == two.active_lanes_histogram[16]
    _, whole = run("st.global.u32 [%rd2], %r3;", block=96)
    assert whole.active_lanes_histogram[32] == whole.warp_instructions
    assert sum((c.lanes for c in both.issues.values()), 0) == both.thread_instructions
    assert Profile() + one == one
    assert Profile().warp_efficiency == 0.0


def test_arrays_keep_their_address_over_launches() -> None:
    program = Program(kernel("st.global.u64 [%rd1], %rd1;"))
    arrays = [np.zeros(1, np.uint64), np.zeros(1, np.uint64)]
    seen = []
    for array in (*arrays, *arrays):
        program.launch("k", 1, 1, [array])
        seen.append(int(array[0]))
    assert seen[:2] == seen[2:]
    assert seen[0] != seen[1]


def test_memory_of_arrays_that_are_gone_is_freed() -> None:
    body = "ld.param.u64 %rd3, [a]; ld.global.u32 %r4, [%rd3]; st.global.u64 [%rd1], %rd3;"
    program = Program(kernel(body, parameters=".param .u64 a"))
    where, held = np.zeros(1, np.uint64), np.zeros(4096, np.uint32)
    program.launch("k", 1, 1, [where, held])
    address = int(where[0])
    program.launch("k", 1, 1, [where, address])
    del held
    with pytest.raises(EmulatorError, match="which was freed"):
        program.launch("k", 1, 1, [where, address])


def test_the_clock_advances_and_repeats_exactly() -> None:
    body = """
    mov.u64 %rd3, %clock64; bar.sync 0; mov.u64 %rd4, %clock64; sub.u64 %rd5, %rd4, %rd3;
    cvt.u32.u64 %r4, %rd5; st.global.u32 [%rd2], %r4;
    """
    first, _ = run(body)
    second, _ = run(body)
    assert (first == second).all()
    assert (first > 0).all()
