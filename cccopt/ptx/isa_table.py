"""The rows of the instruction table (PTX ISA 9.0, chapter 9): one row per family, the more specific row first.

A row names its opcode and the modifiers that it needs, then its operands in order: a letter for the role and
the type after a colon.

    d  written    u  read (an address where the operand is one)    x  read and written
    m  memory operand    l  label

``since`` is the PTX version and the target that introduced the family. A later form of it may require more.

A type is a number (the index of a type in the opcode, ``-1`` for the last), ``w0`` (twice as wide as the first),
the name of a type, or nothing. ``?`` marks an operand that may be missing, ``*`` any number of further ones.

Effects are words: ``pure``, ``load``, ``store``, ``atomic``, ``sync`` (synchronizes), ``convergent``,
``aligned``, ``fence`` (it only orders the memory accesses of its thread), ``waits`` (it waits for other warps, other
grids or work in flight, or such a wait waits for it: an arrival, a copy that begins). Others are ``collective`` (lanes
of a warp meet), ``uniform`` (each of these lanes gets the same result), ``barrier`` (threads of a block or cluster
meet), ``cluster`` (it touches other blocks), ``grouped`` (warps work as a group) and ``wider`` (an operand may be wider
than its type: 9.4.1). There are also ``linear`` (in each source), the operator with which it updates its destination
(``+``, ``min``), ``carries`` (it reads the carry flag), what it computes (`cccopt.ptx.isa.Arithmetic`), and the control
words ``branch``, ``indexed``, ``call``, ``return``, ``exit``, ``trap``. ``space`` is that of a memory access whose
opcode does not name it. ``cost`` names a row of ``COSTS``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One row: ``opcode`` with the modifiers it needs, operand specification, effects, throughput class.

    ``since`` has the form ``7.0 sm_80``; without a target, every target since ``sm_10`` has the family.
    """

    opcode: str
    operands: str
    effects: str = "pure"
    cost: str = "int"
    space: str | None = None
    since: str = "1.0"


def _rows(
    opcodes: str,
    operands: str,
    effects: str = "pure",
    cost: str = "int",
    space: str | None = None,
    since: str = "1.0",
) -> Iterator[Row]:
    return (Row(opcode, operands, effects, cost, space, since) for opcode in opcodes.split())


