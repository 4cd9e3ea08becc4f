"""The rows of the instruction table (PTX ISA 9.0, chapter 9): one row a family, the more special row first.

A row names its opcode and the modifiers that it needs, then its operands in order: a letter for the role and
the type behind a colon.

    d  written    u  read (an address where the operand is one)    m  memory operand    l  label

A type is a number (which of the types in the opcode, ``-1`` the last), ``w0`` (twice as wide as the first), a
type, or nothing. ``?`` marks an operand that may be missing, ``*`` any number of further ones.

Effects are words: ``pure``, ``load``, ``store``, ``atomic``, ``sync`` (synchronises), ``convergent``,
``aligned``, and the control words ``branch``, ``indexed``, ``call``, ``return``, ``exit``. ``space`` is
that of a memory access whose opcode does not name it. ``cost`` names a row of ``COSTS``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One row: ``opcode`` with its needed modifiers, operand specification, effects, throughput class."""

    opcode: str
    operands: str
    effects: str = "pure"
    cost: str = "int"
    space: str | None = None


def _rows(
    opcodes: str, operands: str, effects: str = "pure", cost: str = "int", space: str | None = None
) -> Iterator[Row]:
    return (Row(opcode, operands, effects, cost, space) for opcode in opcodes.split())


COSTS: dict[str, dict[str, float]] = {
    # Issue slots of a warp by type on compute capability 9.0: 128 results a clock of an SM are one slot (CUDA
    # C++ Programming Guide, table "Throughput of Native Arithmetic Instructions"). Sequences that ptxas
    # expands (division, square root, 64-bit multiplication) count what they expand to.
    "free": {"": 0.0},
    "move": {"": 1.0, "64": 2.0, "128": 4.0},
    "int": {"": 2.0, "64": 4.0, "f16": 1.0, "f32": 1.0, "f64": 2.0},
    "compare": {"": 2.0, "64": 4.0},
    "mul": {"": 2.0, "64": 12.0, "f16": 1.0, "f32": 1.0, "f64": 2.0},
    "division": {"": 40.0, "64": 140.0, "f32": 20.0, "f64": 40.0},
    "root": {"": 20.0, "f64": 40.0},
    "special": {"": 8.0, "f64": 40.0},
    "bits": {"": 8.0, "64": 16.0},
    "convert": {"": 2.0, "f64": 8.0},
    "memory": {"": 4.0, "64": 8.0, "128": 16.0},
    "atomic": {"": 8.0},
    "shuffle": {"": 4.0},
    "vote": {"": 2.0},
    "branch": {"": 2.0},
    "barrier": {"": 8.0},
    "call": {"": 20.0},
}


def _arithmetic() -> Iterator[Row]:
    carry = ""  # reads or writes the carry flag, which is no operand: not pure
    yield from _rows("add.cc sub.cc addc subc", "d:0 u:0 u:0", carry)
    yield from _rows("mad.cc madc", "d:0 u:0 u:0 u:0", carry, "mul")
    yield from _rows("add sub", "d:0 u:-1 u:0")
    yield from _rows("min max", "d:0 u:0 u:0 u:0?", cost="compare")
    yield from _rows("mul.wide", "d:w0 u:0 u:0", cost="mul")
    yield from _rows("mul mul24", "d:0 u:0 u:0", cost="mul")
    yield from _rows("mad.wide mad24.wide", "d:w0 u:0 u:0 u:w0", cost="mul")
    yield from _rows("mad mad24 fma", "d:0 u:-1 u:-1 u:0", cost="mul")
    yield from _rows("sad", "d:0 u:0 u:0 u:0")
    yield from _rows("div.approx", "d:0 u:0 u:0", cost="special")
    yield from _rows("div rem", "d:0 u:0 u:0", cost="division")
    yield from _rows("abs neg", "d:0 u:0")
    yield from _rows("rcp.approx sqrt.approx", "d:0 u:0", cost="special")
    yield from _rows("rcp sqrt", "d:0 u:0", cost="root")
    yield from _rows("rsqrt sin cos lg2 ex2 tanh", "d:0 u:0", cost="special")
    yield from _rows("copysign", "d:0 u:0 u:0")
    yield from _rows("testp", "d:pred u:0")
    yield from _rows("dp4a dp2a", "d:b32 u:b32 u:b32 u:b32")


