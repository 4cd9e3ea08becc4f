"""What may not be rewritten (DESIGN 6): each rule states what must hold, and the code transcribes it.

A path P of a marked loop L runs later than the rest of its iteration, in another lane, together with other runs of P.
`rest` is the code of an iteration that comes behind P; the pragma's word covers other iterations, not this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from cccopt.analysis import effects
from cccopt.analysis.constancy import (
    CONSTANT_SPECIAL_REGISTERS,
    UNIFORM_SPECIAL_REGISTERS,
    reads_unchanging_memory,
)
from cccopt.analysis.memory import Access, MemoryAliasing
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc import refusal
from cccopt.ccc.atomics import commutes_as
from cccopt.ccc.calls import called, callee_of, callees
from cccopt.ccc.graph import reachable
from cccopt.ccc.local_memory import LocalMemory
from cccopt.ccc.refusal import Rule, refuse
from cccopt.ccc.regions import Path, Region
from cccopt.ccc.tails import Tails
from cccopt.ccc.view import View
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction, Register, Symbol
from cccopt.ptx.isa import Control, Memory
from cccopt.ptx.lines import source_lines
from cccopt.ptx.printer import print_statement
from cccopt.text import Place, Position

HARMLESS_CALLS = frozenset({"vprintf", "malloc", "free", "__assertfail"})
"""System calls that neither synchronise lanes nor keep state in them (CUDA C++ Programming Guide, 10)."""


def check_known(view: View, region: Region) -> None:
    """Raises Refusal if L holds an instruction that is not in the table: nothing else can be asked of it."""
    _Rules(view, region, {}).known_instructions()


def check(view: View, region: Region, tails: Mapping[str, Tails]) -> None:
    """Raises Refusal for the first rule that the region breaks."""
    rules = _Rules(view, region, tails)
    rules.no_recursion()
    rules.no_barrier()
    rules.own_local_memory()
    for path in region.all_paths():
        rules.no_parameter(path)
        rules.no_collective(path)
        rules.no_opaque_call(path)
        rules.no_fence(path)
        rules.no_scratch(path)
        rules.no_scratch_ahead(path)
        rules.no_conflict(path)


@dataclass(frozen=True)
class _Rules:
    view: View
    region: Region
    tails: Mapping[str, Tails]

    def known_instructions(self) -> None:
        """Every instruction of L is in the table."""
        for index, instruction in self.view.instructions(self.region.nodes | self.region.approach):
            if not isa.facts(instruction).known:
                line = "?" if instruction.position is None else instruction.position.line
                raise self._refuse(refusal.UNKNOWN, self.region, index, instruction.opcode, line)

    def no_recursion(self) -> None:
        """The function of L is not on a cycle of calls: a stack holds one run's tasks."""
        name = self.view.function.name
        if name in called(self.view.module, callees(self.view.function)):
            raise refuse(refusal.RECURSION, self.region.annotation.place)

    def no_barrier(self) -> None:
        """No instruction of L, nor of what it calls, waits for other warps or for copies in flight."""
        for index, instruction in self.view.instructions(self.region.nodes):
            if any(waits(i) for i in self._with_callees(instruction)):
                raise self._refuse(refusal.BARRIER, self.region, index)

    def no_parameter(self, path: Path) -> None:
        """No instruction of P accesses a parameter of its function, unless that is a kernel."""
        function = self.view.function
        own = {variable.name for variable in (*function.parameters, *function.returns)}
        for index, instruction in self._code(path):
            bases = [o.base for o in instruction.operands if isinstance(o, Address)]
            mine = next((b.name for b in bases if isinstance(b, Symbol) and b.name in own), None)
            if mine is not None and function.kind != "entry":
                raise self._refuse(refusal.PARAMETER, path, index, mine)

    def no_collective(self, path: Path) -> None:
        """No instruction of P, nor of what it calls, depends on which lanes run it together."""
        for index, instruction in self._code(path):
            culprit = next((i for i in self._with_callees(instruction) if _collective(i)), None)
            if culprit is not None:
                raise self._refuse(refusal.COLLECTIVE, path, index, culprit.opcode)

    def no_opaque_call(self, path: Path) -> None:
        """Every call in P leads to a function whose body is known, or to a harmless system call."""
        for index, instruction in self._code(path):
            calls = [i for i in self._with_callees(instruction) if isa.facts(i).control is Control.CALL]
            for call in calls:
                callee = callee_of(call)
                if callee is None or (self._body(callee) is None and callee not in HARMLESS_CALLS):
                    raise self._refuse(refusal.CALL, path, index)

    def no_fence(self, path: Path) -> None:
        """No fence, acquire, release, warp barrier, volatile access or spin on an atomic in L outside of P."""
        if self._independent(path):
            return
        inside = set(self.view.statements(path.nodes))
        for index, instruction in self.view.instructions(self.region.nodes):
            facts = isa.facts(instruction)
            # A lane that waits for a lock never comes to the vote at which its holder waits.
            if index not in inside and instruction.base == "atom" and self._spins(index):
                raise self._refuse(refusal.FENCE, path, index)
            ordered = facts.volatile or (facts.synchronises and facts.memory is not Memory.NONE)
            warp_barrier = instruction.opcode.startswith("bar.warp")
            if index not in inside and (ordered or warp_barrier or facts.fence):
                raise self._refuse(refusal.FENCE, path, index)

    def no_scratch(self, path: Path) -> None:
        """No store of P goes to an address that differs between lanes but is the same in each iteration of L."""
        for index, instruction in self._code(path):
            facts = isa.facts(instruction)
            if facts.memory is not Memory.STORE or facts.space in ("local", "param"):
                continue
            bases = [o.base for o in instruction.operands if isinstance(o, Address)]
            walk = _AddressWalk(self.view, self.region)
            for base in bases:
                if isinstance(base, Register) and walk.own_place(index, base.name):
                    raise self._refuse(refusal.SCRATCH, path, index)

    def no_scratch_ahead(self, path: Path) -> None:
        """No store of L outside of P goes to such a place that P may access: the next iteration's comes first."""
        if self._independent(path):
            return
        own = set(self.view.statements(path.nodes)) | set(self.tails[path.begin].moved)
        mine = [i for i, _ in self._code(path) if self._memory.accesses_memory(i)]
        kinds = {(self._memory.access(i), ""): i for i in reversed(mine)}
        walk = _AddressWalk(self.view, self.region)
        for index, instruction in self.view.instructions(self.region.nodes):
            facts = isa.facts(instruction)
            if index in own or facts.memory is not Memory.STORE or facts.space in ("local", "param"):
                continue
            bases = [o.base for o in instruction.operands if isinstance(o, Address)]
            if not any(isinstance(b, Register) and walk.own_place(index, b.name) for b in bases):
                continue
            clash = self._first_clash(kinds, self._memory.access(index))
            if clash is not None:
                notes = (*self._note("in the path", clash), *self._note("the store", index))
                raise refuse(refusal.SCRATCH_AHEAD, path.annotation.place, notes=notes)

    def no_conflict(self, path: Path) -> None:
        """No access of P and no access of the rest of its iteration may touch the same bytes, one of them writing."""
        if self._independent(path):
            return
        mine = [i for i, _ in self._code(path) if self._memory.accesses_memory(i)]
        kinds = {(self._memory.access(i), commutes_as(self.view, i)): i for i in reversed(mine)}
        for other in self._rest(path):
            if not self._memory.accesses_memory(other):
                continue
            clash = self._first_clash(kinds, self._memory.access(other), commutes_as(self.view, other))
            if clash is not None:
                why = f"`{self._text(clash)}` in the path, `{self._text(other)}` behind it"
                raise refuse(
                    refusal.MEMORY,
                    path.annotation.place,
                    why=why,
                    notes=(*self._note("in the path", clash), *self._note("behind it", other)),
                )

    def own_local_memory(self) -> None:
        """No local memory lives into or out of a task (`cccopt.ccc.local_memory`)."""
        local = LocalMemory(self.view, self.region, self._memory)
        for path in self.region.all_paths():
            clash = local.clash(path, [i for i, _ in self._code(path)])
            if clash is not None:
                notes = (*self._note("in the path", clash[0]), *self._note("elsewhere", clash[1]))
                raise refuse(refusal.LOCAL, path.annotation.place, notes=notes)

    # --- what the rules ask ---

    def _code(self, path: Path) -> list[tuple[int, Instruction]]:
        """The instructions that run as tasks of the path."""
        own = self.view.instructions(path.nodes)
        moved = [(i, self.view.body[i]) for i in self.tails[path.begin].moved]
        return [*own, *((i, s) for i, s in moved if isinstance(s, Instruction))]

    def _rest(self, path: Path) -> list[int]:
        """The statements of an iteration that run behind the path in the lane that made the task."""
        # A loop that the compiler has unrolled holds several iterations, each behind a marker.
        around = self.region.loops_around(path)
        loops = [p.annotation for p in self.region.all_paths() if p.begin in around]
        begins = self.view.names_of(
            self.view.cfg.block_of(i)
            for annotation in (self.region.annotation, *loops)
            for i in self.view.markers("body.begin", annotation.region)
        )
        stops = begins | around.keys()
        nodes = {n: self.view.graph.nodes[n] for n in self.region.nodes - stops}
        # Behind an inner path that is the rest of the outer one, and what is behind that.
        behind = reachable(nodes, [path.end])
        skipped = set(self.tails[path.begin].skipped)
        return [i for i in self.view.statements(behind) if i not in skipped]

    def _first_clash(
        self, kinds: Mapping[tuple[Access, str], int], access: Access, operation: str = ""
    ) -> int | None:
        """The first of some statements, given by their kinds, whose access may touch the same bytes as ``access``.

        Two atomics that apply one integer operation do so in either order: they do not count.
        """
        clashing = (
            first
            for (mine, own), first in kinds.items()
            if not (operation and own == operation) and self._memory.may_clash(mine, access)
        )
        return min(clashing, default=None)

    def _spins(self, atomic: int) -> bool:
        """Whether what an atomic returns decides how long a loop inside L goes on."""
        outer = self.view.blocks_of(self.region.nodes)
        around = [
            loop
            for loop in self.view.loops
            if loop.blocks < outer and self.view.cfg.block_of(atomic) in loop.blocks
        ]
        deciding = {self.view.cfg.blocks[a].stop - 1 for loop in around for a, _ in loop.exits}
        return bool(deciding and deciding & self._depending(atomic))

    def _depending(self, index: int) -> set[int]:
        """The statements whose operands may be computed from what statement ``index`` writes."""
        tainted = {(index, name) for name in effects.writes(self.view.body[index])}
        found: set[int] = set()
        before = -1
        while len(found) != before:
            before = len(found)
            for place, statement in enumerate(self.view.body):
                if place in found or not isinstance(statement, Instruction):
                    continue
                needs = ((n, self.view.reaching.reaching(place, n)) for n in effects.needs(statement))
                if any((d, name) in tainted for name, definitions in needs for d in definitions):
                    found.add(place)
                    tainted |= {(place, name) for name in effects.writes(statement)}
        return found

    def _independent(self, path: Path) -> bool:
        return path.annotation.independent or self.region.annotation.independent

    @cached_property
    def _memory(self) -> MemoryAliasing:
        return MemoryAliasing(self.view.module, self.view.function, self.view.reaching)

    def _with_callees(self, instruction: Instruction) -> list[Instruction]:
        """The instruction and all that it may run by calling."""
        if isa.facts(instruction).control is not Control.CALL:
            return [instruction]
        callee = callee_of(instruction)
        names = called(self.view.module, [callee]) if callee is not None else set()
        bodies = (self._body(name) or () for name in sorted(names))
        return [instruction, *(s for body in bodies for s in body if isinstance(s, Instruction))]

    def _body(self, name: str) -> Sequence[object] | None:
        return next(
            (f.body for f in self.view.module.functions() if f.name == name and f.body is not None), None
        )

    def _refuse(self, rule: Rule, where: Path | Region, index: int, *details: object) -> refusal.Refusal:
        return refuse(rule, where.annotation.place, *details, notes=self._note("here", index))

    def _note(self, label: str, index: int) -> tuple[tuple[str, Place], ...]:
        """The CUDA line of a statement, where `.loc` tells it."""
        at = self._lines[index]
        if at is None:
            return ()
        return ((f"{label}: {self._text(index)}", Place(at[0], Position(at[1], max(at[2], 1)))),)

    @cached_property
    def _lines(self) -> Sequence[tuple[str, int, int] | None]:
        return source_lines(self.view.module, self.view.function)

    def _text(self, index: int) -> str:
        return print_statement(self.view.body[index]).strip()


