"""Memory spaces, and accesses that must be refused: where, in which kernel, at which line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cccopt.emulator import EmulatorError, Program, emulate
from tests.emulator.kernels import HEAD, kernel, run

SHUFFLES = pytest.mark.parametrize("shuffle", [None, 1])


def failure(body: str, **options: Any) -> Any:
    with pytest.raises(EmulatorError) as caught:
        run(body, **options)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("st.global.u32 [%rd2+4], %r3;", "CCC071", "store out of bounds"),
        ("ld.global.u32 %r4, [%rd1+-4];", "CCC071", "load out of bounds"),
        ("ld.global.u8 %r4, [%rd1+-1];", "CCC071", "before"),
        ("ld.global.u32 %r4, [0];", "CCC071", "load out of bounds"),
        ("ld.u32 %r4, [0];", "CCC071", "load out of bounds"),
        ("ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd1+120];", "CCC072", "misaligned load"),
        ("ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd1+128];", "CCC071", "0 bytes past the end"),
        ("ld.global.u32 %r4, [%rd1+2];", "CCC072", "misaligned load"),
        ("st.global.u64 [%rd1+4], %rd1;", "CCC072", "misaligned store"),
        ("atom.global.add.u32 %r4, [%rd1+2], 1;", "CCC072", "misaligned atomic"),
        ("atom.global.add.u32 %r4, [%rd1+128], 1;", "CCC071", "atomic out of bounds"),
        (
            ".shared .align 4 .b8 s[64]; ld.shared.u32 %r4, [s+64];",
            "CCC071",
            "shared memory of this launch has 64",
        ),
        (".shared .align 4 .b8 s[64]; ld.shared.u32 %r4, [s+2];", "CCC072", "misaligned load"),
        (".local .align 4 .b8 l[8]; st.local.u32 [l+16], %r3;", "CCC071", "store out of bounds"),
    ],
)
def test_bad_accesses(body: str, code: str, words: str) -> None:
    diagnostic = failure(body)
    assert diagnostic.code == code
    assert words in diagnostic.message + diagnostic.why
    assert "thread (" in diagnostic.message
    assert "`k`" in diagnostic.message
    assert body.split(";")[-2].strip().split()[0] in diagnostic.place.line_text


def test_the_first_bad_lane_is_named() -> None:
    diagnostic = failure(
        "mul.wide.u32 %rd3, %r0, 4; add.u64 %rd3, %rd1, %rd3; st.global.u32 [%rd3+-80], %r3;", grid=2
    )
    assert "thread (0, 0, 0) of block (0, 0, 0)" in diagnostic.message


def test_a_fault_names_the_cuda_line_where_known() -> None:
    ptx = kernel(".loc 1 17 5\n    st.global.u32 [%rd2+1000000], %r3;").replace(
        "\n}", '\n}\n.file 1 "src/bad.cu"\n'
    )
    with pytest.raises(EmulatorError) as caught:
        emulate(ptx, "k", grid=1, block=32, args=[np.zeros(32, np.uint32)])
    (diagnostic,) = caught.value.diagnostics
    assert str(diagnostic.place) == "src/bad.cu:17:5"
    assert "st.global.u32" in diagnostic.notes[0][1].line_text


def test_neighbouring_arrays_are_not_reached_from_one_another() -> None:
    ptx = kernel("ld.param.u64 %rd3, [a]; sub.u64 %rd4, %rd3, %rd1; add.u64 %rd5, %rd1, 4096; st.global.u32 [%rd5], 1;",
                 parameters=".param .u64 a")  # fmt: skip
    with pytest.raises(EmulatorError, match="CCC071"):
        emulate(ptx, "k", grid=1, block=1, args=[np.zeros(1024, np.uint32), np.zeros(1024, np.uint32)])


def test_lanes_may_load_from_several_allocations_at_once() -> None:
    body = """
    ld.param.u64 %rd3, [a]; and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 1; selp.u64 %rd4, %rd3, %rd1, %p1;
    ld.global.u32 %r5, [%rd4]; add.u32 %r5, %r5, %r3; st.global.u32 [%rd2+4], %r5;
    atom.global.add.u32 %r6, [%rd4], 1;
    """
    out, a = np.full(33, 100, np.uint32), np.full(1, 7000, np.uint32)
    emulate(kernel(body, parameters=".param .u64 a"), "k", grid=1, block=32, args=[out, a])
    assert out[1:].tolist() == [(7000 if i % 2 else 100) + i for i in range(32)]
    assert (out[0], a[0]) == (116, 7016)


@SHUFFLES
def test_narrow_and_vector_accesses(shuffle: int | None) -> None:
    body = """
    ld.param.u64 %rd3, [a]; mul.wide.u32 %rd4, %r3, 8; add.u64 %rd4, %rd3, %rd4;
    ld.global.s8 %r4, [%rd4]; ld.global.u8 %r5, [%rd4+1]; ld.global.s16 %r6, [%rd4+2];
    ld.global.v2.u16 {%h1, %h2}, [%rd4+4];
    cvt.u32.u16 %r7, %h1; cvt.s32.s16 %r8, %h2;
    add.u32 %r9, %r4, %r5; add.u32 %r9, %r9, %r6; add.u32 %r9, %r9, %r7; add.u32 %r9, %r9, %r8;
    st.global.u32 [%rd2], %r9;
    st.global.v2.u8 [%rd4+4], {%r4, %r5};
    """
    data = np.random.default_rng(1).integers(0, 256, (32, 8)).astype(np.uint8)
    before = data.copy()
    out = np.zeros(32, np.uint32)
    emulate(
        kernel(body, parameters=".param .u64 a"), "k", grid=1, block=32, args=[out, data], shuffle=shuffle
    )
    words = before.view(np.uint16).astype(np.int64)
    expected = (
        before[:, 0].view(np.int8).astype(np.int64)
        + before[:, 1]
        + words[:, 1].astype(np.int16)
        + words[:, 2]
    )
    assert out.view(np.int32).tolist() == (expected + words[:, 3].astype(np.int16)).tolist()
    assert (data[:, 4:6] == before[:, 0:2]).all()
    assert (data[:, 6:] == before[:, 6:]).all()


@SHUFFLES
def test_local_arrays_belong_to_their_thread(shuffle: int | None) -> None:
    body = """
    .local .align 8 .b8 depot[64]; .reg .b64 %SP, %SPL;
    mov.u64 %SPL, depot; cvta.local.u64 %SP, %SPL;
    mov.u32 %r4, 0;
