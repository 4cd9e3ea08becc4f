"""Reads and writes under guards."""

from __future__ import annotations

import pytest

from cccopt.analysis.effects import kills, needs, reads, special_registers, writes
from cccopt.ptx.ir import Label

from .kernels import find, kernel


@pytest.mark.parametrize(
    ("text", "read", "written", "killed", "needed"),
    [
        ("mov.u32 %r1, 5;", "", "%r1", "%r1", ""),
        ("@%p1 mov.u32 %r1, 5;", "%p1", "%r1", "", "%p1 %r1"),
        ("@!%p1 add.s32 %r1, %r1, %r2;", "%p1 %r1 %r2", "%r1", "", "%p1 %r1 %r2"),
        ("st.global.u32 [%rd1+4], %r2;", "%rd1 %r2", "", "", "%rd1 %r2"),
        ("ld.global.v2.u32 {%r1, %r2}, [%rd1];", "%rd1", "%r1 %r2", "%r1 %r2", "%rd1"),
        ("setp.lt.s32 %p1|%p2, %r1, %r2;", "%r1 %r2", "%p1 %p2", "%p1 %p2", "%r1 %r2"),
        ("mov.b64 {%r1, %r2}, %rd1;", "%rd1", "%r1 %r2", "%r1 %r2", "%rd1"),
    ],
)
def test_what_an_instruction_does_to_registers(text, read, written, killed, needed):
    function = kernel(text)
    statement = function.body[find(function, text.rstrip(";").split()[-1].rstrip(";"))]
    assert reads(statement) == set(read.split())
    assert writes(statement) == set(written.split())
    assert kills(statement) == set(killed.split())
    assert needs(statement) == set(needed.split())


def test_special_registers_are_told_apart_from_registers():
    function = kernel("mad.lo.s32 %r1, %ctaid.x, %ntid.x, %r2;")
    statement = function.body[find(function, "mad")]
    assert special_registers(statement) == {"%ctaid.x", "%ntid.x"}
    assert reads(statement) == {"%r2"}


def test_what_is_no_instruction_does_nothing():
    label = Label("L")
    assert not reads(label) | writes(label) | kills(label) | needs(label) | special_registers(label)
