"""The two tables of instructions: facts (`ptx.isa`) and values (`emulator.semantics`) say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cccopt.emulator.semantics import PURE, UnsupportedError, resolve
from cccopt.emulator.semantics.operation import bits
from cccopt.ptx.ir import Instruction, Register
from cccopt.ptx.isa import Role, facts, width
from cccopt.ptx.isa_table import ROWS

ELSEWHERE = {"mov", "cvta", "isspacep"}
"""Computed by the code generator, since they name registers' parts and address windows."""

UNSUPPORTED = (
    {"szext", "istypep", "getctarank", "mapa", "mbarrier", "vmad", "clusterlaunchcontrol"}
    | {f"v{op}" for op in ("add", "sub", "absdiff", "min", "max", "shl", "shr", "set")}
    | {f"v{op}{n}" for op in ("add", "sub", "avrg", "absdiff", "min", "max", "set") for n in (2, 4)}
)
"""Pure instructions that the machine refuses by name: nvcc writes none of them for ordinary C++."""

_SAMPLES = """
add.s32 add.f32 add.rn.ftz.sat.f32 add.rz.f64 add.cc.u32 addc.cc.u64 sub.u16 sub.rn.f64 subc.u32 mul.lo.s32
mul.hi.u64 mul.wide.s16 mul.wide.u32 mul.rn.f32 mul24.lo.u32 mad.lo.s64 mad.wide.s32 mad.hi.cc.u32 madc.lo.u32
mad.rn.f32 mad24.hi.s32 fma.rn.f32 fma.rm.f64 fma.rn.f16 sad.u32 div.s32 div.rn.f32 div.approx.ftz.f32
div.full.f32 rem.u64 abs.s32 abs.f64 neg.s16 neg.f32 min.s32 min.f32 max.NaN.f32 rcp.rn.f64 sqrt.approx.f32
rsqrt.approx.f64 sin.approx.f32 cos.approx.ftz.f32 lg2.approx.f32 ex2.approx.f32 tanh.approx.f32 copysign.f64
testp.normal.f32 dp4a.s32.u32 dp2a.lo.u32.s32 and.b32 and.pred or.b64 xor.b16 not.b32 not.pred cnot.b64 shl.b32
shl.b16 shr.s64 shr.u16 shf.l.wrap.b32 lop3.b32 popc.b64 clz.b32 bfind.s64 brev.b64 fns.b32 bfe.s64 bfi.b32
bmsk.clamp.b32 prmt.b32 prmt.b32.rc8 setp.lt.s32 setp.geu.f64 set.eq.u32.f64 selp.b16 selp.f64 slct.f64.s32
cvt.rn.f32.s64 cvt.u8.u32 cvt.rzi.s16.f64 cvt.sat.f32.f32 cvt.rn.f16x2.f32 fma.rn.f16x2 neg.f16x2 set.gt.f16x2.f16x2
"""
SAMPLES = _SAMPLES.split()


def known_bases() -> set[str]:
    return {base for base, rows in ROWS.items() if any("pure" in row.effects.split() for row in rows)}


def test_every_pure_opcode_has_values_or_is_refused_by_name() -> None:
    missing = known_bases() - PURE - ELSEWHERE
    assert missing == UNSUPPORTED
    for base in sorted(UNSUPPORTED):
        with pytest.raises(UnsupportedError, match=base):
            resolve([base, "u32"])


def test_no_values_without_facts() -> None:
    assert set(ROWS) >= PURE | ELSEWHERE


def test_samples_cover_the_table() -> None:
    assert {opcode.split(".")[0] for opcode in SAMPLES} == PURE


@pytest.mark.parametrize("opcode", SAMPLES)
def test_operands_have_the_same_widths(opcode: str) -> None:
    operation = resolve(opcode.split("."), sources=2)
    types_in = operation.inputs[:-1] if operation.carry_in else operation.inputs
    types_out = operation.outputs[:-1] if operation.carry_out else operation.outputs
    registers = tuple(Register(f"%r{i}") for i in range(len(types_in) + len(types_out)))
    told = facts(Instruction(opcode, registers))
    assert told.known
    assert told.pure == (not operation.carry_in and not operation.carry_out)
    expected = [Role.DEF] * len(types_out) + [Role.USE] * len(types_in)
    assert list(told.roles) == expected
    for dtype, name in zip((*types_out, *types_in), told.types, strict=True):
        # Eight bits hold a predicate here; an operand without a type is an immediate.
        assert name is None or width(name) == (1 if dtype.kind == "b" else bits(dtype)), (opcode, told.types)


@pytest.mark.parametrize("opcode", SAMPLES)
def test_an_operand_may_be_one_for_all_lanes(opcode: str) -> None:
    """Constants come as arrays without dimensions; at least one operand has an element a lane."""
    operation = resolve(opcode.split("."), sources=2)
    draw = np.random.default_rng(3)
    size = 5
    columns = [
        draw.integers(0, 2, size).astype(bool)
        if t.kind == "b"
        else np.frombuffer(draw.bytes(size * t.itemsize), f"u{t.itemsize}").view(t)
        for t in operation.inputs
    ]

    def compute(operands: list[Any]) -> list[bytes]:
        with np.errstate(all="ignore"):
            results = operation.function(*operands)
        found = results if isinstance(results, tuple) else (results,)
        return [
            np.broadcast_to(r, (size,)).astype(t).tobytes()
            for r, t in zip(found, operation.outputs, strict=True)
        ]

    for lanes in range(len(columns)):
        alike = [c if i == lanes else np.full(size, c[0], c.dtype) for i, c in enumerate(columns)]
        scalars = [c if i == lanes else c[0].reshape(()) for i, c in enumerate(columns)]
        assert compute(alike) == compute(scalars), lanes