FILL: mul.wide.u32 %rd3, %r4, 4; add.u64 %rd4, %SP, %rd3; mul.lo.u32 %r5, %r4, %r0; st.u32 [%rd4], %r5;
    add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 16; @%p1 bra FILL;
    and.b32 %r6, %r3, 15; mul.wide.u32 %rd3, %r6, 4; add.u64 %rd4, %SPL, %rd3; ld.local.u32 %r7, [%rd4];
    st.global.u32 [%rd2], %r7;
    """
    out, _ = run(body, block=40, grid=2, shuffle=shuffle)
    assert out.tolist() == [i * (i % 40 % 16) for i in range(80)]


def test_generic_addresses_know_their_space() -> None:
    body = """
    .shared .align 8 .b8 s[256]; .local .align 4 .b8 l[4];
    mov.u64 %rd3, s; cvta.shared.u64 %rd4, %rd3; mov.u64 %rd5, l; cvta.local.u64 %rd6, %rd5;
    cvta.to.shared.u64 %rd7, %rd4; sub.u64 %rd8, %rd7, %rd3;
    isspacep.shared %p1, %rd4; isspacep.shared %p2, %rd1; isspacep.global %p3, %rd1; isspacep.local %p4, %rd6;
    isspacep.global %p5, %rd6;
    selp.u32 %r4, 1, 0, %p1; selp.u32 %r5, 2, 0, %p2; selp.u32 %r6, 4, 0, %p3; selp.u32 %r7, 8, 0, %p4;
    selp.u32 %r8, 16, 0, %p5; or.b32 %r4, %r4, %r5; or.b32 %r4, %r4, %r6; or.b32 %r4, %r4, %r7; or.b32 %r4, %r4, %r8;
    cvt.u32.u64 %r9, %rd8; or.b32 %r4, %r4, %r9;
    mul.wide.u32 %rd9, %r3, 8; add.u64 %rd9, %rd4, %rd9; st.u32 [%rd9], %r4;
    atom.add.u32 %r11, [%rd9], 32; ld.u32 %r10, [%rd9];
    st.u32 [%rd2], %r10;
    """
    out, profile = run(body)
    assert (out == 1 + 4 + 8 + 32).all()
    assert (profile.global_accesses, profile.shared_accesses) == (1, 3)


@SHUFFLES
@pytest.mark.parametrize(
    ("access", "result"),
    [
        ("atom.add.u32 %r5, [%rd6], 3; ld.u32 %r4, [%rd6]; add.u32 %r4, %r4, %r5;", lambda i: 2 * i + 3),
        ("atom.cas.b32 %r4, [%rd6], 5, 90;", lambda i: i),
        ("ld.u32 %r4, [%rd6]; add.u32 %r4, %r4, 1; st.u32 [%rd6], %r4;", lambda i: i + 1),
    ],
    ids=["atom.add", "atom.cas", "load and store"],
)
def test_lanes_may_mix_spaces_in_a_generic_access(access: str, result: Any, shuffle: int | None) -> None:
    """Odd lanes have a word of shared memory, even ones their own of the output."""
    body = f"""
    .shared .align 4 .b8 s[128];
    mov.u64 %rd3, s; cvta.shared.u64 %rd4, %rd3; mul.wide.u32 %rd5, %r0, 4; add.u64 %rd4, %rd4, %rd5;
    and.b32 %r6, %r0, 1; setp.ne.u32 %p1, %r6, 0; selp.b64 %rd6, %rd4, %rd2, %p1;
    st.u32 [%rd6], %r0; {access} st.global.u32 [%rd2], %r4;
    """
    out, _ = run(body, shuffle=shuffle)
    assert out.tolist() == [result(i) for i in range(32)]


@SHUFFLES
def test_dynamic_shared_memory_lies_behind_the_static_one(shuffle: int | None) -> None:
    body = """
    .shared .align 4 .b8 own[12];
    mov.u32 %r4, dyn; mov.u32 %r5, fixed; mov.u32 %r6, own; max.u32 %r5, %r5, %r6; sub.u32 %r7, %r4, %r5;
    shl.b32 %r8, %r3, 2; add.u32 %r9, %r4, %r8; st.shared.u32 [%r9], %r7; bar.sync 0; ld.shared.u32 %r10, [%r9];
    st.global.u32 [%rd2], %r10;
    """
    module = ".extern .shared .align 16 .b8 dyn[];\n.shared .align 4 .b8 fixed[20];\n"
    out, _ = run(body, module=module, block=64, shared_bytes=256, shuffle=shuffle)
    assert 12 <= out[0] <= 32
    assert (out == out[0]).all()
    with pytest.raises(EmulatorError, match="CCC071"):
        run(body, module=module, block=64, shared_bytes=252)


def test_globals_constants_and_their_initializers() -> None:
    module = """
