"""Loop invariance, and the statements that rebuild an invariant value elsewhere.

A use in a loop is *invariant* if a lane reads the same value there in each trip of one run of the loop: all
definitions that reach it lie outside of the loop, or there is a single one inside, pure, and all it reads is
invariant. The *rematerialisation slice* of a use is the chain of pure statements that computes its value
again from parameters, constants and special registers alone; a copy of it may stand anywhere in the function.

        ld.param.u64 %rd7, [f_param_2];
    LOOP:
        cvta.to.global.u64 %rd11, %rd7;      %rd7: invariant
        mov.u32 %r20, %nctaid.x;
        mad.lo.s32 %r22, %r20, %r11, %r22;   %r20: invariant, slice (the mov); %r22: not, it reads itself
        ld.global.u32 %r2, [%rd11];          %rd11: invariant, slice (the ld.param, the cvta)

Invariant says nothing of other lanes: see `uniformity`. Aho, Lam, Sethi, Ullman, "Compilers", 2nd ed., 9.1.2;
Briggs, Cooper, Torczon, "Rematerialization", PLDI 1992.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from cccopt.analysis import effects
from cccopt.analysis.constancy import CONSTANT_SPECIAL_REGISTERS, reads_unchanging_memory
from cccopt.analysis.reaching import ENTRY, ReachingDefinitions
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Function, Instruction, Symbol
from cccopt.ptx.isa import Control, Memory

Available = Callable[[int, str], bool]


def invariant_use(
    function: Function,
    reaching: ReachingDefinitions,
    statement: int,
    register: str,
    blocks: Collection[int],
) -> bool:
    """Whether ``register`` has, at ``statement`` in the loop ``blocks``, the same value in each trip."""
    return _Invariance(function, reaching, blocks).holds(statement, register, frozenset())


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
    accepts: those are in no slice, their registers are read where the slice is put. A register is written
    once in it.
    """
    found: set[int] = set()
    if not _collect(function, reaching, statement, register, available, found, frozenset()):
        return None
    rank = {block: place for place, block in enumerate(reaching.cfg.reverse_postorder)}
    order = sorted(found, key=lambda index: (rank[reaching.cfg.block_of(index)], index))
    written = [name for index in order for name in effects.writes(reaching.body[index])]
    return tuple(order) if len(written) == len(set(written)) else None


def is_rebuildable(instruction: Instruction, function: Function) -> bool:
    """Whether an instruction gives one thread the same result from the same registers at any time and place.

    Loads count only where the address cannot be wrong: a named parameter or constant.
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


class _Invariance:
    """The question asked recursively, for one loop."""

    def __init__(self, function: Function, reaching: ReachingDefinitions, blocks: Collection[int]) -> None:
        self.function = function
        self.reaching = reaching
        self.blocks = blocks

    def holds(self, statement: int, register: str, asked: frozenset[int]) -> bool:
        """``asked`` are the definitions on the way here: one that reads itself changes from trip to trip."""
        definitions = self.reaching.reaching(statement, register)
        inside = [d for d in definitions if d != ENTRY and self.reaching.cfg.block_of(d) in self.blocks]
        if not inside:
            return bool(definitions)
        if len(definitions) > 1 or inside[0] in asked:
            return False
        definition = inside[0]
        instruction = self.reaching.body[definition]
        assert isinstance(instruction, Instruction)
        if not self._repeats(instruction):
            return False
        return all(self.holds(definition, name, asked | {definition}) for name in effects.needs(instruction))

    def _repeats(self, instruction: Instruction) -> bool:
        """Whether the same operands give the same result in any trip."""
        if is_rebuildable(instruction, self.function):
            return True
        facts = isa.facts(instruction)
        return (
            facts.known
            and facts.memory is Memory.LOAD
            and not isa.is_conditional_write(instruction)
            and reads_unchanging_memory(instruction, self.function)
        )


def _collect(
    function: Function,
    reaching: ReachingDefinitions,
    statement: int,
    register: str,
    available: Available,
    found: set[int],
    asked: frozenset[int],
) -> bool:
    """Adds to ``found`` the definitions behind a use; False where one cannot be rebuilt."""
    definitions = reaching.reaching(statement, register)
    if definitions and all(d != ENTRY and available(d, register) for d in definitions):
        return True
    if len(definitions) != 1:
        return False
    (definition,) = definitions
    if definition == ENTRY or definition in asked:
        return False
    if definition in found:
        return True
    instruction = reaching.body[definition]
    if not isinstance(instruction, Instruction) or not is_rebuildable(instruction, function):
        return False
    if not all(
        _collect(function, reaching, definition, name, available, found, asked | {definition})
        for name in effects.needs(instruction)
    ):
        return False
    found.add(definition)
    return True
