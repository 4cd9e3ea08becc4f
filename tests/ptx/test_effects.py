"""What the instruction table says of waiting, fences and state of a thread, against the chapters of PTX ISA 9.0."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import cccopt
from cccopt.ccc.legality.reductions import Operator
from cccopt.ptx.ir import Instruction, Register
from cccopt.ptx.isa import REDUCTIONS, Arithmetic, Control, Facts, Memory, facts
from cccopt.ptx.isa_table import ROWS
from cccopt.source import pragmas
from tests.ptx.test_isa import instruction

WAITING = {
    # 9.7.9.25: copies in flight. A thread waits for those that it has begun.
    "cp.async", "cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all", "cp.async.mbarrier",
    "cp.async.bulk", "cp.async.bulk.commit_group", "cp.async.bulk.wait_group", "cp.reduce.async.bulk",
    # 9.7.9.12, 9.7.13.8: stores and reductions that complete on an mbarrier.
    "st.async", "red.async",
    # 9.7.13.1 to 9.7.13.3, 9.7.13.15: barriers, and what arrives at them.
    "bar", "bar.red", "barrier", "barrier.red", "barrier.cluster",
    "mbarrier.init", "mbarrier.inval", "mbarrier.expect_tx", "mbarrier.complete_tx",
    "mbarrier.arrive", "mbarrier.arrive_drop", "mbarrier.test_wait", "mbarrier.test_wait.parity",
    "mbarrier.try_wait", "mbarrier.try_wait.parity",
    # 9.7.13.13: other grids. 9.7.13.17: another thread block's launch. 9.7.19.5: registers of other warps.
    "griddepcontrol", "clusterlaunchcontrol.try_cancel", "setmaxnreg",
    # 9.7.15, 9.7.16: matrix units.
    "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group", "wgmma.mma_async", "wgmma.mma_async.sp",
    "tcgen05.alloc", "tcgen05.dealloc", "tcgen05.relinquish_alloc_permit",
    "tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync", "tcgen05.wait::ld", "tcgen05.wait::st",
    "tcgen05.ld", "tcgen05.st.16x32bx2", "tcgen05.st", "tcgen05.cp", "tcgen05.shift", "tcgen05.commit",
    "tcgen05.mma.sp", "tcgen05.mma",
}  # fmt: skip
NEAR = {
    # Of the same families: `bar.warp` has rules of its own, a prefetch ends nowhere, the others compute.
    "bar.warp", "cp.async.bulk.prefetch", "mbarrier.pending_count",
    "clusterlaunchcontrol.query_cancel", "clusterlaunchcontrol.query_cancel.is_canceled",
}  # fmt: skip
FENCES = {"membar", "fence"}

TABLE = {row.opcode: row for rows in ROWS.values() for row in rows}


def test_rows_that_wait() -> None:
    assert {opcode for opcode, row in TABLE.items() if "waits" in row.effects.split()} == WAITING


def test_every_row_of_a_waiting_family_is_decided() -> None:
    families = {opcode.partition(".")[0] for opcode in WAITING} - {"st", "red"}
    assert {opcode for opcode in TABLE if opcode.partition(".")[0] in families} == (WAITING | NEAR) - {
        "st.async",
        "red.async",
    }


def test_rows_that_only_order() -> None:
    assert {opcode for opcode, row in TABLE.items() if "fence" in row.effects.split()} == FENCES


def test_every_word_is_a_fact() -> None:
    """A misspelled word would say nothing."""
    flags = {field.name for field in fields(Facts) if field.default is False} - {
        "known",
        "synchronises",
        "volatile",
    }
    told = {member.value for kind in (Memory, Control, Arithmetic) for member in kind}
    words = {word for row in TABLE.values() for word in row.effects.split()}
    assert words - flags - told - {"sync"} == REDUCTIONS


def test_an_operator_is_that_of_a_pragma_and_has_opcodes() -> None:
    """The package of the pragmas knows no PTX, so that it has the operators once more; `=` becomes `|` of a flag."""
    assert REDUCTIONS | {"="} == pragmas._REDUCTIONS
    for operator in REDUCTIONS:
        emitted = Operator(operator, "b32").opcode
        assert facts(Instruction(emitted, (Register("%r1"),) * 3)).reduction == operator


def _listed(source: str) -> Iterator[str]:
    """String literals of ``source`` that name an opcode which waits or orders, docstrings aside."""
    families = {opcode.partition(".")[0] for opcode in WAITING | FENCES} - {"st", "red"}
    tree = ast.parse(source)
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            word = node.value.removeprefix("^")
            if word.partition(".")[0] in families and not word.startswith("bar.warp") and " " not in word:
                yield node.value


EMITTING = {"passes/counting/block.py"}
"""Modules that name such opcodes because their code has them."""


@pytest.mark.parametrize("folder", ["analysis", "ccc", "passes"])
def test_no_module_lists_such_opcodes_itself(folder: str) -> None:
    package = Path(cccopt.__file__).parent
    files = sorted(
        f for f in (package / folder).rglob("*.py") if f.relative_to(package).as_posix() not in EMITTING
    )
    assert files
    assert {file.name: found for file in files if (found := list(_listed(file.read_text())))} == {}


def test_such_a_list_would_be_found() -> None:
    assert list(_listed('"""mbarrier"""\nX = ("bar", "mbarrier.arrive", "bar.warp.sync", "a bar")')) == [
        "bar",
        "mbarrier.arrive",
    ]


@pytest.mark.parametrize(
    ("line", "waits"),
    [
        ("bar.sync 0;", True),
        ("bar.warp.sync -1;", False),
        ("barrier.cluster.arrive.aligned;", True),
        ("cp.async.ca.shared.global [%r1], [%rd1], 16;", True),
        (
            "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r4];",
            True,
        ),
        ("cp.async.bulk.prefetch.L2.global [%rd1], 16;", False),
        ("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];", True),
        ("st.shared.u32 [%r1], %r2;", False),
        ("red.async.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r1], %r2, [%r3];", True),
        ("red.global.add.u32 [%rd1], %r2;", False),
        ("mbarrier.pending_count.b64 %r1, %rd1;", False),
        ("mbarrier.new_thing.b64 %r1, %rd1;", True),
        ("frobnicate;", True),
        ("fence.proxy.async;", False),
        ("nanosleep.u32 5;", False),
        ("griddepcontrol.wait;", True),
    ],
)
def test_waits(line: str, waits: bool) -> None:
    assert facts(instruction(line)).waits is waits


def test_fences() -> None:
    for line in (
        "membar.gl;",
        "fence.acq_rel.gpu;",
        "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;",
    ):
        assert facts(instruction(line)).fence
    for line in ("bar.sync 0;", "ld.acquire.gpu.u32 %r1, [%rd1];", "tcgen05.fence::before_thread_sync;"):
        assert not facts(instruction(line)).fence


def test_one_address_for_a_warp() -> None:
    """`ldu` (9.7.9.9): the address is the same in all threads of the warp, and so the iteration."""
    assert facts(instruction("ldu.global.u32 %r1, [%rd1];")).convergent


@pytest.mark.parametrize("line", ["alloca.u64 %rd1, 16;", "stacksave.u64 %rd1;", "stackrestore.u64 %rd1;"])
def test_the_stack_is_local_memory(line: str) -> None:
    told = facts(instruction(line))
    assert (told.memory, told.space, told.pure) == (Memory.ATOMIC, "local", False)


@pytest.mark.parametrize(
    ("line", "pure"),
    [
        ("mov.u32 %r1, %clock;", False),
        ("mov.b64 %rd1, {%clock, %clock_hi};", False),
        ("mov.b64 %rd1, {%r1, %clock_hi};", False),
        ("cvt.u64.u32 %rd1, %globaltimer_lo;", False),
        ("mov.u64 %rd1, %clock64;", False),
        ("mov.u32 %r1, %smid;", False),
        ("mov.b64 %rd1, {%laneid, %r1};", True),
        ("mapa.u64 %rd1, %rd2, %r1;", True),
        ("getctarank.u64 %r1, %rd2;", True),
        ("isspacep.shared %p1, %rd2;", True),
        ("createpolicy.fractional.L2::evict_last.b64 %rd1;", False),
        ("activemask.b32 %r1;", False),
        ("txq.width.b32 %r1, [%rd1];", False),
        ("prefetch.global.L2 [%rd1];", False),
    ],
)
def test_pure(line: str, pure: bool) -> None:
    assert facts(instruction(line)).pure is pure


@pytest.mark.parametrize(
    ("line", "memory"),
    [
        ("discard.global.L2 [%rd1], 128;", Memory.STORE),
        ("applypriority.global.L2::evict_normal [%rd1], 128;", Memory.NONE),
        ("prefetchu.L1 [%rd1];", Memory.NONE),
        ("multimem.red.relaxed.sys.global.add.u32 [%rd1], %r1;", Memory.ATOMIC),
        ("multimem.ld_reduce.relaxed.sys.global.add.u32 %r1, [%rd1];", Memory.LOAD),
        ("st.bulk.weak.shared::cta [%r1], 64, 0;", Memory.STORE),
        ("tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 3;", Memory.STORE),
        ("sust.b.1d.b32.trap [%rd1, {%r1}], {%r2};", Memory.STORE),
        ("suld.b.1d.b32.trap {%r1}, [%rd1, {%r2}];", Memory.LOAD),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];", Memory.LOAD),
    ],
)
def test_memory_of_rarer_instructions(line: str, memory: Memory) -> None:
    told = facts(instruction(line))
    assert told.known
    assert told.memory is memory
