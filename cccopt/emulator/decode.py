"""From a kernel's statements to *pieces*: runs of instructions that a warp executes from first to last.

A piece is a basic block, cut again at calls, barriers and warp collectives, because lanes may have to wait there.
Names are resolved here, by scope: a register becomes a slot of the register file, a variable its address.
Everything that the kernel can reach by calls is one list of pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from cccopt.analysis import cfg as flow
from cccopt.analysis.dominance import EXIT, post_dominators
from cccopt.emulator.errors import MALFORMED, UNSUPPORTED
from cccopt.emulator.iterations import Event
from cccopt.emulator.layout import Layout, SymbolAddress, bytes_of
from cccopt.emulator.leaving import only_leaving
from cccopt.emulator.literals import integer
from cccopt.emulator.places import Places
from cccopt.emulator.semantics import PRED, Type
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Address,
    BranchTargets,
    Close,
    Function,
    Group,
    Indexed,
    Instruction,
    Label,
    Literal,
    Marker,
    Negative,
    Not,
    Open,
    Operand,
    Pair,
    Register,
    RegisterDeclaration,
    SpecialRegister,
    Statement,
    Symbol,
    Variable,
    Vector,
    Wildcard,
)
from cccopt.ptx.isa import Control

NO_PIECE = -1


@dataclass(frozen=True)
class Slot:
    """A register: its place in the register file and how its values are stored."""

    index: int
    dtype: Type
    name: str


@dataclass(frozen=True)
class Memory:
    """A resolved memory operand: a base and a byte offset."""

    base: object
    offset: int


@dataclass(frozen=True)
class Many:
    """A resolved list: a vector, a pair, or the arguments of a call."""

    elements: tuple[object, ...]


@dataclass(frozen=True)
class Modified:
    """A resolved ``!p`` (``kind`` "not") or ``-r`` ("negative")."""

    kind: str
    operand: object


@dataclass(frozen=True)
class Decoded:
    """An instruction with resolved operands; ``statement`` is its index in its function's body."""

    function: str
    statement: int
    instruction: Instruction
    operands: tuple[object, ...]
    guard: Slot | None
    negated: bool
    overhead: bool

    @property
    def parts(self) -> tuple[str, ...]:
        """The opcode's dotted parts."""
        return self.instruction.parts


@dataclass
class Piece:
    """A run of instructions and how it ends.

    ``end`` is ``next`` (go to ``following``), ``branch`` (``ending``'s guard chooses ``target`` or
    ``following``), ``indexed`` (``targets``), ``exit``, ``return``, ``call``, ``trap``, or, for a piece of that one
    instruction, ``collective``, ``barrier``, ``activemask``. ``counted`` are the instructions that a pass through
    it issues; ``join`` is the piece where lanes that part at its end meet again. Among ``straight`` are the events that
    somebody watches, at their places.
    """

    index: int
    function: str
    head: int
    label: str | None = None
    straight: list[Decoded | Event] = field(default_factory=list)
    counted: list[Decoded] = field(default_factory=list)
    end: str = "next"
    ending: Decoded | None = None
    following: int = NO_PIECE
    target: int = NO_PIECE
    targets: tuple[int, ...] = ()
    join: int = NO_PIECE
    callee: str = ""


def _special(instruction: Instruction) -> str | None:
    """The kind of piece that an instruction needs for itself, if it does."""
    facts = isa.facts(instruction)
    if facts.collective:
        return "collective"
    if facts.barrier:
        return "barrier"
    if facts.control is Control.CALL:
        return "call"
    return "activemask" if instruction.base == "activemask" else None