COSTS: dict[str, dict[str, float]] = {
    # Issue slots of a warp by type on compute capability 9.0: 128 results per clock and SM are one slot (CUDA
    # C++ Programming Guide, table "Throughput of Native Arithmetic Instructions"). Instructions that ptxas
    # expands (division, square root, 64-bit multiplication) cost what they expand to.
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
    # The carry flag is not an operand: what reads or writes it is not pure.
    yield from _rows("add.cc", "d:0 u:0 u:0", "sum", since="1.2")
    yield from _rows("sub.cc", "d:0 u:0 u:0", "difference", since="1.2")
    yield from _rows("addc subc", "d:0 u:0 u:0", "carries", since="1.2")
    yield from _rows("mad.cc", "d:0 u:0 u:0 u:0", "product-sum", "mul", since="3.0 sm_20")
    yield from _rows("madc", "d:0 u:0 u:0 u:0", "carries", "mul", since="3.0 sm_20")
    yield from _rows("add", "d:0 u:-1 u:0", "pure sum linear +")
    yield from _rows("sub", "d:0 u:-1 u:0", "pure difference linear +")
    yield from _rows("min", "d:0 u:0 u:0 u:0?", "pure min", "compare")
    yield from _rows("max", "d:0 u:0 u:0 u:0?", "pure max", "compare")
    yield from _rows("mul.wide", "d:w0 u:0 u:0", "pure product linear *", "mul")
    yield from _rows("mul", "d:0 u:0 u:0", "pure product linear *", "mul")
    # The product of 24 bits of each factor.
    yield from _rows("mul24", "d:0 u:0 u:0", "pure product", "mul")
    yield from _rows("mad.wide", "d:w0 u:0 u:0 u:w0", "pure product-sum linear +", "mul")
    yield from _rows("mad", "d:0 u:-1 u:-1 u:0", "pure product-sum linear +", "mul")
    yield from _rows("mad24", "d:0 u:-1 u:-1 u:0", "pure product-sum", "mul")
    yield from _rows("fma", "d:0 u:-1 u:-1 u:0", "pure fused-product-sum +", "mul", since="1.4 sm_13")
    yield from _rows("sad", "d:0 u:0 u:0 u:0")
    yield from _rows("div.approx", "d:0 u:0 u:0", "pure quotient", "special", since="1.4")
    yield from _rows("div", "d:0 u:0 u:0", "pure quotient", "division")
    yield from _rows("rem", "d:0 u:0 u:0", "pure remainder", "division")
    yield from _rows("abs", "d:0 u:0")
    yield from _rows("neg", "d:0 u:0", "pure negation linear")
    yield from _rows("rcp.approx sqrt.approx", "d:0 u:0", cost="special", since="1.4")
    yield from _rows("rcp sqrt", "d:0 u:0", cost="root")
    yield from _rows("rsqrt sin cos lg2 ex2", "d:0 u:0", cost="special")
    yield from _rows("tanh", "d:0 u:0", cost="special", since="7.0 sm_75")
    yield from _rows("copysign", "d:0 u:0 u:0", since="2.0 sm_20")
    yield from _rows("testp", "d:pred u:0", since="2.0 sm_20")
    yield from _rows("dp4a dp2a", "d:u32 u:u32 u:u32 u:u32", since="5.0 sm_61")


def _logic() -> Iterator[Row]:
    yield from _rows("and", "d:0 u:0 u:0", "pure conjunction &")
    yield from _rows("or", "d:0 u:0 u:0", "pure disjunction |")
    yield from _rows("xor", "d:0 u:0 u:0", "pure ^")
    yield from _rows("not cnot", "d:0 u:0")
    yield from _rows("shl", "d:0 u:0 u:u32", "pure left-shift linear")
    yield from _rows("shr", "d:0 u:0 u:u32", "pure right-shift")
    yield from _rows("shf", "d:0 u:0 u:0 u:u32", since="3.1 sm_32")
    yield from _rows("lop3", "d:0 u:0 u:0 u:0 u u:pred?", since="4.3 sm_50")
    yield from _rows("popc clz bfind", "d:u32 u:0", "pure bit-count", "bits", since="2.0 sm_20")
    yield from _rows("brev", "d:0 u:0", cost="bits", since="2.0 sm_20")
    yield from _rows("fns", "d:0 u:b32 u:b32 u:b32", cost="division", since="6.0 sm_30")
    yield from _rows("bfe", "d:0 u:0 u:u32 u:u32", "pure bit-field", since="2.0 sm_20")
    yield from _rows("bfi", "d:0 u:0 u:0 u:u32 u:u32", since="2.0 sm_20")
    yield from _rows("bmsk szext", "d:0 u:b32 u:b32", since="7.6 sm_70")
    yield from _rows("prmt", "d:0 u:0 u:0 u:b32", since="2.0 sm_20")
    video = "d:u32 u:u32 u:u32 u:u32?"
    yield from _rows("vadd vsub vabsdiff vmin vmax vshl vshr vset", video, since="2.0 sm_20")
    yield from _rows("vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2", video, since="3.0 sm_30")
    yield from _rows("vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4", video, since="3.0 sm_30")
    yield from _rows("vmad", "d:u32 u:u32 u:u32 u:u32", cost="mul", since="2.0 sm_20")


def _selection_and_moves() -> Iterator[Row]:
    yield from _rows("setp", "d:pred u:0 u:0 u:pred?", cost="compare")
    yield from _rows("set", "d:0 u:1 u:1 u:pred?", cost="compare")
    yield from _rows("selp", "d:0 u:0 u:0 u:pred", "pure selection", "compare")
    yield from _rows("slct", "d:0 u:0 u:0 u:1", cost="compare")
    yield from _rows("mov", "d:0 u:0", "pure copy linear", "move")
    yield from _rows("cvt.pack", "d:u32 u:1 u:1 u:2?", "pure wider", "convert", since="6.5 sm_72")
    yield from _rows("cvt", "d:0 u:1 u:1? u? u? u?", "pure copy linear wider", "convert")
    yield from _rows("cvta", "d:0 u:0", "pure copy linear", "free", since="2.0 sm_20")
    yield from _rows("isspacep", "d:pred u", since="2.0 sm_20")
    yield from _rows("istypep", "d:pred u:b64", since="4.0 sm_30")
    yield from _rows("getctarank", "d:u32 u:0", "pure cluster", since="7.8 sm_90")
    yield from _rows("mapa", "d:0 u:0 u:u32", "pure cluster", since="7.8 sm_90")
    # The stack is local memory: the addresses that these give or take are only valid in this thread, at this time.
    stack = ("atomic", "move", "local", "7.3 sm_52")
    yield from _rows("alloca", "d:0 u:0 u?", *stack)
    yield from _rows("stacksave", "d:0", *stack)
    yield from _rows("stackrestore", "u:0", *stack)
    query = "clusterlaunchcontrol.query_cancel"
    yield from _rows(f"{query}.is_canceled", "d:pred u:b128", cost="move", since="8.6 sm_100")
    yield from _rows(query, "d:b32 u:b128", cost="move", since="8.6 sm_100")


_ATOMICS = {"add": "+", "and": "&", "or": "|", "xor": "^", "min": "min", "max": "max"}


def _memory() -> Iterator[Row]:
    yield from _rows("ld.param", "d:0 m", "load wider", "move")
    yield from _rows("st.param", "m u:0", "store wider", "move")
    yield from _rows("ld", "d:0 m u:b64?", "load wider", "memory")
    # The whole warp must use one address, so its lanes must be in the same iteration.
    yield from _rows("ldu", "d:0 m", "load convergent wider", "memory", since="2.0 sm_20")
    yield from _rows("st.async", "m u:0 m?", "store sync waits wider", "memory", since="8.1 sm_90")
    yield from _rows("st.bulk", "m u u", "store sync wider", "memory", since="8.6 sm_100")
    yield from _rows("st", "m u:0 u:b64?", "store wider", "memory")
    yield from _rows("prefetch prefetchu", "m", "", "memory", since="2.0 sm_20")
    yield from _rows("applypriority", "m u", "", "memory", since="7.4 sm_80")
    yield from _rows("discard", "m u", "store", "memory", since="7.4 sm_80")
    policy = "createpolicy"
    yield from _rows(f"{policy}.fractional", "d:b64 u?", "", "move", since="7.4 sm_80")
    yield from _rows(f"{policy}.range", "d:b64 m u:b32 u:b32", "", "move", since="7.4 sm_80")
    yield from _rows(f"{policy}.cvt", "d:b64 u:b64", "", "move", since="7.4 sm_80")
    yield from _rows("atom.cas", "d:0 m u:0 u:0 u:b64?", "atomic", "atomic", since="1.1 sm_11")
    yield from _rows("red.async", "m u:0 m?", "atomic sync waits", "atomic", since="8.1 sm_90")
    for operation, operator in _ATOMICS.items():
        effects = f"atomic {operator}"
        yield from _rows(f"atom.{operation}", "d:0 m u:0 u:b64?", effects, "atomic", since="1.1 sm_11")
        yield from _rows(f"red.{operation}", "m u:0 u:b64?", effects, "atomic", since="1.2 sm_11")
    yield from _rows("atom", "d:0 m u:0 u:b64?", "atomic", "atomic", since="1.1 sm_11")
    yield from _rows("red", "m u:0 u:b64?", "atomic", "atomic", since="1.2 sm_11")
    yield from _rows("multimem.ld_reduce", "d:-1 m", "load sync cluster", "memory", since="8.1 sm_90")
    yield from _rows("multimem.st multimem.red", "m u:-1", "atomic sync cluster", "memory", since="8.1 sm_90")
    yield from _asynchronous_copies()
    yield from _rows("tex", "d:0 m u*", "load wider", "memory", "global")
    yield from _rows("tld4", "d:0 m u*", "load wider", "memory", "global", since="2.0 sm_20")
    yield from _rows("suld", "d:0 m", "load wider", "memory", "global", since="1.5")
    yield from _rows("sust", "m u:0", "store wider", "memory", "global", since="1.5")
    yield from _rows("sured", "m u:0", "atomic wider", "memory", "generic", since="2.0 sm_20")
    yield from _rows("txq suq", "d:0 m u:b32?", "", "memory", since="1.5")
    yield from _rows("tensormap.replace", "m u u?", "store", "memory", since="8.3 sm_90a")
    yield from _rows(
        "tensormap.cp_fenceproxy", "m m u", "sync convergent aligned atomic", "memory", "generic", "8.3 sm_90"
    )
    yield from _rows(
        "clusterlaunchcontrol.try_cancel", "m m", "sync atomic waits", "barrier", "generic", "8.6 sm_100"
    )


def _asynchronous_copies() -> Iterator[Row]:
    copy = "cp.async"
    bulk = "cp.async.bulk"
    wait = "sync waits"
    yield from _rows(f"{bulk}.commit_group", "", wait, "barrier", since="8.0 sm_90")
    yield from _rows(f"{copy}.commit_group {copy}.wait_all", "", wait, "barrier", since="7.0 sm_80")
    yield from _rows(f"{bulk}.wait_group", "u", wait, "barrier", since="8.0 sm_90")
    yield from _rows(f"{copy}.wait_group", "u", wait, "barrier", since="7.0 sm_80")
    yield from _rows(f"{copy}.mbarrier", "m", f"{wait} atomic", "barrier", "shared", "7.0 sm_80")
    transfer = ("m u*", f"{wait} atomic", "memory", "generic", "8.0 sm_90")
    yield from _rows("cp.reduce.async.bulk", *transfer)
    yield from _rows(f"{bulk}.prefetch", "m u*", "sync", "memory", since="8.0 sm_90")
    yield from _rows(bulk, *transfer)
    # A thread waits only for the copies that it began itself.
    yield from _rows(copy, "m m u*", "atomic waits", "memory", "generic", "7.0 sm_80")


def _collectives() -> Iterator[Row]:
    warp = "sync convergent"
    lanes = f"{warp} collective"
    block = f"{warp} waits barrier"
    yield from _rows("vote.sync", "d:0 u:pred u:b32", f"{lanes} uniform", "vote", since="6.0 sm_30")
    yield from _rows("vote", "d:0 u:pred", "convergent collective", "vote", since="1.2 sm_12")
    yield from _rows("match.all", "d:b32 u:0 u:b32", f"{lanes} uniform", "shuffle", since="6.0 sm_70")
    yield from _rows("match", "d:b32 u:0 u:b32", lanes, "shuffle", since="6.0 sm_70")
    yield from _rows("shfl.sync", "d:0 u:0 u:b32 u:b32 u:b32", lanes, "shuffle", since="6.0 sm_30")
    yield from _rows("shfl", "d:0 u:0 u:b32 u:b32", "convergent collective", "shuffle", since="3.0 sm_30")
    yield from _rows("redux", "d:0 u:0 u:b32", f"{lanes} uniform", "shuffle", since="7.0 sm_80")
    yield from _rows("activemask", "d:0", "convergent", "vote", since="6.2 sm_30")
    yield from _rows("elect", "d:b32 u:b32", f"{lanes} aligned", "vote", since="8.0 sm_90")
    yield from _rows("bar.warp", "u:b32", lanes, "vote", since="6.0 sm_30")
    yield from _rows("bar.red", "d:-1 u u? u:pred", block + " aligned", "barrier", since="2.0 sm_20")
    yield from _rows("barrier.red", "d:-1 u u? u:pred", block, "barrier", since="6.0 sm_30")
    yield from _rows("bar", "u u?", block + " aligned", "barrier")
    yield from _rows("barrier.cluster", "", block, "barrier", since="7.8 sm_90")
    yield from _rows("barrier", "u u?", block, "barrier", since="6.0 sm_30")
    yield from _rows("membar", "", "sync fence", "barrier", since="1.4")
    yield from _rows("fence", "m? u?", "sync fence", "barrier", since="6.0 sm_70")
    barrier = ("sync atomic waits", "barrier", "shared")
    arrive = "mbarrier.arrive mbarrier.arrive_drop"
    yield from _rows(arrive, "d:b64 m u:b32?", *barrier, since="7.0 sm_80")
    yield from _rows("mbarrier.init", "m u:b32", *barrier, since="7.0 sm_80")
    yield from _rows("mbarrier.inval", "m", *barrier, since="7.0 sm_80")
    yield from _rows("mbarrier.expect_tx mbarrier.complete_tx", "m u:b32", *barrier, since="8.0 sm_90")
    yield from _rows("mbarrier.pending_count", "d:b32 u:b64", since="7.0 sm_80")
    yield from _rows("mbarrier.try_wait.parity", "d:pred m u:b32 u:b32?", *barrier, since="7.8 sm_90")
    yield from _rows("mbarrier.try_wait", "d:pred m u:b64 u:b32?", *barrier, since="7.8 sm_90")
    yield from _rows("mbarrier.test_wait.parity", "d:pred m u:b32", *barrier, since="7.1 sm_80")
    yield from _rows("mbarrier.test_wait", "d:pred m u:b64", *barrier, since="7.0 sm_80")
    yield from _rows("griddepcontrol", "", "sync waits", "barrier", since="7.8 sm_90")
    yield from _rows("setmaxnreg", "u", f"{warp} waits aligned grouped", "barrier", since="8.0 sm_90a")
    yield from _rows("nanosleep", "u:u32", "sync", "barrier", since="6.3 sm_70")
    yield from _rows("pmevent", "u", "", since="1.4")
    yield from _rows("brkpt", "", "")
    yield from _matrices(warp + " aligned")


def _matrices(warp: str) -> Iterator[Row]:
    yield from _rows("wmma.load", "d m u:b32?", warp + " load", "memory", since="6.0 sm_70")
    yield from _rows("wmma.store", "m u u:b32?", warp + " store", "memory", since="6.0 sm_70")
    yield from _rows("wmma.mma", "d u u u", warp, "special", since="6.0 sm_70")
    yield from _rows("mma.block_scale", "d u u u u u u u*", warp, "special", since="8.7 sm_120a")
    yield from _rows("mma.sp::ordered_metadata", "d u u u u:b32 u", warp, "special", since="8.5 sm_80")
    yield from _rows("mma.sp", "d u u u u:b32 u", warp, "special", since="7.1 sm_80")
    yield from _rows("mma", "d u u u", warp, "special", since="6.4 sm_70")
    yield from _rows("ldmatrix", "d:b32 m", warp + " load", "memory", since="6.5 sm_75")
    yield from _rows("stmatrix", "m u:b32", warp + " store", "memory", since="7.8 sm_90")
    yield from _rows("movmatrix", "d:b32 u:b32", warp, "shuffle", since="7.8 sm_75")
    # Work on registers (wgmma) and on tensor memory (tcgen05) that continues after the instruction.
    group = ("sync convergent aligned atomic waits grouped", "special", "generic", "8.0 sm_90a")
    yield from _rows("wgmma.fence wgmma.commit_group", "", *group)
    yield from _rows("wgmma.wait_group", "u", *group)
    yield from _rows("wgmma.mma_async.sp", "x u u:b64 u:b32 u u:pred u*", *group[:3], "8.2 sm_90a")
    yield from _rows("wgmma.mma_async", "x u u:b64 u:pred u*", *group)
    tensor = ("sync convergent atomic waits grouped", "special", "generic", "8.6 sm_100a")
    yield from _rows("tcgen05.alloc", "m u:b32", *tensor)
    yield from _rows("tcgen05.dealloc", "u:b32 u:b32", *tensor)
    yield from _rows("tcgen05.relinquish_alloc_permit", "", *tensor)
    yield from _rows("tcgen05.fence::before_thread_sync tcgen05.fence::after_thread_sync", "", *tensor)
    yield from _rows("tcgen05.wait::ld tcgen05.wait::st", "", *tensor)
    yield from _rows("tcgen05.ld", "d:b32 m u?", *tensor)
    yield from _rows("tcgen05.st.16x32bx2", "m u u:b32", *tensor)
    yield from _rows("tcgen05.st", "m u:b32", *tensor)
    yield from _rows("tcgen05.cp", "m u:b64", *tensor)
    yield from _rows("tcgen05.shift", "m", *tensor)
    yield from _rows("tcgen05.commit", "m u:b16?", *tensor)
    yield from _rows("tcgen05.mma.sp", "m u:b64 u:b64 m u:b32 u*", *tensor)
    yield from _rows("tcgen05.mma", "m u:b64 u:b64 u:b32 u*", *tensor)


def _control() -> Iterator[Row]:
    yield from _rows("bra", "l", "branch", "branch")
    yield from _rows("brx", "u:u32 l", "indexed", "branch", since="6.0 sm_30")
    # The facts of the call itself; an analysis finds out what the called function does.
    yield from _rows("call", "", "call convergent atomic", "call", "generic")
    yield from _rows("ret", "", "return", "branch")
    yield from _rows("exit", "", "exit", "branch")
    yield from _rows("trap", "", "trap", "branch")


def _by_opcode() -> dict[str, tuple[Row, ...]]:
    table: dict[str, tuple[Row, ...]] = {}
    for family in (_arithmetic, _logic, _selection_and_moves, _memory, _collectives, _control):
        for row in family():
            base = row.opcode.partition(".")[0]
            table[base] = (*table.get(base, ()), row)
    return table


ROWS: dict[str, tuple[Row, ...]] = _by_opcode()
"""Rows by the first part of the opcode; the first row whose modifiers are all present applies."""
