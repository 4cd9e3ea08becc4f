"""Memory that belongs to a thread: addresses that it uses again in later iterations of the marked loop.

Two iterations of a thread may be in progress at once, in two lanes, so they must not share scratch. Each register of
the loop is described by its *growth* from one iteration to the next and the *span* of what else varies in it. A third
number is how far *apart* neighboring lanes are in what is fixed (`%tid`, `%laneid`, what differs between lanes before
the loop):

        out[i], out[i * 4 + (x & 3)]    the growth is at least the span and the size: another address in each iteration
        out[i * 8 + n++], i += 64       the growth is more than lanes are apart: in between are other threads
        scratch[%tid]                   growth 0, lanes apart: one address of the thread's own in all iterations
        bins[(x & 3) * 64 + %tid]       growth 0, lanes apart: the addresses of one iteration meet those of the next
        map[%tid * 4 + (k & 3)]         the same: the remainder of a counter does not keep growing
        levels[u], u loaded             lanes not apart in what is fixed: the pragma vouches that iterations do not meet
        out[i / w * pitch + i % w]      computed from the iteration number alone: likewise

Aho, Lam, Sethi, Ullman, "Compilers", 2nd ed., 9.1.2 (induction variables). What cannot be followed counts as data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cccopt.analysis import effects
from cccopt.analysis.affine import access_size
from cccopt.analysis.constancy import CONSTANT_SPECIAL_REGISTERS, UNIFORM_SPECIAL_REGISTERS
from cccopt.analysis.cost import integer
from cccopt.analysis.invariance import LoopInvariance
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.growth import (
    DATA,
    MIXED,
    SYMBOLIC,
    UNBOUNDED,
    Number,
    additions,
    combined,
    joined,
    values_of,
)
from cccopt.ccc.legality.passed_places import PassedPlaces, passed_places
from cccopt.ccc.regions.marked_loops import Region
from cccopt.clauses import Kind
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction, Literal, Operand, Register, SpecialRegister, Symbol
from cccopt.ptx.isa import Arithmetic, Control, Memory

_MOST = 256
"""The most statements among which the step of a counter is searched."""

_WRITING = (Memory.STORE, Memory.ATOMIC)

_LANES = {"%tid.x": 1, "%laneid": 1}
"""How far apart neighboring lanes are in special registers."""

_Known = Mapping[int, Number]
"""What statements of the loop compute, by index."""

_Carried = Mapping[str, Number]
"""What registers hold at the loop's header."""


