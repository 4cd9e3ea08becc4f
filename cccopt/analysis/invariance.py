"""Loop invariance, and the statements that rebuild an invariant value elsewhere.

A use in a loop is *invariant* if a lane reads the same value there in each iteration of one run of the loop. Then
either all definitions that reach it are outside of the loop, or the only one is inside, is pure, and reads only
invariant values. The *rematerialization slice* of a use is the chain of pure statements that recomputes its value
from only parameters, constants and special registers. A copy of it may be inserted anywhere in the function.

        ld.param.u64 %rd7, [f_param_2];
    LOOP:
        cvta.to.global.u64 %rd11, %rd7;      %rd7: invariant
        mov.u32 %r20, %nctaid.x;
        mad.lo.s32 %r22, %r20, %r11, %r22;   %r20: invariant, slice (the mov); %r22: not, it reads itself
        ld.global.u32 %r2, [%rd11];          %rd11: invariant, slice (the ld.param, the cvta)

Invariance says nothing about other lanes: see `uniformity`. Aho, Lam, Sethi, Ullman, "Compilers", 2nd ed., 9.1.2;
Briggs, Cooper, Torczon, "Rematerialization", PLDI 1992.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis import effects
from cccopt.analysis.constancy import CONSTANT_SPECIAL_REGISTERS, reads_unchanging_memory
from cccopt.analysis.reaching import ENTRY, ReachingDefinitions
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Function, Instruction, Symbol
from cccopt.ptx.isa import Control, Memory

Available = Callable[[int, str], bool]


@dataclass(frozen=True)
class LoopInvariance:
    """Which registers keep their value from iteration to iteration of the loop ``blocks``."""

    function: Function
    reaching: ReachingDefinitions
    blocks: frozenset[int]

    def holds(self, statement: int, register: str) -> bool:
        """Whether ``register`` has, at ``statement`` in the loop, the same value in each iteration."""
        return self._holds(statement, register, self.definitions)

    @cached_property
    def definitions(self) -> frozenset[int]:
        """The statements of the loop that write the same value in each iteration."""
        cfg = self.reaching.cfg
        order = [i for b in cfg.reverse_postorder if b in self.blocks for i in cfg.blocks[b].statements()]
        found: set[int] = set()
        candidates = [index for index in order if self._repeats(index)]
        while True:
            left = [index for index in candidates if index not in found]
            found.update(i for i in left if all(self._holds(i, name, found) for name in self._needs(i)))
            if all(index not in found for index in left):
                return frozenset(found)

    def _holds(self, statement: int, register: str, known: Collection[int]) -> bool:
        definitions = self.reaching.reaching(statement, register)
        inside = [d for d in definitions if d != ENTRY and self.reaching.cfg.block_of(d) in self.blocks]
        if not inside:
            return bool(definitions)
        return len(definitions) == 1 and inside[0] in known

    def _needs(self, statement: int) -> frozenset[str]:
        return effects.needs(self.reaching.body[statement])

    def _repeats(self, statement: int) -> bool:
        """Whether the statement writes the same value in any iteration if its operands are the same."""
        instruction = self.reaching.body[statement]
        if not isinstance(instruction, Instruction) or not effects.kills(instruction):
            return False
        if is_rebuildable(instruction, self.function):
            return True
        facts = isa.facts(instruction)
        return (
            facts.known
            and facts.memory is Memory.LOAD
            and reads_unchanging_memory(instruction, self.function)
        )


def rematerialization_slice(
    function: Function,
    reaching: ReachingDefinitions,
    statement: int,
    register: str,
    available: Available = lambda definition, register: False,
) -> tuple[int, ...] | None:
    """The pure statements, in order, that rebuild the value ``register`` has just before ``statement``, or
    None.

    The chain ends at parameters, constants, constant special registers, and at definitions that ``available``
    accepts: the slice does not contain these, but reads their registers where it is inserted. It writes each
    register once.
    """
    found: set[int] = set()
    work = [(statement, register)]
    while work:
        use, name = work.pop()
        definitions = reaching.reaching(use, name)
        if definitions and all(d != ENTRY and available(d, name) for d in definitions):
            continue
        # The only definition of a use, if not `ENTRY`, dominates the use, so the chain has no cycle.
        if len(definitions) != 1 or ENTRY in definitions:
            return None
        (definition,) = definitions
        instruction = reaching.body[definition]
        if not isinstance(instruction, Instruction) or not is_rebuildable(instruction, function):
            return None
        if definition not in found:
            found.add(definition)
            work += [(definition, needed) for needed in sorted(effects.needs(instruction))]
    rank = {block: position for position, block in enumerate(reaching.cfg.reverse_postorder)}
    order = sorted(found, key=lambda index: (rank[reaching.cfg.block_of(index)], index))
    written = [name for index in order for name in effects.writes(reaching.body[index])]
    return tuple(order) if len(written) == len(set(written)) else None


def is_rebuildable(instruction: Instruction, function: Function) -> bool:
    """Whether an instruction gives one thread the same result from the same registers at any time and in any position.

    Loads count only if the address cannot be wrong: a named parameter or constant.
    """
    facts = isa.facts(instruction)
    if not facts.known or facts.control is not Control.NEXT or isa.is_conditional_write(instruction):
        return False
    if not effects.special_registers(instruction) <= CONSTANT_SPECIAL_REGISTERS:
        return False
    if facts.memory is Memory.LOAD:
        named = all(isinstance(o.base, Symbol) for o in instruction.operands if isinstance(o, Address))
        return named and reads_unchanging_memory(instruction, function)
    return facts.pure