.global .align 4 .u32 counter = 5;
.const .align 4 .f32 factors[3] = {1.5, 0f40000000, 3.0};
.global .align 8 .u64 pointers[2] = {counter, generic(table)+8};
.global .align 4 .b8 table[16] = {1, 0, 0, 0, 2, 0, 0, 0, 0xff, 0x01};
"""
    body = """
    mov.u64 %rd3, pointers; ld.global.u64 %rd4, [%rd3]; ld.global.u32 %r4, [%rd4];
    ld.global.u64 %rd5, [%rd3+8]; ld.global.u32 %r5, [%rd5];
    ld.const.f32 %f1, [factors+4]; mov.u64 %rd6, factors; cvta.const.u64 %rd7, %rd6; ld.f32 %f2, [%rd7+8];
    mul.f32 %f1, %f1, %f2; cvt.rni.u32.f32 %r6, %f1;
    add.u32 %r7, %r4, 1; st.global.u32 [counter], %r7;
    mad.lo.u32 %r8, %r5, 100, %r4; mad.lo.u32 %r8, %r6, 1000000, %r8; st.global.u32 [%rd2], %r8;
    """
    program = Program(kernel(body, module=module))
    for launch in range(3):  # module variables live on
        out = np.zeros(1, np.uint32)
        program.launch("k", 1, 1, [out])
        assert out[0] == 6_000_000 + 511 * 100 + 5 + launch


def test_reading_shared_memory_that_nobody_wrote() -> None:
    body = """
    .shared .align 4 .b8 s[256]; mov.u32 %r4, s; shl.b32 %r5, %r3, 2; add.u32 %r4, %r4, %r5;
    setp.ne.u32 %p1, %r3, 9; @%p1 st.shared.u32 [%r4], %r3; ld.shared.u32 %r6, [%r4];
    """
    run(body)
    diagnostic = failure(body, check_uninitialized_shared=True)
    assert diagnostic.code == "CCC077"
    assert "thread (9, 0, 0)" in diagnostic.message
    run(body.replace("@%p1 ", ""), check_uninitialized_shared=True)


def test_sectors_and_bank_conflicts() -> None:
    def counts(stride: int, lanes: int = 32) -> tuple[int, int]:
        body = f"""
        .shared .align 4 .b8 s[16384];
        setp.ge.u32 %p1, %r3, {lanes}; @%p1 ret;
        mul.lo.u32 %r4, %r3, {4 * stride}; mov.u32 %r5, s; add.u32 %r5, %r5, %r4; st.shared.u32 [%r5], %r3;
        cvt.u64.u32 %rd3, %r4; add.u64 %rd3, %rd1, %rd3; ld.global.u32 %r6, [%rd3];
        """
        _, profile = run(body, block=64, words=64 * stride)
        return profile.global_transactions, profile.shared_bank_conflicts

    assert counts(1, 64) == (8, 0)
    assert counts(2, 64) == (16, 2)
    assert counts(8) == (32, 7)
    assert counts(32) == (32, 31)
    assert counts(33) == (32, 0)


def test_sectors_of_addresses_in_any_order() -> None:
    body = """
    mul.lo.u32 %r4, %r3, 7; and.b32 %r4, %r4, 31; mul.wide.u32 %rd3, %r4, 16; add.u64 %rd3, %rd1, %rd3;
    ld.global.u32 %r5, [%rd3];
    """
    _, profile = run(body, words=128)
    assert profile.global_transactions == 16


# --- atomics ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("base", ["atom", "red"])
@pytest.mark.parametrize(
    ("operation", "type_name", "start"),
    [("add", "u32", 5), ("add", "u64", 5), ("min", "s32", 3), ("max", "u32", 3), ("and", "b32", 0xFFFF),
     ("or", "b32", 1), ("xor", "b64", 1), ("inc", "u32", 2), ("dec", "u32", 2), ("exch", "b32", 9),
     ("add", "f32", 0), ("add", "f64", 0)],
)  # fmt: skip
def test_atomics_act_lane_by_lane(operation: str, type_name: str, start: int, base: str, space: str) -> None:
    if base == "red" and operation == "exch":
        return
    bits = int(type_name[1:])
    t = np.dtype(f"{'f' if type_name[0] == 'f' else 'i' if type_name[0] == 's' else 'u'}{bits // 8}")
    register = f"%{'rd' if bits == 64 else 'r'}"
    values = (np.random.default_rng(2).integers(0, 50, 64) - (20 if t.kind == "i" else 0)).astype(t)
    cells = np.array([start] * 4).astype(t)
    old = np.zeros(64, t)
    get, result = (
        ("", "") if base == "red" else (f"st.global.b{bits} [%rd5], {register}11;", f"{register}11, ")
    )
    body = f"""
    .shared .align 8 .b8 s[32];
    ld.param.u64 %rd3, [values]; ld.param.u64 %rd4, [old]; mul.wide.u32 %rd5, %r3, {bits // 8};
    add.u64 %rd6, %rd3, %rd5; add.u64 %rd5, %rd4, %rd5; ld.global.b{bits} {register}10, [%rd6];
    and.b32 %r4, %r3, 3; mul.wide.u32 %rd7, %r4, {bits // 8}; add.u64 %rd8, %rd1, %rd7;
    mov.u64 %rd9, s; add.u64 %rd9, %rd9, %rd7;
    setp.lt.u32 %p1, %r3, 4;
    @%p1 ld.global.b{bits} {register}12, [%rd8]; @%p1 st.shared.b{bits} [%rd9], {register}12;
    bar.sync 0;
    {base}.{space}.{operation}.{type_name} {result}[{"%rd8" if space == "global" else "%rd9"}], {register}10;
    bar.sync 0;
    {get}
    {"@%p1" if space == "shared" else "@!%p1"} ld.shared.b{bits} {register}12, [%rd9];
    {f"@%p1 st.global.b{bits} [%rd8], {register}12;" if space == "shared" else ""}
    """
    expected, before = cells.copy(), []
    for lane, value in enumerate(values):
        cell = expected[lane % 4]
        before.append(cell)
        new: Any = {
            "add": lambda c=cell, v=value: c + v, "min": lambda c=cell, v=value: min(c, v),
            "max": lambda c=cell, v=value: max(c, v), "and": lambda c=cell, v=value: c & v,
            "or": lambda c=cell, v=value: c | v, "xor": lambda c=cell, v=value: c ^ v,
            "inc": lambda c=cell, v=value: 0 if c >= v else c + 1, "exch": lambda c=cell, v=value: v,
            "dec": lambda c=cell, v=value: v if c == 0 or c > v else c - 1,
        }[operation]()  # fmt: skip
        expected[lane % 4] = new
    ptx = kernel(body, parameters=".param .u64 values, .param .u64 old")
    emulate(ptx, "k", grid=1, block=64, args=[cells, values, old])
    assert cells.tolist() == expected.tolist()
    if base == "atom":
        assert old.tolist() == [x.item() for x in before]


def test_compare_and_swap() -> None:
    body = "add.u32 %r5, %r3, 1; atom.global.cas.b32 %r4, [%rd1], %r3, %r5; st.global.u32 [%rd2+4], %r4;"
    out, _ = run(body, words=33)
    assert out.tolist() == [32, *range(32)]


def test_an_atomic_that_does_not_exist_is_refused() -> None:
    with pytest.raises(EmulatorError, match="CCC070"):
        run("atom.global.min.f32 %r4, [%rd1], %f1;")


# --- what is not known ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("frobnicate.u32 %r4, %r5;", "frobnicate.u32"),
        ("add.foo.u32 %r4, %r5, %r6;", ".foo"),
        ("mul.rn.s32 %r4, %r5, %r6;", "has none of .lo"),
        ("cvt.s32.f32 %r4, %f1;", "needs a rounding modifier"),
        ("ld.global.foo.u32 %r4, [%rd1];", ".foo"),
        ("tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r4, %r5}];", "t"),
        ("mov.u32 %r4, %rd1;", "64 bits"),
        ("add.u32 %r4, %r99, 1;", "%r99"),
        ("mov.u32 %r4, nowhere;", "nowhere"),
    ],
)
def test_what_the_machine_does_not_know_is_an_error_at_its_line(line: str, words: str) -> None:
    diagnostic = failure(line)
    assert diagnostic.code in ("CCC070", "CCC079")
    assert words in diagnostic.message + diagnostic.why
    assert diagnostic.place.line_text.strip() == line


def test_a_branch_to_nowhere() -> None:
    with pytest.raises(EmulatorError, match="no label `AWAY`"):
        run("bra AWAY;")


def test_unused_textures_do_not_matter() -> None:
    out, _ = run("st.global.u32 [%rd2], 7;", module=".global .texref picture;\n")
    assert (out == 7).all()


def test_unknown_instructions_of_other_kernels_do_not_matter() -> None:
    ptx = kernel("st.global.u32 [%rd2], 1;") + ".visible .entry other() { frobnicate; ret; }\n"
    out = np.zeros(32, np.uint32)
    emulate(ptx, "k", grid=1, block=32, args=[out])
    assert out.all()
    assert HEAD in ptx