def _logic() -> Iterator[Row]:
    yield from _rows("and or xor", "d:0 u:0 u:0")
    yield from _rows("not cnot", "d:0 u:0")
    yield from _rows("shl shr", "d:0 u:0 u:u32")
    yield from _rows("shf", "d:0 u:0 u:0 u:u32")
    yield from _rows("lop3", "d:0 u:0 u:0 u:0 u u:pred?")
    yield from _rows("popc clz bfind", "d:u32 u:0", cost="bits")
    yield from _rows("brev", "d:0 u:0", cost="bits")
    yield from _rows("fns", "d:0 u:b32 u:b32 u:s32", cost="division")
    yield from _rows("bfe", "d:0 u:0 u:u32 u:u32")
    yield from _rows("bfi", "d:0 u:0 u:0 u:u32 u:u32")
    yield from _rows("bmsk szext", "d:0 u:b32 u:b32")
    yield from _rows("prmt", "d:0 u:0 u:0 u:b32")
    yield from _rows("vadd vsub vabsdiff vmin vmax vshl vshr vset", "d:b32 u:b32 u:b32 u:b32?")
    yield from _rows("vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2", "d:b32 u:b32 u:b32 u:b32?")
    yield from _rows("vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4", "d:b32 u:b32 u:b32 u:b32?")
    yield from _rows("vmad", "d:b32 u:b32 u:b32 u:b32", cost="mul")


def _selection_and_moves() -> Iterator[Row]:
    yield from _rows("setp", "d:pred u:0 u:0 u:pred?", cost="compare")
    yield from _rows("set", "d:0 u:1 u:1 u:pred?", cost="compare")
    yield from _rows("selp", "d:0 u:0 u:0 u:pred", cost="compare")
    yield from _rows("slct", "d:0 u:0 u:0 u:1", cost="compare")
    yield from _rows("mov", "d:0 u:0", cost="move")
    yield from _rows("cvt.pack", "d:0 u:1 u:1 u:2?", cost="convert")
    yield from _rows("cvt", "d:0 u:1 u:1? u? u? u?", cost="convert")
    yield from _rows("cvta", "d:0 u:0", cost="free")
    yield from _rows("isspacep", "d:pred u")
    yield from _rows("istypep", "d:pred u")
    yield from _rows("getctarank", "d:u32 u:0")
    yield from _rows("mapa", "d:0 u:0 u:u32")
    yield from _rows("alloca", "d:0 u:0 u?", "", "move")
    yield from _rows("stacksave", "d:0", "", "move")
    yield from _rows("stackrestore", "u:0", "", "move")


def _memory() -> Iterator[Row]:
    yield from _rows("ld.param", "d:0 m", "load", "move")
    yield from _rows("st.param", "m u:0", "store", "move")
    yield from _rows("ld ldu", "d:0 m u:b64?", "load", "memory")
    yield from _rows("st.async st.bulk", "m u*", "store sync", "memory")
    yield from _rows("st", "m u:0 u:b64?", "store", "memory")
    yield from _rows("prefetch prefetchu applypriority", "m u*", "", "memory")
    yield from _rows("discard", "m u*", "store", "memory")
    yield from _rows("createpolicy", "d:b64 u*", "", "move")
    yield from _rows("atom", "d:0 m u:0 u:0? u:b64?", "atomic", "atomic")
    yield from _rows("red.async", "m u*", "atomic sync", "atomic")
    yield from _rows("red", "m u:0 u:b64?", "atomic", "atomic")
    yield from _rows("multimem.ld_reduce", "d:-1 m u*", "load sync", "memory")
    yield from _rows("multimem.st multimem.red", "m u*", "atomic sync", "memory")
    yield from _rows(
        "cp.async.bulk.commit_group cp.async.commit_group cp.async.wait_all", "", "sync", "barrier"
    )
    yield from _rows("cp.async.bulk.wait_group cp.async.wait_group", "u", "sync", "barrier")
    yield from _rows("cp.async.mbarrier", "m", "sync atomic", "barrier", "shared")
    yield from _rows("cp.async.bulk cp.reduce", "m u*", "atomic sync", "memory", "generic")
    yield from _rows("cp.async", "m m u*", "atomic", "memory", "generic")
    yield from _rows("tex tld4", "d:0 m u*", "load", "memory", "generic")
    yield from _rows("suld", "d:0 m", "load", "memory", "generic")
    yield from _rows("sust", "m u:0", "store", "memory", "generic")
    yield from _rows("sured", "m u:0", "atomic", "memory", "generic")
    yield from _rows("txq suq", "d:0 m u?", "", "memory")