@dataclass(frozen=True)
class ThreadMemory:
    """The accesses of one marked loop. Statements are given by index."""

    view: View
    region: Region

    def is_reused(self, statement: int) -> bool:
        """Whether the statement, a store, an atomic or a call, may access the same bytes in two iterations of one
        thread, at an address that contains the thread's own values.
        """
        instruction = self.view.body[statement]
        assert isinstance(instruction, Instruction)
        if isa.facts(instruction).control is Control.CALL:
            passed = self._passed.get(statement, ())
            return passed is None or any(
                _comes_back(self._of_operand(i, o, self._carried, self._known), 1) for i, o in passed
            )
        if self._in_grid and isa.facts(instruction).space == "global":
            return False
        size = access_size(instruction)
        bases = [o.base for o in instruction.operands if isinstance(o, Address)]
        found = [self._of_operand(statement, base, self._carried, self._known) for base in bases]
        return any(_comes_back(number, size) for number in found)

    @property
    def _in_grid(self) -> bool:
        """Whether iterations were threads of different blocks, which nothing orders: they cannot share scratch in
        global memory.
        """
        return self.region.annotation.kind == Kind.GRID

    @cached_property
    def _passed(self) -> PassedPlaces:
        """What the calls of the loop pass on that leads to places which the functions write."""
        return passed_places(self.view, self.region.nodes, in_grid=self._in_grid)

    # --- operands ---

    def _of_operand(self, use: int, operand: Operand, carried: _Carried, known: _Known) -> Number:
        match operand:
            case Literal():
                return Number(value=integer(operand))
            case Symbol():
                return Number()
            case SpecialRegister(name):
                if name in UNIFORM_SPECIAL_REGISTERS:
                    return Number()
                apart = _LANES.get(name, UNBOUNDED)
                return Number(apart=apart) if name in CONSTANT_SPECIAL_REGISTERS else DATA
            case Register(name):
                return self._of_register(use, name, carried, known)
        return DATA

    def _of_register(self, use: int, name: str, carried: _Carried, known: _Known) -> Number:
        definitions = self.view.reaching.reaching(use, name)
        inside = definitions & self._statements
        outside = definitions - inside
        if not inside:
            return self._from_outside(use, name)
        if name in carried and definitions == self.view.reaching.reaching(self._first, name):
            return carried[name]
        found = [known[d] for d in sorted(inside) if d in known]
        found += [self._from_outside(use, name)] if outside else []
        if len(found) == len(definitions) == 1:
            return found[0]
        # What an inner loop carries is not known yet; it begins with what is known.
        spread = self._counter_span(use, name, inside) if len(found) < len(definitions) else 0
        return joined(found, spread)

    def _from_outside(self, use: int, name: str) -> Number:
        """The number in a register that the loop does not write."""
        value = self._literal(use, Register(name))
        return Number(apart=0 if value is not None else self._apart(use, name), value=value)

    def _apart(self, use: int, name: str) -> float:
        """How far apart neighboring lanes are in a register."""
        if self.view.uniformity.is_uniform_use(use, name):
            return 0
        # A stride of 0 is that of `%tid.y`: in wide blocks it is the same in a warp, of which one lane may work.
        return self.view.lane_strides.of_register(use, name) or UNBOUNDED

    def _counter_span(self, use: int, name: str, inside: frozenset[int]) -> float:
        """The span of a counter of an inner loop, if constants determine its trip count."""
        view = self.view
        loop = view.innermost(view.cfg.block_of(use))
        if loop is None or not loop.blocks < self._blocks:
            return UNBOUNDED
        again = [d for d in inside if view.cfg.block_of(d) in loop.blocks]
        trip_count = view.costs.trip_count(loop)
        statement = view.body[again[0]] if len(again) == 1 else None
        if (
            trip_count is None
            or not isinstance(statement, Instruction)
            or isa.facts(statement).arithmetic not in (Arithmetic.SUM, Arithmetic.DIFFERENCE)
        ):
            return UNBOUNDED
        step = integer(statement.operands[2])
        if step is None or statement.operands[1] != Register(name):
            return UNBOUNDED
        # It must run once in each inner iteration: neither in a nested loop nor after another addition.
        before = (d for d in view.reaching.reaching(again[0], name) if d in self._statements)
        others = any(d != again[0] and view.cfg.block_of(d) in loop.blocks for d in before)
        if others or view.innermost(view.cfg.block_of(again[0])) != loop:
            return UNBOUNDED
        return abs(step) * trip_count

    # --- what an iteration passes to the next one ---

    @cached_property
    def _counters(self) -> _Carried:
        """The registers that an iteration passes to the next one and from which addresses of writes are computed."""
        header = self.view.block_of_name[self.region.header]
        asked = {name for i in self._slice & self._statements for name in effects.writes(self.view.body[i])}
        return {n: self._of_carried(n) for n in sorted(self.view.liveness.live_in[header] & asked)}

    @cached_property
    def _carried(self) -> _Carried:
        """The same, with what the end of an iteration computes from counters: nvcc keeps `4 * i` next to `i`."""
        known = self._run(self._counters)
        return {
            name: self._at_latches(name, known) if number == DATA else number
            for name, number in self._counters.items()
        }

    def _at_latches(self, name: str, known: _Known) -> Number:
        """The number in a register at the ends of an iteration."""
        definitions = {d for b in self._latches for d in self.view.reaching.reaching_end(b, name)}
        return joined([known[d] for d in sorted(definitions)], 0) if definitions <= known.keys() else DATA

    def _of_carried(self, name: str) -> Number:
        if self.region.annotation.kind == Kind.GRID:
            # A loop over blocks carries nothing but the index of the block.
            return Number(growth=SYMBOLIC, counter=name)
        reaching = self.view.reaching
        steps = {self._step(name, reaching.reaching_end(b, name), name, {}) for b in self._latches}
        step = steps.pop() if len(steps) == 1 else None
        if not step:
            moves = isa.width(self.view.types[name]) == 64 and self._moves(name)
            return replace(DATA, apart=self._apart(self._first, name)) if moves else DATA
        apart = self._apart(self._first, name)
        # If lanes start to count at unknown numbers, a counter is not an address of their own yet; a pointer is.
        counts = apart == UNBOUNDED and isa.width(self.view.types[name]) <= 32
        return Number(growth=step, apart=0 if counts else apart, counter=name)

    def _moves(self, name: str) -> bool:
        """Whether a register at the end of each iteration is what it held plus additions, none on some ways."""
        reaching = self.view.reaching
        begins = reaching.reaching(self._first, name)
        work = [(name, reaching.reaching_end(b, name)) for b in self._latches]
        seen: set[int] = set()
        while work:
            register, definitions = work.pop()
            if register == name and definitions <= begins:
                continue
            for definition in definitions - seen:
                seen.add(definition)
                statement = self.view.body[definition] if definition in self._statements else None
                bases = [] if not isinstance(statement, Instruction) else additions(statement)
                found = [base.name for base, _ in bases[:1] if isinstance(base, Register)]
                if not found:
                    return False
                work += [(n, reaching.reaching(definition, n)) for n in found]
        return True

    def _step(
        self, name: str, definitions: frozenset[int], header: str, done: dict[int, float | None]
    ) -> float | None:
        """By how much ``definitions`` of the register ``name`` are larger than what the register ``header`` held at the
        loop's header; None unless that is the same for all of them and in each iteration.
        """
        if name == header and definitions == self.view.reaching.reaching(self._first, name):
            return 0
        for definition in definitions - done.keys():
            done[definition] = None
            done[definition] = self._advance(definition, header, done) if len(done) < _MOST else None
        found = {done[d] for d in definitions}
        return found.pop() if len(found) == 1 else None

    def _advance(self, definition: int, header: str, done: dict[int, float | None]) -> float | None:
        statement = self.view.body[definition] if definition in self._statements else None
        if not isinstance(statement, Instruction) or isa.is_conditional_write(statement):
            return None
        for base, by in additions(statement):
            if isinstance(base, Register) and all(self._is_fixed(definition, o) for o in by):
                before = self._step(
                    base.name, self.view.reaching.reaching(definition, base.name), header, done
                )
                if before is not None:
                    return before + self._amount(definition, statement, by)
        return None

    def _amount(self, use: int, statement: Instruction, by: Sequence[Operand]) -> float:
        product = 1
        for operand in by:
            value = self._literal(use, operand)
            if value is None:
                return SYMBOLIC
            product *= value
        return (
            (-product if isa.facts(statement).arithmetic is Arithmetic.DIFFERENCE else product) if by else 0
        )

    def _literal(self, use: int, operand: Operand) -> int | None:
        """The number that an operand surely is."""
        if not isinstance(operand, Register):
            return integer(operand)
        definitions = self.view.reaching.reaching(use, operand.name)
        statement = (
            self.view.body[min(definitions)] if len(definitions) == 1 and ENTRY not in definitions else None
        )
        moved = isinstance(statement, Instruction) and statement.base == "mov" and statement.guard is None
        return integer(statement.operands[1]) if moved and isinstance(statement, Instruction) else None

    def _is_fixed(self, use: int, operand: Operand) -> bool:
        match operand:
            case Literal() | Symbol():
                return True
            case SpecialRegister(name):
                return name in CONSTANT_SPECIAL_REGISTERS
            case Register(name):
                return self._invariance.holds(use, name)
        return False

    # --- the statements of an iteration ---

    @cached_property
    def _known(self) -> _Known:
        return self._run(self._carried)

    def _run(self, carried: _Carried) -> _Known:
        """What the statements of an iteration compute from what is ``carried`` into it."""
        known: dict[int, Number] = {}
        for block in self.view.cfg.reverse_postorder:
            for index in self.view.cfg.blocks[block].statements() if block in self._blocks else ():
                statement = self.view.body[index]
                if index in self._slice and isinstance(statement, Instruction):
                    number = self._of_statement(index, statement, carried, known)
                    if isa.is_conditional_write(statement):
                        # If the guard does not hold, the old value is kept.
                        mixed = number.scrambled and replace(number.scrambled, of=MIXED)
                        number = replace(number, span=UNBOUNDED, value=None, scrambled=mixed)
                    known[index] = number
        return known

    def _of_statement(self, index: int, statement: Instruction, carried: _Carried, known: _Known) -> Number:
        facts = isa.facts(statement)
        if not facts.known or len(effects.writes(statement)) != 1:
            return DATA
        if facts.memory is Memory.LOAD:
            bases = [o.base for o in statement.operands if isinstance(o, Address)]
            found = [self._of_operand(index, base, carried, known) for base in bases]
            if found and all(number.fixed for number in found):
                return Number(apart=UNBOUNDED if any(number.apart for number in found) else 0)
            return replace(DATA, span=values_of(facts.types[0]))
        if not facts.pure:
            return DATA
        sources = [self._of_operand(index, o, carried, known) for o in statement.operands[1:]]
        return combined(statement, sources, index)

    @cached_property
    def _slice(self) -> frozenset[int]:
        """The statements from which addresses of writes are computed: most of a loop computes with data."""
        body, reaching = self.view.body, self.view.reaching
        found: set[int] = set()
        work = [
            (index, operand.base.name)
            for index, statement in enumerate(body)
            if isinstance(statement, Instruction) and isa.facts(statement).memory in _WRITING
            for operand in statement.operands
            if isinstance(operand, Address) and isinstance(operand.base, Register)
        ]
        passed = (passing for found in self._passed.values() for passing in found or ())
        work += [(index, operand.name) for index, operand in passed if isinstance(operand, Register)]
        while work:
            new = reaching.reaching(*work.pop()) - found - {ENTRY}
            found |= new
            work += [(index, name) for index in new for name in effects.reads(body[index])]
        return frozenset(found)

    @cached_property
    def _statements(self) -> frozenset[int]:
        return frozenset(self.view.statements(self.region.nodes))

    @cached_property
    def _blocks(self) -> frozenset[int]:
        return self.view.blocks_of(self.region.nodes)

    @cached_property
    def _latches(self) -> list[int]:
        header = self.view.block_of_name[self.region.header]
        return [b for b in self.view.cfg.predecessors[header] if b in self._blocks]

    @cached_property
    def _first(self) -> int:
        return self.view.cfg.blocks[self.view.block_of_name[self.region.header]].start

    @cached_property
    def _invariance(self) -> LoopInvariance:
        return LoopInvariance(self.view.function, self.view.reaching, self._blocks)


def _comes_back(number: Number, size: int) -> bool:
    """Whether an access of ``size`` bytes at such an address may meet that of another iteration of its thread, at a
    place that no other thread uses. If an iteration advances by more than lanes are apart, the addresses in between
    belong to other threads.
    """
    growth, apart = abs(number.growth), abs(number.apart)
    return apart != 0 and growth < number.span + size and not apart < growth
