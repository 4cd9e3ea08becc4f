"""Does every register have a value when it is read (definite assignment)?

A register that is not written before it is read, on some path from the function's entry, is live at the entry. nvcc may
leave such registers in a program: what it computes from them does not matter. A rewrite must not add any.

A rewrite lets lanes meet that continue differently, according to a flag that each has set on its way:

        mov.pred %busy, 0;      mov.pred %busy, 1;        %r5 is written on the left alone
                         MEET:
                         @%busy bra VOTE;
                         st.global.u32 [%rd1], %r5;       comes from the left alone

So a second search follows each register that is newly live at the entry, along the paths that such flags leave open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from cccopt.analysis import effects
from cccopt.analysis.cfg import EdgeKind, build
from cccopt.analysis.liveness import Liveness, liveness
from cccopt.ccc.output_check.regions import FunctionCode, Violation
from cccopt.ptx.ir import Function, Instruction, Literal, Register, Statement

_MOST = 100_000
"""The most pairs of a block and known flags that a search visits; beyond that, the register counts as read
before it is written.
"""


def assignment_violations(before: Function, code: FunctionCode) -> Iterator[Violation]:
    """Registers that ``code`` may read before they are written, unlike ``before``, the original function."""
    live = liveness(code.cfg, code.body)
    read = live.live_in[code.cfg.entry]
    if not read:
        return
    body = before.body or ()
    graph = build(body)
    for name in sorted(read - liveness(graph, body).live_in[graph.entry]):
        statement = _first_read(code, live, name)
        if statement is not None:
            yield Violation(statement, f"`{name}` may be read before it is written")


def _first_read(code: FunctionCode, live: Liveness, name: str) -> int | None:
    """A statement that may read a register before it is written; None if flags close all paths to one."""
    flags = _flags(code)
    start: tuple[int, frozenset[tuple[str, bool]]] = (code.cfg.entry, frozenset())
    seen, work = {start}, [start]
    while work:
        block, facts = work.pop()
        if len(seen) > _MOST:
            return code.cfg.blocks[block].start
        known = dict(facts)
        written = False
        for index, instruction in code.instructions(block):
            if name in effects.needs(instruction):
                return index
            written = written or name in effects.kills(instruction)
            _follow(instruction, flags, known)
        if written:
            continue
        for target in _open(code, block, known):
            kept = frozenset((flag, value) for flag, value in known.items() if flag in live.live_in[target])
            if name in live.live_in[target] and (target, kept) not in seen:
                seen.add((target, kept))
                work.append((target, kept))
    return None


def _flags(code: FunctionCode) -> frozenset[str]:
    """The predicates that branches test and that some statement sets to a constant."""
    asked = {
        end.guard.register.name for b in code.cfg.reverse_postorder if (end := code.ending(b)) and end.guard
    }
    return frozenset(made[0] for statement in code.body if (made := _constant(statement))) & asked


def _constant(statement: Statement) -> tuple[str, bool] | None:
    """The predicate that a statement sets unconditionally to a constant, and its value."""
    match statement:
        case Instruction("mov.pred", (Register(name), Literal("0" | "1" as value)), None):
            return name, value == "1"
    return None


def _follow(instruction: Instruction, flags: Collection[str], known: dict[str, bool]) -> None:
    """Update ``known``, the flags with known values, for an instruction."""
    for name in effects.writes(instruction).intersection(flags):
        known.pop(name, None)
        if made := _constant(instruction):
            known.update([made])


def _open(code: FunctionCode, block: int, known: Mapping[str, bool]) -> Iterator[int]:
    """Where control may go from a block, given what is known about flags."""
    end = code.ending(block)
    value = None if end is None or end.guard is None else known.get(end.guard.register.name)
    if end is None or end.guard is None or end.base != "bra" or value is None:
        yield from code.cfg.successors[block]
        return
    kind = EdgeKind.TAKEN if value != end.guard.negated else EdgeKind.FALLTHROUGH
    yield from (t for t in code.cfg.successors[block] if kind in code.cfg.kinds[block, t])
