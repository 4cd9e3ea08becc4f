"""What the checks see: a rewritten function, the blocks of one rewritten loop, and what the rewrite says about it.

A rewritten loop is what its entry dominates: other paths also reach the original loop beside it and the code after
both. In the in-lane form, which keeps no original loop, it ends where its lanes meet. Code that the rewrite added is
recognized by its registers, which the function did not have. Nothing in `RewrittenLoop` says where a barrier, a vote or
a test is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis import cfg as control_flow
from cccopt.analysis import effects
from cccopt.analysis.cfg import ControlFlowGraph, EdgeKind
from cccopt.analysis.dominance import EXIT, Dominance, dependence, dominators, immediate_dominators
from cccopt.analysis.loops import natural_loop
from cccopt.analysis.uniformity import is_full_mask
from cccopt.ccc.outcome.rewritten_loop import RewrittenLoop
from cccopt.ptx import isa
from cccopt.ptx.ir import Body, Function, Instruction, Register, SpecialRegister


@dataclass(frozen=True, slots=True)
class Violation:
    """What is wrong, and the statement at which it shows."""

    statement: int
    message: str


class FunctionCode:
    """A function's body with its control flow; ``known`` are the registers of the original function."""

    def __init__(self, before: Function, function: Function) -> None:
        self.body: Body = function.body or ()
        self.cfg: ControlFlowGraph = control_flow.build(self.body)
        self.known = frozenset(isa.register_types(before))
        # A barrier writes no register that shows who added it: if the program has any, none is checked.
        self.has_own_barriers = any(
            isinstance(s, Instruction) and s.opcode.startswith("bar.warp") for s in before.body or ()
        )

    @cached_property
    def dominance(self) -> Dominance:
        return dominators(self.cfg)

    @cached_property
    def block_at(self) -> Mapping[str, int]:
        """The block that each label heads."""
        return {block.label: block.index for block in self.cfg.blocks if block.label is not None}

    @cached_property
    def definitions(self) -> Mapping[str, list[int]]:
        """The statements that may write each register that the rewrite added."""
        found: dict[str, list[int]] = {}
        for index, statement in enumerate(self.body):
            for name in effects.writes(statement):
                if name not in self.known:
                    found.setdefault(name, []).append(index)
        return found

    def makes(self, instruction: Instruction) -> bool:
        """Whether the instruction writes a register that the rewrite added."""
        return not effects.writes(instruction) <= self.known

    def instructions(self, block: int) -> Iterator[tuple[int, Instruction]]:
        """The instructions of a block with their positions in the body."""
        for index in self.cfg.blocks[block].statements():
            statement = self.body[index]
            if isinstance(statement, Instruction):
                yield index, statement

    def ending(self, block: int) -> Instruction | None:
        """The branch or exit that ends a block."""
        return control_flow.ending(self.body, self.cfg.blocks[block])

    def full_mask_before(self, block: int, entry: int) -> str:
        """The register that holds the `activemask` of ``block``, if lanes go from there to ``entry`` only when it names
        all 32 lanes; else empty.
        """
        end = self.ending(block)
        if end is None or end.guard is None or self.where(block, holds=False) != entry:
            return ""
        if self.where(block, holds=True) == entry:
            return ""
        written = {r.name: i for _, i in self.instructions(block) for r in isa.definitions(i)}
        test = written.get(end.guard.register.name)
        if test is None or test.parts[:2] != ("setp", "ne") or not is_full(test):
            return ""
        mask = test.operands[1]
        made = written.get(mask.name) if isinstance(mask, Register) else None
        if (
            not isinstance(mask, Register)
            or made is None
            or made.base != "activemask"
            or made.guard is not None
        ):
            return ""
        return mask.name if len(self.definitions.get(mask.name, ())) == 1 else ""

    def where(self, block: int, *, holds: bool) -> int | None:
        """Where a lane goes from ``block`` if the predicate of its branch, before any negation, is ``holds``."""
        end = self.ending(block)
        if end is None or end.guard is None:
            return None
        kind = EdgeKind.TAKEN if holds != end.guard.negated else EdgeKind.FALLTHROUGH
        edges = self.cfg.kinds
        return next((t for t in self.cfg.successors[block] if kind in edges[block, t]), None)


