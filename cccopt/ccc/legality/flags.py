"""Flags: variables that iterations of a marked loop leave as they are, or set to one constant.

    found |= x < 0;        if (x & 1) changed = 1;        ok = ok && test(x);        code = 17;

In whatever order iterations run, and even if some run elsewhere and are merged later, the variable ends with the
constant if any iteration has set it, and otherwise as it was. nvcc keeps such a flag in many shapes, in different
registers from block to block:

    cvt.u32.u16 %r1, %rs9;  or.b32 %r2, %r1, %r7;  setp.ne.s32 %p1, %r2, 0;  selp.u16 %rs9, 1, 0, %p1;

So the effect of each block's code on it is computed (`cccopt.ccc.legality.flag_values`): it must turn the constant into
the constant, and the other value into either one. Nothing else in the loop may read the flag, and once a block has
changed it, no register may keep its old value.

`cccopt.passes.flag_reductions` then keeps the flag as a word into which basic blocks `or` what they found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cccopt.analysis import effects
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.graph import targets
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.flag_values import (
    BOOLEAN,
    FLAG_OPCODES,
    KEPT,
    Unknown,
    Values,
    bits_of,
    either,
    is_among,
    is_nonzero,
    result,
)
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Literal
from cccopt.ptx.isa import width

_MOST_ROUNDS = 20
_DEPTH = 4
"""The longest chain of definitions followed to find what is known about a value."""


@dataclass(frozen=True, slots=True)
class BlockOfFlag:
    """What one block does to a flag: its ``statements`` that handle it, and the ``inputs``, the registers in which it
    receives the flag from other blocks. The register ``output`` then says whether the block has set the flag, by the
    constant or, if ``truth``, by any number except 0; it is None if the block only copies.
    """

    statements: tuple[int, ...]
    inputs: frozenset[str]
    output: str | None
    truth: bool


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag in ``register`` where the loop begins and ends: it is set to ``constant``, and ``clear`` may represent the
    other value; ``exits`` are the nodes after the loop in which it is read. If only the iteration as a whole behaves
    like a flag, ``ends`` are the blocks that end it, and ``blocks`` has one element.
    """

    register: str
    constant: int
    clear: int
    blocks: tuple[BlockOfFlag, ...]
    exits: tuple[str, ...]
    ends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Meaning:
    """A flag is set if it is ``constant`` or, in the registers ``truths``, any number except 0; otherwise it is
    ``other``, which ``clear`` may represent.
    """

    constant: int
    clear: int
    other: frozenset[int]
    truths: frozenset[str] = frozenset()

    def set_in(self, name: str) -> Values:
        """What a register holds if the flag is set."""
        return Unknown.NONZERO if name in self.truths else frozenset({self.constant})

    def is_set(self, name: str, value: Values) -> bool:
        """Whether a register that holds ``value`` says that the flag is set."""
        return is_nonzero(value) if name in self.truths else value == frozenset({self.constant})

    def allows(self, name: str, value: Values) -> bool:
        """Whether ``value`` is one that a register of the flag holds, be the flag set or not."""
        return name in self.truths or is_among(value, self.other | {self.constant})


def flag(view: View, region: Region, name: str) -> Flag | None:
    """The flag in the register ``name`` at the header of ``region``; None if it is not a flag."""
    web = _Web(view, region, name)
    exits = web.exits() if web.follow() and web.is_alone() else None
    if exits is None:
        return None
    current = web.is_current()
    for meaning in web.meanings():
        blocks = web.judged(meaning) if current else None
        if blocks is not None:
            return Flag(name, meaning.constant, meaning.clear, blocks, exits)
    ends = web.ends(exits)
    for meaning in web.meanings() if ends else ():
        if web.keeps_in_iteration(meaning, ends):
            return Flag(name, meaning.constant, meaning.clear, (web.iteration(),), exits, ends)
    return None