def _collectives() -> Iterator[Row]:
    warp = "sync convergent"
    yield from _rows("vote.sync", "d:0 u:pred u:b32", warp, "vote")
    yield from _rows("vote", "d:0 u:pred", "convergent", "vote")
    yield from _rows("match", "d:b32 u:0 u:b32", warp, "shuffle")
    yield from _rows("shfl.sync", "d:0 u:0 u:b32 u:b32 u:b32", warp, "shuffle")
    yield from _rows("shfl", "d:0 u:0 u:b32 u:b32", "convergent", "shuffle")
    yield from _rows("redux", "d:0 u:0 u:b32", warp, "shuffle")
    yield from _rows("activemask", "d:0", "convergent", "vote")
    yield from _rows("elect", "d:b32 u:b32", warp + " aligned", "vote")
    yield from _rows("bar.warp", "u:b32", warp, "vote")
    yield from _rows("bar.red", "d:-1 u u? u:pred", warp + " aligned", "barrier")
    yield from _rows("barrier.red", "d:-1 u u? u:pred", warp, "barrier")
    yield from _rows("bar", "u u?", warp + " aligned", "barrier")
    yield from _rows("barrier.cluster", "", warp, "barrier")
    yield from _rows("barrier", "u u?", warp, "barrier")
    yield from _rows("membar fence", "u*", "sync", "barrier")
    barrier = "sync atomic"
    yield from _rows("mbarrier.arrive mbarrier.arrive_drop", "d:b64 m u*", barrier, "barrier", "shared")
    yield from _rows("mbarrier.init", "m u:b32", barrier, "barrier", "shared")
    yield from _rows("mbarrier.inval", "m", barrier, "barrier", "shared")
    yield from _rows("mbarrier.expect_tx mbarrier.complete_tx", "m u:b32", barrier, "barrier", "shared")
    yield from _rows("mbarrier.pending_count", "d:b32 u:b64")
    yield from _rows(
        "mbarrier.try_wait mbarrier.test_wait", "d:pred m u*", "sync atomic", "barrier", "shared"
    )
    yield from _rows("griddepcontrol", "", "sync", "barrier")
    yield from _rows("setmaxnreg", "u", warp + " aligned", "barrier")
    yield from _rows("nanosleep", "u:u32", "sync", "barrier")
    yield from _rows("pmevent brkpt", "u*", "")
    matrix = warp + " aligned"
    yield from _rows("wmma.load", "d m u?", matrix + " load", "memory")
    yield from _rows("wmma.store", "m u u?", matrix + " store", "memory")
    yield from _rows("wmma.mma mma", "d u u u u*", matrix, "special")
    yield from _rows("ldmatrix", "d m", matrix + " load", "memory")
    yield from _rows("stmatrix", "m u", matrix + " store", "memory")
    yield from _rows("movmatrix", "d:0 u:0", matrix, "shuffle")


def _control() -> Iterator[Row]:
    yield from _rows("bra", "l", "branch", "branch")
    yield from _rows("brx", "u:u32 l", "indexed", "branch")
    # A call's own facts: what the function behind it does is for an analysis to find out.
    yield from _rows("call", "", "call convergent atomic", "call", "generic")
    yield from _rows("ret", "", "return", "branch")
    yield from _rows("exit trap", "", "exit", "branch")


def _by_opcode() -> dict[str, tuple[Row, ...]]:
    table: dict[str, tuple[Row, ...]] = {}
    for family in (_arithmetic, _logic, _selection_and_moves, _memory, _collectives, _control):
        for row in family():
            base = row.opcode.partition(".")[0]
            table[base] = (*table.get(base, ()), row)
    return table


ROWS: dict[str, tuple[Row, ...]] = _by_opcode()
"""Rows by the first part of the opcode; the first whose modifiers are all there counts."""
