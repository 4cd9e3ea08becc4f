"""Local memory that tasks use: it belongs to a lane, while a task may run in another one (DESIGN 4.1).

What a task stores and loads again while it runs may stay in local memory: `sinf` keeps scratch there. No local memory
may be live into a task or out of it. That holds if no other code uses local memory at all. It also holds if every load,
in the task and elsewhere, surely finds what the same piece of code has stored (`cccopt.analysis.stored`), with no task
in between. In code by nvcc, the scratch of all calls of `sinf` has one address. The task of a ``for variable`` loop may
change lanes between inner iterations, so each of these must store before it loads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis import effects
from cccopt.analysis.constancy import CONSTANT_SPECIAL_REGISTERS
from cccopt.analysis.memory import MemoryAliasing
from cccopt.analysis.reaching import ENTRY
from cccopt.analysis.stored import StoredBytes
from cccopt.ccc.function.view import View
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction, Register
from cccopt.ptx.isa import Facts, Memory


@dataclass(frozen=True)
class LocalMemory:
    """The uses of local memory in one function."""

    view: View
    region: Region
    memory: MemoryAliasing

    def clash(self, path: Path, code: Collection[int]) -> tuple[int, int] | None:
        """A statement of ``code``, which tasks of ``path`` run, and another one that uses local memory, too, although
        it must not; None if there is no such pair.
        """
        users = [index for index in code if index in self._users]
        if not users:
            return None
        inside = set(self.view.statements(path.nodes))
        stray = next((index for index in sorted(self._users) if index not in inside), None)
        if stray is None and path.is_loop:
            stray = self._carried(path, users)
        if stray is None or self._all_assigned:
            return None
        return users[0], stray

    @cached_property
    def _all_assigned(self) -> bool:
        """Whether every load from local memory finds what code of the same paths, or of none, has stored before it,
        with no other path in between.
        """
        plain = all(self._is_plain(i) for i in self._users)
        loads = [i for i in self._users if self._facts(i).memory is Memory.LOAD]
        return plain and all(self._assigned(load) for load in loads)

    def _assigned(self, load: int) -> bool:
        roots = self.memory.roots(load)
        stores = [i for i in self._users if self._facts(i).memory is Memory.STORE and self._together(i, load)]
        known = all(root.kind == "variable" for root in roots)
        return known and all(self._stored.covers(load, root.name, stores) for root in roots)

    def _together(self, store: int, load: int) -> bool:
        """Whether both are parts of the same paths, and no path begins or ends on a way from one to the other."""
        blocks = self.view.cfg.block_of(store), self.view.cfg.block_of(load)
        if blocks not in self._known_together:
            self._known_together[blocks] = self._blocks_together(*blocks)
        return self._known_together[blocks]

    @cached_property
    def _known_together(self) -> dict[tuple[int, int], bool]:
        return {}

    def _blocks_together(self, a: int, b: int) -> bool:
        paths = [(p, self.view.blocks_of(p.nodes)) for p in self.region.all_paths()]
        if any((a in blocks) != (b in blocks) for _, blocks in paths):
            return False
        turns = {self.view.block_of_name[name] for p, blocks in paths for name in (p.begin, p.end)}
        turns -= {self.view.block_of_name[p.begin] for p, blocks in paths if p.is_loop and b in blocks}
        return a == b or (b not in turns and not any(self._is_between(t, a, b) for t in turns - {a}))

    def _is_between(self, turn: int, a: int, b: int) -> bool:
        """Whether the block ``turn`` is on a way from ``a`` to ``b`` that does not pass either in between."""
        return a in self._around(turn, b, forward=False) and b in self._around(turn, a, forward=True)

    def _around(self, start: int, stop: int, *, forward: bool) -> set[int]:
        """The blocks that ``start`` leads to, or that lead to it, on ways that end at ``stop``."""
        key = start, stop, forward
        if key not in self._ways:
            edges = self.view.cfg.successors if forward else self.view.cfg.predecessors
            self._ways[key] = _reached(edges, start, stop)
        return self._ways[key]

    @cached_property
    def _ways(self) -> dict[tuple[int, int, bool], set[int]]:
        return {}

    @cached_property
    def _stored(self) -> StoredBytes:
        return StoredBytes(self.view.reaching, self.view.dominators, self.view.loops)

    @cached_property
    def _users(self) -> frozenset[int]:
        """The statements that access local memory, or pass its address on to anything but pure code."""
        return frozenset(
            index
            for index, statement in enumerate(self.view.body)
            if isinstance(statement, Instruction)
            and not isa.facts(statement).pure
            and (
                effects.reads(statement) & self._addresses
                or (self.memory.accesses_memory(index) and "local" in self.memory.spaces(index))
            )
        )

    @cached_property
    def _addresses(self) -> frozenset[str]:
        """Registers that may hold a generic address of local memory."""
        derived: dict[str, set[str]] = {}
        work: list[str] = []
        for statement in self.view.body:
            if isinstance(statement, Instruction) and isa.facts(statement).pure:
                for name in effects.reads(statement):
                    derived.setdefault(name, set()).update(effects.writes(statement))
                if statement.opcode.startswith("cvta.local"):
                    work += effects.writes(statement)
        return derived_from(work, derived)

    def _carried(self, path: Path, users: Collection[int]) -> int | None:
        """A use of local memory in a loop that may see what an earlier inner iteration left there."""
        stores = [i for i in users if self._facts(i).memory is Memory.STORE]
        loads = [i for i in users if self._facts(i).memory is Memory.LOAD]
        odd = [i for i in users if i not in stores and i not in loads]
        moving = [i for i in stores if not self._same_each_iteration(path, i)]
        early = [i for i in loads if not all(self._stores_before(path, store, i) for store in stores)]
        return next(iter(sorted([*odd, *moving, *early])), None)

    def _is_plain(self, index: int) -> bool:
        """Whether a statement is a plain load or store that names the local state space."""
        facts = self._facts(index)
        plain = facts.memory in (Memory.LOAD, Memory.STORE) and not facts.volatile
        return plain and facts.space == "local"

    def _facts(self, index: int) -> Facts:
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        return isa.facts(statement)

    def _stores_before(self, path: Path, store: int, load: int) -> bool:
        """Whether each inner iteration that reaches ``load`` has stored all that ``store``, with the loop around it,
        stores.
        """
        block, own = self.view.cfg.block_of(load), self.view.cfg.block_of(store)
        body = self.view.blocks_of(path.nodes)
        # The outermost loop around the store inside the inner iteration: its blocks run several times.
        around = max(
            (loop.blocks for loop in self.view.loops if own in loop.blocks and loop.blocks < body),
            key=len,
            default=frozenset({own}),
        )
        if block in around:
            return block == own and store < load and len(around) == 1
        return self.view.dominators.dominates(own, block)

    def _same_each_iteration(self, path: Path, store: int) -> bool:
        """Whether a store's address, and whether it runs at all, is the same in each inner iteration."""
        statement = self.view.body[store]
        assert isinstance(statement, Instruction)
        bases = [o.base for o in statement.operands if isinstance(o, Address)]
        if statement.guard is not None or not bases:
            return False
        block, body = self.view.cfg.block_of(store), self.view.blocks_of(path.nodes)
        deciding = [
            self.view.cfg.blocks[a].stop - 1
            for loop in self.view.loops
            if block in loop.blocks and loop.blocks < body
            for a, _ in loop.exits
        ]
        return all(
            self._fixed(path, store, base.name) for base in bases if isinstance(base, Register)
        ) and all(self._fixed(path, i, name) for i in deciding for name in self._guards(i))

    def _guards(self, index: int) -> Collection[str]:
        return effects.reads(self.view.body[index])

    def _fixed(self, path: Path, use: int, register: str) -> bool:
        """Whether the register's value is computed from constants and from what the loop does not write."""
        body = self.view.blocks_of(path.nodes)
        found: set[int] = set()
        work = [(use, register)]
        while work:
            definitions = self.view.reaching.reaching(*work.pop())
            inside = {d for d in definitions if d != ENTRY and self.view.cfg.block_of(d) in body}
            # A value from both before the loop and inside it is carried from one inner iteration to the next.
            if inside and inside != definitions:
                return False
            for definition in inside - found:
                statement = self.view.body[definition]
                assert isinstance(statement, Instruction)
                specials = effects.special_registers(statement)
                if not specials <= CONSTANT_SPECIAL_REGISTERS or not (isa.facts(statement).pure or specials):
                    return False
                work += [(definition, needed) for needed in effects.needs(statement)]
            found |= inside
        return True


def _reached(edges: Sequence[Sequence[int]], start: int, stop: int) -> set[int]:
    """The blocks that ``start`` leads to, including ``stop``, where ways end, but not ``start`` itself."""
    found: set[int] = set()
    work = list(edges[start])
    while work:
        block = work.pop()
        if block not in found and block != start:
            found.add(block)
            work += edges[block] if block != stop else ()
    return found


def derived_from(names: Iterable[str], derived: Mapping[str, Collection[str]]) -> frozenset[str]:
    """The registers ``names``, and all that are computed from them; ``derived`` gives those computed directly from
    each.
    """
    found: set[str] = set()
    work = list(names)
    while work:
        name = work.pop()
        if name not in found:
            found.add(name)
            work += derived.get(name, ())
    return frozenset(found)