class LoopCode:
    """The blocks of one rewritten loop, in reverse postorder, with the edges among them.

    Paths into a `trap` are left out: a lane that takes one ends the launch. ``leaving`` are the blocks from which
    control leaves the loop or the function.
    """

    def __init__(self, code: FunctionCode, facts: RewrittenLoop) -> None:
        self.code = code
        self.facts = facts
        cfg = code.cfg
        self.entry = code.block_at[facts.entry]
        inside = [b for b in cfg.reverse_postorder if code.dominance.dominates(self.entry, b)]
        if facts.lanes:
            inside = self._before_the_end(inside)
        # The original loop may share them.
        traps = _traps(code, cfg.reverse_postorder)
        self.blocks = tuple(b for b in inside if b not in traps)
        known = frozenset(self.blocks)
        self.successors = {b: tuple(t for t in cfg.successors[b] if t in known) for b in self.blocks}
        self.leaving = frozenset(
            b
            for b in self.blocks
            if any(t not in known and t not in traps for t in cfg.successors[b])
            or (b in cfg.exits and not _may_trap(code.ending(b)))
        )

    def _before_the_end(self, dominated: list[int]) -> list[int]:
        """The blocks of the loop among those that the entry dominates, up to the barrier at which its lanes meet. There
        is no original loop beside it, so the entry also dominates what follows it.
        """
        known = frozenset(dominated)
        work = [block for block in dominated if self.end_of(block) is not None]
        if not work:
            return dominated
        found = {self.entry}
        while work:
            block = work.pop()
            if block not in found:
                found.add(block)
                work += known.intersection(self.code.cfg.predecessors[block])
        return [block for block in dominated if block in found]

    def end_of(self, block: int) -> int | None:
        """The statement at which the lanes of a loop in the in-lane form meet for the last time, if it is in the block:
        what follows, even in the same block, is not part of the loop. If they meet to vote, a vote follows.
        """
        mask = (Register(self.facts.lanes),) if self.facts.lanes else None
        end = None
        for index, instruction in self.code.instructions(block):
            if instruction.opcode == "bar.warp.sync" and instruction.operands == mask:
                end = index
            elif instruction.opcode.startswith("vote.sync") and self.code.makes(instruction):
                end = None
        return end

    def names_all_lanes(self, instruction: Instruction) -> bool:
        """Whether the last operand is the mask of the lanes that run the loop."""
        mask = self.facts.lanes or self.full_mask
        named = bool(mask) and instruction.operands[-1:] == (Register(mask),)
        return named or (not self.facts.lanes and is_full(instruction))

    def is_barrier(self, instruction: Instruction) -> bool:
        """Whether the instruction orders the memory accesses of all lanes of a warp."""
        made = instruction.opcode == "bar.warp.sync" and instruction.guard is None
        return made and not self.facts.lanes and self.names_all_lanes(instruction)

    @cached_property
    def full_mask(self) -> str:
        """The register that names all 32 lanes on each path to the loop and that nothing else writes; empty if there is
        none.
        """
        found = {self.code.full_mask_before(source, self.entry) for source in self.sources}
        return found.pop() if len(found) == 1 else ""

    @cached_property
    def sources(self) -> tuple[int, ...]:
        """The blocks outside the loop from which control enters it."""
        return tuple(b for b in self.code.cfg.predecessors[self.entry] if b not in self.successors)

    @cached_property
    def dependence(self) -> Mapping[int, frozenset[int]]:
        """For each block, the blocks whose branches decide, inside the loop, whether a lane reaches it."""
        backwards: dict[int, list[int]] = {b: [] for b in self.blocks}
        for source, targets in self.successors.items():
            for target in targets:
                backwards[target].append(source)
        backwards[EXIT] = [*self.leaving]
        able = immediate_dominators(backwards, EXIT).immediate
        # A block that never leaves counts as if it could.
        backwards[EXIT] += [b for b in self.blocks if b not in able]
        tree = immediate_dominators(backwards, EXIT)
        # An edge out of the loop leads to the exit, which is not among the successors.
        ways = {b: (*t, EXIT) if b in self.leaving else t for b, t in self.successors.items()}
        return dependence(ways, tree)

    @cached_property
    def windows(self) -> Mapping[int, frozenset[int]]:
        """The blocks at which windows of expanded inner iterations begin, each with the blocks of these iterations (its
        natural loop).
        """
        at = (self.code.block_at.get(label) for label in self.facts.windows)
        return {window: self._loop_at(window) for window in at if window in self.successors}

    @cached_property
    def inner_iterations(self) -> frozenset[int]:
        """The blocks of expanded inner iterations."""
        return frozenset().union(*self.windows.values())

    @cached_property
    def expansions(self) -> frozenset[int]:
        """The blocks of windows and of the loops immediately around them, which lay out further inner iterations."""
        found: set[int] = set()
        for window, inner_iterations in self.windows.items():
            found |= inner_iterations
            for header in self.code.dominance.chain(window)[1:]:
                around = self._loop_at(header)
                if window in around:
                    found |= around
                    break
        return frozenset(found)

    def _loop_at(self, header: int) -> frozenset[int]:
        """The natural loop of a header; only the block itself if it is not one."""
        sources = self.code.cfg.predecessors[header]
        latches = [b for b in sources if self.code.dominance.dominates(header, b)]
        return natural_loop(self.code.cfg, header, latches)


def is_full(instruction: Instruction) -> bool:
    """Whether the last operand is the mask of all 32 lanes."""
    return bool(instruction.operands) and is_full_mask(instruction.operands[-1])


def is_lane(code: FunctionCode, operand: object) -> bool:
    """Whether a register holds nothing but the lane's number."""
    if not isinstance(operand, Register):
        return False
    made = [code.body[index] for index in code.definitions.get(operand.name, ())]
    return bool(made) and all(
        isinstance(s, Instruction) and s.operands[1:] == (SpecialRegister("%laneid"),) for s in made
    )


def _may_trap(end: Instruction | None) -> bool:
    return end is not None and end.base == "trap"


def _traps(code: FunctionCode, order: Sequence[int]) -> frozenset[int]:
    """The blocks from which a `trap` is surely reached."""
    found: set[int] = set()
    # In postorder, successors come first; a cycle is not a trap.
    for block in reversed(order):
        end, targets = code.ending(block), code.cfg.successors[block]
        traps = end is not None and end.base == "trap" and end.guard is None
        if traps or (targets and block not in code.cfg.exits and found.issuperset(targets)):
            found.add(block)
    return frozenset(found)
