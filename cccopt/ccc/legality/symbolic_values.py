"""What registers hold, as polynomials over parameters, thread indices, and the numbers of iterations.

        mad.lo.s32 %r1, %ctaid, %ntid, %tid;    ctaid * ntid + tid
    LOOP:
        mul.wide.s32 %rd2, %r1, 4;              4 * (ctaid * ntid + tid + k * nctaid * ntid), if no index wraps around
        add.s64 %rd3, %rd1, %rd2;               out + 4 * (...)
        add.s32 %r1, %r1, %nthreads;            the loop's counter: k is the number of the iteration

Arithmetic of 32 bits is followed modulo 2^32. If a result is read as a number (widened, compared), it may have wrapped
around. A `Value` names the statements at which that is assumed not to have happened, and `Guards` show at which of them
it could. Arithmetic of 64 bits is assumed not to wrap around, but factors of 2^32 and more are not followed. Whatever
is not followed is an atom of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cccopt.analysis import effects
from cccopt.analysis.constancy import reads_unchanging_memory
from cccopt.analysis.cost import integer
from cccopt.analysis.loops import Loop
from cccopt.analysis.polynomials import Atom, Polynomial, Symbols, constant
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.carried_registers import CarriedRegisters
from cccopt.ccc.legality.symbolic_operations import bounds_of, special, types_of
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Address,
    Expression,
    Instruction,
    Literal,
    Operand,
    Register,
    SpecialRegister,
    Symbol,
)
from cccopt.ptx.isa import Arithmetic, Memory

_LARGEST = 1 << 32
_MOST_TERMS = 48
LEAST = {"s": -(1 << 31), "u": 0}
_LONGEST = 100
"""The longest chain of statements that is followed: hashes of generated code have hundreds."""
_DEEPEST = 4
"""The deepest chain of counters whose steps depend on other counters."""
_MOST_STEP = 1 << 20
"""The largest step with which a counter is assumed not to wrap around: hashes grow by more."""
_FOLLOWED = frozenset({"add", "sub", "neg", "mul", "mad", "shl", "or", "rem", "mov", "cvt", "cvta"})


@dataclass(frozen=True, slots=True)
class Value:
    """A number, if nothing wraps around at the statements ``widened``."""

    number: Polynomial
    widened: frozenset[int] = frozenset()

    def combined(self, other: Value, number: Polynomial) -> Value:
        """``number``, which is computed from both."""
        return Value(number, self.widened | other.widened)


class SymbolicValues:
    """The values of one function's registers. Statements are given by index."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.loops = CarriedRegisters(view)
        self.symbols = Symbols()
        self.starts: dict[Polynomial, Value] = {}
        """What a 32-bit counter starts with, by the counter's value."""
        self.read_as: dict[int, tuple[str, tuple[Operand, ...]]] = {}
        """The statements that read 32-bit values as numbers: whether with a sign (``s``) or without, and which
        operands.
        """
        self._addresses: dict[int, Value] = {}
        self._mixtures: dict[tuple[int, str, frozenset[int]], Atom] = {}
        self._known: dict[tuple[int, str], Value] = {}
        self._in_solution: dict[tuple[int, str], Value] = {}
        self._steps: dict[tuple[int, str], Value | None] = {}
        self._solving: set[tuple[int, str]] = set()
        self._depth = 0

    def of_operand(self, use: int, operand: Operand) -> Value:
        """The value of an operand as a statement reads it."""
        match operand:
            case Literal() if (number := integer(operand)) is not None:
                return Value(constant(number))
            case SpecialRegister(name):
                return Value(self._special(use, name))
            case Symbol(name):
                return Value(self.symbols.of(Atom(("variable", name))))
            case Register(name):
                return self.of_register(use, name)
            case Literal() | Expression():
                return Value(self.symbols.of(Atom(("literal", operand.spelling))))
        return Value(self.symbols.of(self._unknown(("operand", use, str(operand)), use)))

    def of_address(self, statement: int) -> Value:
        """The address of a memory instruction that has one."""
        if self._solving:  # then it may not be final
            return self._of_address(statement)
        if statement not in self._addresses:
            self._addresses[statement] = self._of_address(statement)
        return self._addresses[statement]

    def _of_address(self, statement: int) -> Value:
        instruction = self._instruction(statement)
        (address,) = (o for o in instruction.operands if isinstance(o, Address))
        value = self.of_operand(statement, address.base)
        offset = 0 if address.offset is None else integer(address.offset)
        if offset is None:
            return Value(self.symbols.of(self._unknown(("address", statement), statement)))
        return replace(value, number=value.number + constant(offset))

    def of_register(self, use: int, name: str) -> Value:
        """The value of a register just before a statement."""
        definitions = self.view.reaching.reaching(use, name)
        loop = self.loops.carrying(use, name, definitions)
        if loop is not None:
            return self._of_carried(loop, name)
        return self._of_definitions(use, name, definitions)

    def _of_definitions(self, use: int, name: str, definitions: frozenset[int]) -> Value:
        block = self.view.cfg.block_of(use)
        if len(definitions) != 1 or ENTRY in definitions:
            return Value(self.symbols.of(self._mixed(use, name, definitions)))
        (definition,) = definitions
        if any(block not in loop.blocks for loop in self.loops.around(definition)):
            # What a loop leaves behind comes from its last iteration.
            return Value(self.symbols.of(self._mixed(use, name, definitions)))
        return self._of_definition(definition, name)

    def signed(self, p: Polynomial, sign: str) -> Polynomial:
        """A 32-bit value as a number, with or without a sign."""

        def new(number: int) -> int:
            atom = self.symbols.atoms[number]
            if not atom.narrow:
                return number
            low = LEAST[sign]
            return self.symbols.number(
                replace(atom, key=(sign, number), low=low, high=low + (1 << 32) - 1, narrow=False)
            )

        return p.renamed(new)

    def special(self, name: str) -> Polynomial:
        """The value of a special register that keeps it."""
        return self._special(0, name)

    # --- definitions ---

    def _of_definition(self, index: int, name: str) -> Value:
        known = self._in_solution if self._solving else self._known
        if (index, name) not in known:
            self._depth += 1
            value = self._computed(index, name) if self._depth <= _LONGEST else None
            self._depth -= 1
            if value is None or len(value.number.terms) > _MOST_TERMS:
                value = Value(self._opaque(index, name))
            known[index, name] = value
        return known[index, name]

    def _computed(self, index: int, name: str) -> Value:
        s = self._instruction(index)
        facts = isa.facts(s)
        if isa.is_conditional_write(s) or len(effects.writes(s)) != 1 or not facts.known:
            return Value(self._opaque(index, name))
        if facts.memory is Memory.LOAD:
            return self._loaded(index, s)
        if not facts.pure:
            return Value(self._opaque(index, name))
        types = types_of(s)
        whole = bool(types) and all(t[0] in "bsu" and isa.WIDTHS[t] in (32, 64) for t in types)
        plain = whole and s.base in _FOLLOWED and "sat" not in s.parts
        found = self._arithmetic(index, s, facts.arithmetic) if plain else None
        large = found is not None and any(abs(f) >= _LARGEST for product, f in found.number.terms if product)
        return self._scrambled(index, s) if found is None or large else found

    def _arithmetic(self, index: int, s: Instruction, how: Arithmetic) -> Value | None:
        """The result of arithmetic that can be followed; otherwise None."""
        values = [self.of_operand(index, o) for o in s.operands[1:]]
        match how, values:
            case Arithmetic.COPY, [a]:
                return self._converted(index, s, a)
            case Arithmetic.SUM, [a, b]:
                return a.combined(b, a.number + b.number)
            case Arithmetic.DIFFERENCE, [a, b]:
                return a.combined(b, a.number - b.number)
            case Arithmetic.NEGATION, [a]:
                return replace(a, number=-a.number)
            case Arithmetic.PRODUCT, [a, b] if "hi" not in s.parts:
                return self._product(index, s, a, b)
            case Arithmetic.PRODUCT_SUM, [a, b, c] if "hi" not in s.parts:
                product = self._product(index, s, a, b)
                return None if product is None else product.combined(c, product.number + c.number)
            case Arithmetic.LEFT_SHIFT, [a, b] if (by := b.number.number) is not None and 0 <= by < 32:
                return replace(a, number=a.number * constant(1 << by))
            case Arithmetic.DISJUNCTION, [a, b]:
                return self._disjunction(a, b)
            case Arithmetic.REMAINDER, [a, b] if b.number.number is None:
                quotient = self._scrambled(index, replace(s, opcode=s.opcode.replace("rem", "div", 1)))
                return a.combined(b, a.number - b.number * quotient.number)
        return None

    def _converted(self, index: int, s: Instruction, a: Value) -> Value | None:
        types = types_of(s)
        if len(types) < 2 or s.base != "cvt":
            return a
        to, source = (isa.WIDTHS[t] for t in types[:2])
        if to > source:
            return self.read(index, a, types[1][0], (s.operands[1],))
        return replace(a, number=self._narrowed(a.number)) if to < source else a

    def _product(self, index: int, s: Instruction, a: Value, b: Value) -> Value | None:
        if "wide" in s.parts:
            type = types_of(s)[0]
            if isa.WIDTHS[type] != 32:
                return None
            a, b = (self.read(index, v, type[0], s.operands[1:3]) for v in (a, b))
        if len(a.number.terms) * len(b.number.terms) > _MOST_TERMS:
            return None
        return a.combined(b, a.number * b.number)

    def _disjunction(self, a: Value, b: Value) -> Value | None:
        """The sum of two numbers, if one sets only bits that are zero in the other; otherwise None."""
        low = b.number.number
        if low is None or low < 0:
            return None
        free = 1 << low.bit_length()
        if any(factor % free for _, factor in a.number.terms):
            return None
        return a.combined(b, a.number + b.number)

    def read(self, index: int, a: Value, type: str, operands: tuple[Operand, ...]) -> Value:
        """The 32-bit value ``a`` as a number: ``type`` is the first letter of the type as which it is read."""
        sign = "s" if type == "s" else "u"
        self.read_as[index] = (sign, operands)
        number = a.number.number
        if number is not None:
            return replace(a, number=constant((number - LEAST[sign]) % (1 << 32) + LEAST[sign]))
        return Value(self.signed(a.number, sign), a.widened | {index})

    def _narrowed(self, p: Polynomial) -> Polynomial:
        """The lower 32 bits of a 64-bit number."""

        def new(number: int) -> int:
            key = self.symbols.atoms[number].key
            return int(key[1]) if key[0] in ("s", "u") else number

        return p.renamed(new)

    def _loaded(self, index: int, s: Instruction) -> Value:
        addresses = [o for o in s.operands if isinstance(o, Address)]
        if len(addresses) != 1 or not reads_unchanging_memory(s, self.view.function):
            return Value(self._opaque(index, ""))
        address = self.of_address(index)
        loops, lanes, blocks = self.symbols.joined(address.number.atoms)
        low, high, narrow = bounds_of(s)
        own = isa.facts(s).space == "param" and self.view.function.kind != "entry"
        # All loads from one address give one value.
        key = ("load", s.parts[-1], address.number)
        atom = Atom(key, low, high, narrow, loops, lanes or own, blocks or own)
        return Value(self.symbols.of(atom), address.widened)

    def _scrambled(self, index: int, s: Instruction) -> Value:
        """The result of a pure instruction that is not followed: the same for the same operands."""
        values = [self.of_operand(index, o) for o in s.operands[1:]]
        loops, lanes, blocks = self.symbols.joined(n for v in values for n in v.number.atoms)
        low, high, narrow = bounds_of(s)
        key = ("result", s.opcode, *(v.number for v in values))
        widened = frozenset[int]().union(*(v.widened for v in values))
        return Value(self.symbols.of(Atom(key, low, high, narrow, loops, lanes, blocks)), widened)

    def _opaque(self, index: int, name: str) -> Polynomial:
        """What a statement writes, if nothing but its bounds is known."""
        low, high, narrow = bounds_of(self._instruction(index))
        atom = self._unknown(("written", index, name), index)
        return self.symbols.of(replace(atom, low=low, high=high, narrow=narrow))

    def _unknown(self, key: tuple[object, ...], index: int) -> Atom:
        """A number that may change with every loop around a statement."""
        loops = frozenset(loop.header for loop in self.loops.around(index))
        return Atom(key, loops=loops, lanes=True, blocks=True)

    def _mixed(self, use: int, name: str, definitions: frozenset[int]) -> Atom:
        """What ``use`` reads from a register that one of several statements has written."""
        key = use, name, definitions
        if key not in self._mixtures:
            self._mixtures[key] = self._mixture(*key)
        return self._mixtures[key]

    def _mixture(self, use: int, name: str, definitions: frozenset[int]) -> Atom:
        narrow = isa.width(self.view.types[name]) == 32 if name in self.view.types else False
        uniform = self.view.uniformity.is_uniform_use(use, name)
        here = frozenset(loop.header for loop in self.loops.around(use))
        nests = {frozenset(x.header for x in self.loops.around(d)) for d in definitions - {ENTRY}}
        loops = here.intersection(frozenset[int]().union(*nests))
        # If no iteration carries it, it is the same at all uses that the same statements reach.
        same = len(nests) == 1 and nests <= {loops} and not self._handed_on(name, definitions, loops)
        key = ("mixed", name, definitions, uniform) if same else ("mixed", name, use)
        return Atom(key, narrow=narrow, loops=loops, lanes=not uniform, blocks=True)

    def _handed_on(self, name: str, definitions: frozenset[int], headers: frozenset[int]) -> bool:
        starts = (self.view.cfg.blocks[header].start for header in headers)
        return any(definitions & self.view.reaching.reaching(start, name) for start in starts)

    def _special(self, use: int, name: str) -> Polynomial:
        atom = special(name, self.view.function)
        if atom is None:
            return self.symbols.of(replace(self._unknown(("special", name, use), use), narrow=True))
        if atom.low is not None and atom.low == atom.high:
            return constant(atom.low)
        return self.symbols.of(atom)

    # --- what iterations carry ---

    def _of_carried(self, loop: Loop, name: str) -> Value:
        """What a register holds at the header of a loop."""
        axis = self.loops.block_index(loop, name)
        if axis:
            return Value(self._special(0, f"%ctaid.{axis}"))
        key = (loop.header, name)
        narrow = isa.width(self.view.types[name]) == 32
        varies = frozenset(each.header for each in self.loops.around(self.view.cfg.blocks[loop.header].start))
        begins = Atom(("carried", *key), narrow=narrow, loops=varies, lanes=True, blocks=True)
        itself = self.symbols.number(begins)
        unsolved = Value(Polynomial((((itself,), 1),)))
        if key in self._steps:
            return self._steps[key] or unsolved
        if key in self._solving or len(self._solving) >= _DEEPEST:
            return unsolved
        self._solving.add(key)
        outer, self._in_solution = self._in_solution, {}
        found = self._counter(loop, name, itself)
        self._in_solution = outer
        self._solving.remove(key)
        if not self._solving:
            self._steps[key] = found
        return found or unsolved

    def _counter(self, loop: Loop, name: str, itself: int) -> Value | None:
        """The value of a counter, from its start and step: a register to which each iteration adds the same number."""
        begin = self.view.cfg.blocks[loop.header].start
        widened: frozenset[int] = frozenset()
        steps: set[Polynomial] = set()
        for latch in loop.latches:
            definitions = self.view.reaching.reaching_end(latch, name)
            if len(definitions) != 1 or ENTRY in definitions or self.loops.innermost_of(definitions) != loop:
                return None
            value = self._of_definition(min(definitions), name)
            narrow = self.symbols.atoms[itself].narrow
            step = (self._narrowed(value.number) if narrow else value.number) - Polynomial((((itself,), 1),))
            if any(loop.header in self.symbols.atoms[a].loops for a in step.atoms):
                return None
            steps.add(step)
            widened |= value.widened
        outside = frozenset(
            d
            for d in self.view.reaching.reaching(begin, name)
            if d == ENTRY or d not in self.loops.inside(loop)
        )
        if len(steps) != 1 or not outside:
            return None
        start = self._start(loop, name, outside)
        (step,) = steps
        number = start.number + self.iteration(loop) * step
        if self.symbols.atoms[itself].narrow and abs(step.number or 0) <= _MOST_STEP:
            self.starts[number] = self.starts[number + step] = start
        return Value(number, widened | start.widened)

    def _start(self, loop: Loop, name: str, definitions: frozenset[int]) -> Value:
        entries = [b for b in self.view.cfg.predecessors[loop.header] if b not in loop.blocks]
        if len(entries) != 1:
            return Value(
                self.symbols.of(self._mixed(self.view.cfg.blocks[loop.header].start, name, definitions))
            )
        last = self.view.cfg.blocks[entries[0]].stop - 1
        if last in definitions:
            return self._of_definition(last, name)
        carrying = self.loops.carrying(last, name, definitions)
        if carrying is not None:
            return self._of_carried(carrying, name)
        return self._of_definitions(last, name, definitions)

    def iteration(self, loop: Loop) -> Polynomial:
        """The number of an iteration, counted from 0 whenever the loop begins."""
        count = self.view.costs.trip_count(loop)
        high = None if count is None else max(count - 1, 0)
        uneven = {block for block, _ in loop.exits} & self.view.uniformity.varying_branches
        lanes = bool(uneven or self.view.uniformity.divergent_control(loop.header))
        key = ("iteration", loop.header)
        return self.symbols.of(Atom(key, 0, high, loops=frozenset({loop.header}), lanes=lanes, blocks=True))

    def _instruction(self, index: int) -> Instruction:
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        return statement