class Decoder:
    """Decodes a kernel and all that it calls; `pieces` is the result, the kernel's first piece is number 0."""

    def __init__(
        self,
        functions: dict[str, Function],
        layout: Layout,
        places: Places,
        events: Mapping[tuple[str, int], tuple[Event, ...]],
    ) -> None:
        self.functions = functions
        self.events = events
        self.layout = layout
        self.places = places
        self.pieces: list[Piece] = []
        self.slots: list[Slot] = []
        self.entries: dict[str, int] = {}
        self.calls: dict[str, set[str]] = {}
        self.formals: dict[str, tuple[tuple[object, ...], tuple[object, ...]]] = {}

    def decode(self, kernel: str) -> None:
        """Decodes everything that ``kernel`` reaches."""
        todo = [kernel]
        while todo:
            name = todo.pop(0)
            if name in self.entries:
                continue
            self._function(self.functions[name])
            todo += sorted(self.calls[name])

    def recursive(self) -> frozenset[str]:
        """The functions that lie on a cycle of calls."""
        return frozenset(name for name in self.calls if name in self._reached(name))

    def _reached(self, name: str) -> set[str]:
        found: set[str] = set()
        todo = set(self.calls[name])
        while todo:
            callee = todo.pop()
            found.add(callee)
            todo |= self.calls[callee] - found
        return found

    def _function(self, function: Function) -> None:
        body = function.body
        if body is None:
            raise self.places.error(
                UNSUPPORTED,
                f"function `{function.name}` has no body here",
                function=function.name,
                help="link the device code first, or emulate a kernel that does not call it",
            )
        decoded = self._resolve(function, body)
        self.calls[function.name] = set()
        try:
            graph = flow.build(body)
        except ValueError as problem:
            raise self.places.error(MALFORMED, str(problem), function=function.name) from None
        order = graph.reverse_postorder
        first: dict[int, int] = {}
        built: list[list[Piece]] = []
        for number in order:
            block = graph.blocks[number]
            pieces = self._cut(function.name, block, body, decoded)
            first[number] = pieces[0].index
            built.append(pieces)
        self.entries[function.name] = first[graph.entry]
        immediate = post_dominators(graph).immediate
        gone = only_leaving(function, graph)
        for number, pieces in zip(order, built, strict=True):
            join = immediate.get(number)
            has_join = join is not None and join != EXIT and join in first and join not in gone
            where = first[join] if has_join and join is not None else NO_PIECE
            self._finish(pieces[-1], graph, graph.blocks[number], first, where, body, decoded)

    def _new(self, function: str, head: int) -> Piece:
        piece = Piece(len(self.pieces), function, head)
        self.pieces.append(piece)
        return piece

    def _cut(
        self, function: str, block: flow.Block, body: tuple[Statement, ...], decoded: dict[int, Decoded]
    ) -> list[Piece]:
        """The pieces of a block in order, each but the last with its end set."""
        piece = self._new(function, block.start)
        piece.label = block.label
        pieces = [piece]
        last = block.stop - 1 if flow.ending(body, block) is not None else block.stop
        for index in range(block.start, block.stop):
            piece.straight += self.events.get((function, index), ())
            if index not in decoded or index == last:
                continue
            item = decoded[index]
            kind = _special(item.instruction)
            if kind is None:
                piece.straight.append(item)
                piece.counted.append(item)
                continue
            if item.guard is not None:
                pieces, piece = self._guarded(function, pieces, piece, item, kind)
            elif kind == "call":
                piece.counted.append(item)
                self._end_with(piece, item, kind)
                pieces.append(self._new(function, index + 1))
                piece.following = pieces[-1].index
                piece = pieces[-1]
            else:
                alone = self._new(function, index)
                piece.following = alone.index
                alone.counted.append(item)
                self._end_with(alone, item, kind)
                piece = self._new(function, index + 1)
                alone.following = piece.index
                pieces += [alone, piece]
        return pieces

    def _guarded(
        self, function: str, pieces: list[Piece], piece: Piece, item: Decoded, kind: str
    ) -> tuple[list[Piece], Piece]:
        """A guarded instruction of a kind of its own: a branch around it, counted where the guard is read."""
        piece.counted.append(item)
        alone = self._new(function, item.statement)
        after = self._new(function, item.statement + 1)
        piece.end, piece.ending = "branch", item
        piece.target, piece.following, piece.join = alone.index, after.index, after.index
        self._end_with(alone, item, kind)
        alone.following = after.index
        return [*pieces, alone, after], after

    def _end_with(self, piece: Piece, item: Decoded, kind: str) -> None:
        piece.end, piece.ending = kind, item
        if kind == "call":
            piece.callee = self._callee(item)

    def _callee(self, item: Decoded) -> str:
        names = [o.name for o in item.instruction.operands if isinstance(o, Symbol)]
        if any(isinstance(o, Register) for o in item.instruction.operands):
            raise self.places.error(
                UNSUPPORTED,
                f"`{item.instruction.opcode}`: indirect call",
                item,
                why="only direct calls are followed",
            )
        if not names or names[0] not in self.functions:
            raise self.places.error(MALFORMED, f"call of an unknown function `{', '.join(names)}`", item)
        self.calls[item.function].add(names[0])
        return names[0]

    def _finish(
        self,
        piece: Piece,
        graph: flow.ControlFlowGraph,
        block: flow.Block,
        first: dict[int, int],
        join: int,
        body: tuple[Statement, ...],
        decoded: dict[int, Decoded],
    ) -> None:
        """Sets how the last piece of a block ends."""
        end = flow.ending(body, block)
        falls = block.index + 1
        following = first[falls] if falls in first and falls < len(graph.blocks) else NO_PIECE
        if end is None:
            piece.following = following
            if following == NO_PIECE:
                piece.end = "return"
            return
        item = decoded[block.stop - 1]
        piece.counted.append(item)
        piece.ending = item
        targets = [first[graph_block] for graph_block in self._targets(graph, block, body, end)]
        if end.base == "bra":
            piece.target = targets[0]
            if item.guard is None:
                piece.following = targets[0]
            else:
                piece.end, piece.following, piece.join = "branch", following, join
            return
        if end.base == "brx":
            if item.guard is not None:
                raise self.places.error(UNSUPPORTED, "`brx.idx` with a guard", item)
            piece.end, piece.targets, piece.join = "indexed", tuple(targets), join
            return
        kind = isa.facts(end).control.value
        if item.guard is None:
            piece.end = kind
            return
        leaving = self._new(piece.function, block.stop - 1)
        leaving.end, leaving.ending = kind, item
        piece.end, piece.target, piece.following, piece.join = "branch", leaving.index, following, join

    def _targets(
        self,
        graph: flow.ControlFlowGraph,
        block: flow.Block,
        body: tuple[Statement, ...],
        end: Instruction,
    ) -> Iterator[int]:
        """The blocks that a branch names, in the order of its list."""
        if end.base == "bra":
            successors = graph.successors[block.index]
            yield next(b for b in successors if flow.EdgeKind.TAKEN in graph.kinds[block.index, b])
            return
        names = [operand.name for operand in end.operands if isinstance(operand, Symbol)]
        lists = {s.label: s.targets for s in body if isinstance(s, BranchTargets)}
        places = labels(body)
        for name in names:
            for label in lists.get(name, (name,)):
                yield graph.block_of(places[label])

    # --- names ------------------------------------------------------------------------------------------------

    def _resolve(self, function: Function, body: tuple[Statement, ...]) -> dict[int, Decoded]:
        scope: dict[str, object] = {}
        for variable in (*function.returns, *function.parameters):
            if variable.space == "reg":
                scope[variable.name] = self._slot(variable.name, variable.type)
            elif function.kind == "entry":
                scope[variable.name] = SymbolAddress("param", self.layout.kernel_parameter(variable))
            else:
                scope[variable.name] = self.layout.parameter_variable(variable)
        self.formals[function.name] = (
            tuple(scope[variable.name] for variable in function.returns),
            tuple(scope[variable.name] for variable in function.parameters),
        )
        scopes = [scope]
        found: dict[int, Decoded] = {}
        overhead = False
        for index, statement in enumerate(body):
            if isinstance(statement, Open):
                scopes.append({})
            elif isinstance(statement, Close):
                scopes.pop()
            elif isinstance(statement, RegisterDeclaration):
                self._declare(statement, scopes[-1])
            elif isinstance(statement, Variable):
                scopes[-1][statement.name] = self._variable(function, statement)
            elif isinstance(statement, Marker):
                if statement.event.startswith("overhead."):
                    overhead = statement.event == "overhead.begin"
            elif isinstance(statement, Instruction):
                found[index] = self._instruction(function.name, index, statement, scopes, overhead)
        return found

    def _variable(self, function: Function, variable: Variable) -> object:
        if variable.space == "param":
            return self.layout.parameter_variable(variable)
        if variable.space == "local":
            return SymbolAddress("local", self.layout.local(function.name, variable))
        if variable.space == "shared":
            return SymbolAddress(
                "shared", self.layout.shared_variable(f"{function.name}:{variable.name}", variable)
            )
        raise self.places.error(
            UNSUPPORTED,
            f"variable `{variable.name}` of space .{variable.space} in a function",
            function=function.name,
        )

    def _declare(self, declaration: RegisterDeclaration, scope: dict[str, object]) -> None:
        for names in declaration.names:
            spelled = (
                [names.name] if names.count is None else [f"{names.name}{i}" for i in range(names.count)]
            )
            for name in spelled:
                scope[name] = (declaration.type, name)

    def _slot(self, name: str, type_name: str) -> Slot:
        slot = Slot(len(self.slots), register_dtype(type_name), name)
        self.slots.append(slot)
        return slot

    def _instruction(
        self,
        function: str,
        index: int,
        instruction: Instruction,
        scopes: list[dict[str, object]],
        overhead: bool,
    ) -> Decoded:
        def look_up(name: str) -> object:
            for scope in reversed(scopes):
                if name in scope:
                    entry = scope[name]
                    if isinstance(entry, tuple):  # a register that nothing used before
                        entry = scope[name] = self._slot(entry[1], entry[0])
                    return entry
            return None

        def resolve(operand: Operand) -> object:
            if isinstance(operand, Register):
                slot = look_up(operand.name)
                if not isinstance(slot, Slot):
                    raise unknown("register", operand.name)
                return slot
            if isinstance(operand, Symbol):
                return symbol(operand)
            if isinstance(operand, Literal | SpecialRegister | Wildcard):
                return operand
            if isinstance(operand, Address):
                offset = 0 if operand.offset is None else integer(operand.offset.spelling)
                return Memory(resolve(operand.base), offset)
            if isinstance(operand, Indexed):
                return Memory(resolve(operand.base), integer(operand.offset.spelling))
            if isinstance(operand, Vector | Group):
                return Many(tuple(resolve(element) for element in operand.elements))
            if isinstance(operand, Pair):
                return Many((resolve(operand.first), resolve(operand.second)))
            if isinstance(operand, Not):
                return Modified("not", resolve(operand.operand))
            if isinstance(operand, Negative):
                return Modified("negative", resolve(operand.operand))
            raise self.places.error(
                UNSUPPORTED,
                f"`{instruction.opcode}`: this kind of operand is not supported",
                function=function,
                statement=index,
            )

        def symbol(operand: Symbol) -> object:
            if isa.facts(instruction).control in (Control.BRANCH, Control.INDEXED):
                return operand
            entry = look_up(operand.name)
            if entry is None:
                entry = self.layout.module_variable(operand.name)
            if entry is None and (operand.name in self.functions or instruction.base == "call"):
                return operand
            if entry is None:
                raise unknown("name", operand.name)
            return entry

        def unknown(what: str, name: str) -> Exception:
            return self.places.error(
                MALFORMED, f"unknown {what} `{name}`", function=function, statement=index
            )

        guard = None if instruction.guard is None else resolve(instruction.guard.register)
        assert guard is None or isinstance(guard, Slot)
        return Decoded(
            function,
            index,
            instruction,
            tuple(resolve(operand) for operand in instruction.operands),
            guard,
            instruction.guard is not None and instruction.guard.negated,
            overhead,
        )


def register_dtype(type_name: str) -> Type:
    """How the values of a register of a declared type (``.b32``, ``.f32``, ``.pred``) are stored."""
    name = type_name.strip().lstrip(".")
    if name == "pred":
        return PRED
    return np.dtype(f"u{bytes_of(name)}")


def labels(body: tuple[Statement, ...]) -> dict[str, int]:
    """The labels of a body by name, with the index of their statement."""
    return {s.name: i for i, s in enumerate(body) if isinstance(s, Label)}