class _Web:
    """The statements of a loop that handle what a register holds at its header."""

    def __init__(self, view: View, region: Region, name: str) -> None:
        self.view = view
        self.region = region
        self.name = name
        self.inside = frozenset(view.statements(region.nodes))
        self.statements: set[int] = set()
        self.values: set[tuple[int, str]] = set()
        start = view.cfg.blocks[view.block_of_name[region.header]].start
        self.first = view.reaching.reaching(start, name)

    # --- which statements handle the flag ---

    def follow(self) -> bool:
        """Find the statements that handle the flag, and return whether all of them may."""
        view = self.view
        self.values = {(d, self.name) for d in self.first}
        work = [d for d in self.first if d in self.inside] + [*self._readers(self.values)]
        while work:
            index = work.pop()
            if index in self.statements:
                continue
            written = self._handled(index)
            if written is None:
                return False
            self.statements.add(index)
            self.values.add((index, written))
            work += self._readers({(index, written)})
            # Any other definition that reaches such a read is one of its values, too.
            for read in self._reads(index):
                work += view.reaching.reaching(index, read) & self.inside
        return all(map(self._reads_no_other, self.statements))

    def _reads_no_other(self, index: int) -> bool:
        """Whether a statement reads only the flag from the flag's registers, and not in its guard."""
        instruction, reads = self._instruction(index), self._reads(index)
        if instruction.guard is not None and instruction.guard.register.name in reads:
            return False
        names = {name for _, name in self.values}
        return effects.reads(instruction) & names <= reads and all(
            (d, read) in self.values for read in reads for d in self.view.reaching.reaching(index, read)
        )

    def _handled(self, index: int) -> str | None:
        """The register that a statement writes, if it may handle a flag; otherwise None."""
        statement = self.view.body[index]
        if not isinstance(statement, Instruction) or statement.base not in FLAG_OPCODES:
            return None
        written = isa.definitions(statement)
        if len(written) != 1 or statement.operands[0] != written[0] or written[0].name in self.view.scoped:
            return None
        return written[0].name if effects.is_pure(statement) else None

    def _readers(self, values: Iterable[tuple[int, str]]) -> Iterator[int]:
        return (i for value in values for i in self.view.readers.get(value, ()) if i in self.inside)

    def _holds(self, index: int, name: str) -> bool:
        return any((d, name) in self.values for d in self.view.reaching.reaching(index, name))

    def _reads(self, index: int) -> frozenset[str]:
        """The registers from which a statement reads the flag."""
        return frozenset(n for n in effects.needs(self.view.body[index]) if self._holds(index, n))

    # --- where the flag is kept ---

    def is_alone(self) -> bool:
        """Whether only one register holds the flag where an iteration begins."""
        view = self.view
        header = view.block_of_name[self.region.header]
        return self._held(view.cfg.blocks[header].start, view.liveness.live_in[header]) == {self.name}

    def is_current(self) -> bool:
        """Whether no register keeps an older value: a block that handles the flag leaves only its own."""
        return all(self._outputs(block) == self._live_out(block) for block in self._blocks())

    def _held(self, statement: int, names: Iterable[str]) -> frozenset[str]:
        return frozenset(name for name in names if self._holds(statement, name))

    def _live_out(self, block: int) -> frozenset[str]:
        end = self.view.reaching.reaching_end
        live = self.view.liveness.live_out[block]
        return frozenset(n for n in live if any((d, n) in self.values for d in end(block, n)))

    def _outputs(self, block: int) -> frozenset[str]:
        """The registers that hold the block's own value of the flag, even if only a guarded write left it there."""
        end, own = self.view.reaching.reaching_end, self.statements & self._in(block)
        return frozenset(n for n in self._live_out(block) if end(block, n) & own)

    def _in(self, block: int) -> frozenset[int]:
        return frozenset(self.view.cfg.blocks[block].statements())

    def _blocks(self) -> list[int]:
        return sorted({self.view.cfg.block_of(index) for index in self.statements})

    def exits(self) -> tuple[str, ...] | None:
        """The nodes right after the loop in which the flag is read, in the register of the header. None if another
        register is read there, or if other code leads there.
        """
        view, region = self.view, self.region
        around = region.nodes | region.preheader
        ways = {t for n in region.nodes for t in targets(view.graph.nodes[n].end)} - region.nodes - view.traps
        found: list[str] = []
        for way in sorted(ways & view.block_of_name.keys()):
            block = view.block_of_name[way]
            held = self._held(view.cfg.blocks[block].start, view.liveness.live_in[block])
            if held and (held != {self.name} or not around.issuperset(view.sources[way])):
                return None
            if held:
                found.append(way)
        select = view.block_of_name[region.select]
        after = [view.block_of_name[way] for way in (region.header, *found)]
        return tuple(found) if all(view.dominators.dominates(select, block) for block in after) else None

    # --- what becomes of the flag ---

    def meanings(self) -> Iterator[_Meaning]:
        """The meanings that the flag may have."""
        types = self.view.types
        size = width(types[self.name])
        if self._begins_as_boolean():
            yield _Meaning(1, 0, frozenset({0}), self._truths())
            yield _Meaning(0, 1, frozenset({1}))
        if size > 1 and all(types[name] == types[self.name] for _, name in self.values):
            literals = {
                bits_of(o, size)
                for index in self.statements
                for o in self._instruction(index).operands
                if isinstance(o, Literal)
            }
            yield from (_Meaning(c, c ^ 1, frozenset({KEPT})) for c in sorted(literals))

    def _begins_as_boolean(self) -> bool:
        """Whether the flag is 0 or 1 before the loop."""
        before = self.first - self.inside
        return all(is_among(self._left(d, self.name, _DEPTH), BOOLEAN) for d in before)

    def _truths(self) -> frozenset[str]:
        """The registers that pass a 0-or-1 flag between blocks as 0 or any other number."""
        found: set[str] = set()
        for number in self._blocks():
            statements = self._in_block(number)
            made = self._run(statements, dict.fromkeys(self._inputs(statements), frozenset({0})))
            outputs = (n for n in self._outputs(number) if n != self.name and self.view.types[n] != "pred")
            found |= {n for n in outputs if not is_among(made[n], BOOLEAN)}
        return frozenset(found)

    def judged(self, meaning: _Meaning) -> tuple[BlockOfFlag, ...] | None:
        """What each block does to the flag, if each leaves it as it is or sets it; otherwise None."""
        found: list[BlockOfFlag] = []
        for number in self._blocks():
            statements = self._in_block(number)
            inputs, outputs = self._inputs(statements), sorted(self._outputs(number))
            made = self._run(statements, dict.fromkeys(inputs, meaning.other))
            kept = self._run(statements, {name: meaning.set_in(name) for name in inputs})
            if not all(meaning.allows(n, made[n]) and meaning.is_set(n, kept[n]) for n in outputs):
                return None
            telling = self._telling(statements, outputs, meaning)
            if outputs and telling is None:
                return None
            if all(made[name] == meaning.other for name in outputs):
                telling = None
            found.append(BlockOfFlag(statements, inputs, telling, telling in meaning.truths))
        return tuple(found)

    # --- the iteration as a whole ---

    def ends(self, exits: Iterable[str]) -> tuple[int, ...]:
        """The blocks from which control goes to the next iteration, or to where the flag is read after the loop; empty
        if it may also continue in the iteration.
        """
        view, region = self.view, self.region
        after = {view.block_of_name[way] for way in (region.header, *exits)}
        inside = view.blocks_of(region.nodes) - {view.block_of_name[region.header]}
        ending = [
            b for b in sorted(view.blocks_of(region.nodes)) if after.intersection(view.cfg.successors[b])
        ]
        goes_on = any(inside.intersection(view.cfg.successors[b]) for b in ending)
        return () if goes_on else tuple(ending)

    def iteration(self) -> BlockOfFlag:
        """What an iteration does to the flag, as if the iteration were one block."""
        return BlockOfFlag(tuple(sorted(self.statements)), frozenset({self.name}), self.name, False)

    def keeps_in_iteration(self, meaning: _Meaning, ends: Iterable[int]) -> bool:
        """Whether a whole iteration leaves the flag as it is or sets it."""
        exact = _Meaning(meaning.constant, meaning.clear, meaning.other)
        made, kept = (self._after_blocks(v) for v in (exact.other, frozenset({exact.constant})))
        return all(
            exact.allows(self.name, made[b].get(self.name, Unknown.ANY))
            and exact.is_set(self.name, kept[b].get(self.name, Unknown.ANY))
            for b in ends
        )

    def _after_blocks(self, start: frozenset[int]) -> Mapping[int, Mapping[str, Values]]:
        """What is known about the flag's registers after each block of an iteration that begins with ``start``."""
        view = self.view
        header, inside = view.block_of_name[self.region.header], view.blocks_of(self.region.nodes)
        order = [b for b in view.cfg.reverse_postorder if b in inside]
        after: dict[int, dict[str, Values]] = {}
        for _ in range(_MOST_ROUNDS):
            changed = False
            for block in order:
                earlier = [after[b] for b in view.cfg.predecessors[block] if b in after]
                known: dict[str, Values] = {self.name: start} if block == header else _joined(earlier)
                left = self._run(self._in_block(block), known)
                changed = changed or after.get(block) != left
                after[block] = left
            if not changed:
                return after
        return {block: {} for block in order}

    def _in_block(self, number: int) -> tuple[int, ...]:
        return tuple(sorted(self.statements & self._in(number)))

    def _inputs(self, statements: Iterable[int]) -> frozenset[str]:
        """The registers from which statements of a block read the flag as other blocks left it."""
        view = self.view
        return frozenset(
            read
            for index in statements
            for read in self._reads(index)
            if not view.reaching.reaching(index, read) <= self._in(view.cfg.block_of(index))
        )

    def _telling(self, statements: Iterable[int], outputs: list[str], meaning: _Meaning) -> str | None:
        """The output of which all others are copies."""
        for chosen in outputs:
            last = max(i for i in statements if self._written(i) == chosen)
            later = [i for i in statements if i > last]
            clear = frozenset({meaning.clear})
            left = self._run(later, {chosen: clear})
            kept = self._run(later, {chosen: meaning.set_in(chosen)})
            known = left.keys() & kept.keys()
            if all(n in known and left[n] == clear and meaning.is_set(n, kept[n]) for n in outputs):
                return chosen
        return None

    def _run(self, statements: Iterable[int], known: Mapping[str, Values]) -> dict[str, Values]:
        """What is known after a sequence of statements in a block: about what they write, and about what was known
        before.
        """
        values = dict(known)
        for index in statements:
            values[self._written(index)] = self._result(index, values)
        return values

    def _result(self, index: int, known: Mapping[str, Values], depth: int = _DEPTH) -> Values:
        """What a statement leaves. For registers that are not in ``known``, their definitions are evaluated."""
        instruction = self._instruction(index)
        others = effects.reads(instruction) - known.keys() if depth else frozenset[str]()
        told = {name: self._defined(index, name, depth - 1) for name in sorted(others)}
        return result(instruction, {**told, **known}, self.view.types)

    def _defined(self, index: int, name: str, depth: int) -> Values:
        """What a register holds before a statement, according to its definitions."""
        found = self.view.reaching.reaching(index, name)
        return either(*(self._left(d, name, depth) for d in sorted(found)))

    def _left(self, definition: int, name: str, depth: int) -> Values:
        """What a definition leaves in a register."""
        unknown = BOOLEAN if self.view.types.get(name) == "pred" else Unknown.ANY
        statement = None if definition == ENTRY else self.view.body[definition]
        if not isinstance(statement, Instruction) or len(isa.definitions(statement)) != 1:
            return unknown
        return self._result(definition, {}, depth)

    def _written(self, index: int) -> str:
        return isa.definitions(self._instruction(index))[0].name

    def _instruction(self, index: int) -> Instruction:
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        return statement


def _joined(known: list[dict[str, Values]]) -> dict[str, Values]:
    """What is known where control comes from several blocks."""
    names = set.intersection(*(set(one) for one in known)) if known else set[str]()
    return {name: either(*(one[name] for one in known)) for name in names}