@dataclass
class _AddressWalk:
    """Follows an address back to what it is made from."""

    view: View
    region: Region

    def __post_init__(self) -> None:
        self._loop = self.view.blocks_of(self.region.nodes)

    def own_place(self, index: int, register: str) -> bool:
        """Whether the address differs between lanes and depends on nothing that changes from iteration to iteration."""
        varies = False
        sources = nx.DiGraph()
        work = [(index, register)]
        while work:
            use, name = work.pop()
            for definition in self.view.reaching.reaching(use, name):
                if definition == ENTRY:
                    return False
                if self.view.cfg.block_of(definition) not in self._loop:
                    varies |= not self.view.uniformity.is_uniform_definition(definition, name)
                    continue
                if definition not in sources:
                    statement = self.view.body[definition]
                    assert isinstance(statement, Instruction)
                    if not self._repeats(statement):
                        return False
                    varies |= not effects.special_registers(statement) <= UNIFORM_SPECIAL_REGISTERS
                    work += [(definition, needed) for needed in effects.needs(statement)]
                sources.add_edge(use, definition)
        return varies and not any(self._carried(d) for d in _in_cycles(sources))

    def _repeats(self, instruction: Instruction) -> bool:
        """Whether an instruction gives one lane the same in each iteration if its operands are the same."""
        specials = effects.special_registers(instruction)
        facts = isa.facts(instruction)
        constant = facts.memory is Memory.LOAD and reads_unchanging_memory(instruction, self.view.function)
        return specials <= CONSTANT_SPECIAL_REGISTERS and (facts.pure or bool(specials) or constant)

    def _carried(self, definition: int) -> bool:
        """Whether the next iteration may still see what ``definition`` writes."""
        header = self.view.block_of_name[self.region.header]
        latches = (b for b in self.view.cfg.predecessors[header] if b in self._loop)
        alive = effects.writes(self.view.body[definition]) & self.view.liveness.live_in[header]
        return any(definition in self.view.reaching.reaching_end(b, n) for b in latches for n in alive)


def _in_cycles(graph: nx.DiGraph) -> Iterator[int]:
    """The definitions that depend on themselves, such as counters.

    One of a loop inside the iteration starts anew in each; one of the marked loop does not.
    """
    for component in nx.strongly_connected_components(graph):
        if len(component) > 1 or any(graph.has_edge(node, node) for node in component):
            yield from component


def waits(instruction: Instruction) -> bool:
    """Whether an instruction waits for other warps or for copies in flight, or is what such a wait is for."""
    return isa.facts(instruction).waits


def _collective(instruction: Instruction) -> bool:
    facts = isa.facts(instruction)
    if facts.control is Control.CALL or facts.fence or not facts.known:
        return facts.known is False
    return facts.aligned or facts.convergent or (facts.synchronises and facts.memory is Memory.NONE)
