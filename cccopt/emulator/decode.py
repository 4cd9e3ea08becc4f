"""Decode a kernel's statements into pieces.

Pieces are basic blocks, cut further at calls, barriers and warp collectives, because lanes may have to wait there.
Everything that the kernel can reach by calls forms one list of pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import networkx as nx

from cccopt.analysis import cfg as flow
from cccopt.analysis.dominance import EXIT, post_dominators
from cccopt.emulator.errors import MALFORMED, UNSUPPORTED
from cccopt.emulator.iterations import Event
from cccopt.emulator.layout import KernelLayout
from cccopt.emulator.leaving import only_leaving
from cccopt.emulator.pieces import NO_PIECE, Decoded, Piece, PieceEnd
from cccopt.emulator.places import Places
from cccopt.emulator.resolve import Resolver
from cccopt.ptx import isa
from cccopt.ptx.ir import BranchTargets, Function, Instruction, Label, Register, Statement, Symbol
from cccopt.ptx.isa import Control


def _end_within(instruction: Instruction) -> PieceEnd | None:
    """How a piece ends at an instruction within a block, if it does."""
    facts = isa.facts(instruction)
    if facts.collective:
        return PieceEnd.COLLECTIVE
    if facts.barrier:
        return PieceEnd.BARRIER
    if facts.control is Control.CALL:
        return PieceEnd.CALL
    return PieceEnd.ACTIVEMASK if instruction.base == "activemask" else None


@dataclass
class _Body:
    """A function whose blocks become pieces; ``first`` is the first piece of each block."""

    function: str
    statements: tuple[Statement, ...]
    decoded: dict[int, Decoded]
    graph: flow.ControlFlowGraph
    first: dict[int, int] = field(default_factory=dict)


class Decoder:
    """Decodes a kernel and all that it calls; `pieces` is the result, with the kernel's first piece as number 0."""

    def __init__(
        self,
        functions: dict[str, Function],
        layout: KernelLayout,
        places: Places,
        events: Mapping[tuple[str, int], tuple[Event, ...]],
    ) -> None:
        self._functions = functions
        self._events = events
        self._places = places
        self._calls = nx.DiGraph()
        self.resolver = Resolver(layout, places)
        self.pieces: list[Piece] = []
        self.entries: dict[str, int] = {}

    def decode(self, kernel: str) -> None:
        """Decodes everything that ``kernel`` reaches."""
        todo = [kernel]
        while todo:
            name = todo.pop(0)
            if name not in self.entries:
                self._function(self._functions[name])
                todo += sorted(self._calls.successors(name))

    def recursive(self) -> frozenset[str]:
        """The functions that lie on a cycle of calls."""
        cycles = (c for c in nx.strongly_connected_components(self._calls) if len(c) > 1)
        return frozenset(nx.nodes_with_selfloops(self._calls)).union(*cycles)

    def _function(self, function: Function) -> None:
        assert function.body is not None
        self._calls.add_node(function.name)
        decoded = self.resolver.instructions(function, function.body)
        try:
            graph = flow.build(function.body)
        except ValueError as problem:
            raise self._places.error(MALFORMED, str(problem), function=function.name) from None
        body = _Body(function.name, function.body, decoded, graph)
        last: dict[int, Piece] = {}
        for number in graph.reverse_postorder:
            pieces = self._cut(body, graph.blocks[number])
            body.first[number], last[number] = pieces[0].index, pieces[-1]
        self.entries[function.name] = body.first[graph.entry]
        immediate = post_dominators(graph).immediate
        gone = only_leaving(function, graph)
        for number, piece in last.items():
            join = immediate.get(number)
            if join is None or join == EXIT or join in gone:
                join = NO_PIECE
            self._finish(body, graph.blocks[number], piece, body.first.get(join, NO_PIECE))

    def _new(self, function: str) -> Piece:
        piece = Piece(len(self.pieces), function)
        self.pieces.append(piece)
        return piece

    # --- cutting a block -----------------------------------------------------------------------------------------

    def _cut(self, body: _Body, block: flow.Block) -> list[Piece]:
        """The pieces of a block in order, all but the last with their ends set."""
        piece = self._new(body.function)
        piece.label = block.label
        pieces = [piece]
        last = block.stop - 1 if flow.ending(body.statements, block) is not None else block.stop
        for index in range(block.start, block.stop):
            pieces[-1].straight += self._events.get((body.function, index), ())
            if index not in body.decoded or index == last:
                continue
            item = body.decoded[index]
            end = _end_within(item.instruction)
            if end is None:
                pieces[-1].straight.append(item)
                pieces[-1].counted.append(item)
            elif item.guard is not None:
                pieces += self._guarded(pieces[-1], item, end)
            elif end is PieceEnd.CALL:
                pieces += self._call(pieces[-1], item)
            else:
                pieces += self._alone(pieces[-1], item, end)
        return pieces

    def _call(self, piece: Piece, item: Decoded) -> list[Piece]:
        """A call ends the piece that it is in."""
        piece.counted.append(item)
        self._end_with(piece, item, PieceEnd.CALL)
        after = self._new(piece.function)
        piece.following = after.index
        return [after]

    def _alone(self, piece: Piece, item: Decoded, end: PieceEnd) -> list[Piece]:
        """A barrier or collective becomes a separate piece, so that lanes wait there before it is counted."""
        alone = self._new(piece.function)
        piece.following = alone.index
        alone.counted.append(item)
        self._end_with(alone, item, end)
        after = self._new(piece.function)
        alone.following = after.index
        return [alone, after]

    def _guarded(self, piece: Piece, item: Decoded, end: PieceEnd) -> list[Piece]:
        """A guarded instruction in a separate piece: a branch around it, counted where the guard is read."""
        piece.counted.append(item)
        alone = self._new(piece.function)
        after = self._new(piece.function)
        piece.end, piece.ending = PieceEnd.BRANCH, item
        piece.target, piece.following, piece.join = alone.index, after.index, after.index
        self._end_with(alone, item, end)
        alone.following = after.index
        return [alone, after]

    def _end_with(self, piece: Piece, item: Decoded, end: PieceEnd) -> None:
        piece.end, piece.ending = end, item
        if end is PieceEnd.CALL:
            piece.callee = self._callee(item)

    def _callee(self, item: Decoded) -> str:
        names = [o.name for o in item.instruction.operands if isinstance(o, Symbol)]
        if any(isinstance(o, Register) for o in item.instruction.operands):
            raise self._places.error(
                UNSUPPORTED,
                f"`{item.instruction.opcode}`: indirect call",
                item,
                why="it is not known which functions it may call",
            )
        if not names or names[0] not in self._functions:
            raise self._places.error(MALFORMED, f"call of an unknown function `{', '.join(names)}`", item)
        if self._functions[names[0]].body is not None:
            self._calls.add_edge(item.function, names[0])
        return names[0]

    # --- the end of a block --------------------------------------------------------------------------------------

    def _finish(self, body: _Body, block: flow.Block, piece: Piece, join: int) -> None:
        """Sets how the last piece of a block ends."""
        instruction = flow.ending(body.statements, block)
        following = body.first.get(block.index + 1, NO_PIECE)
        if instruction is None:
            piece.following = following
            if following == NO_PIECE:
                piece.end = PieceEnd.RETURN
            return
        item = body.decoded[block.stop - 1]
        piece.counted.append(item)
        piece.ending = item
        targets = tuple(body.first[number] for number in _targets(body, block, instruction))
        control = isa.facts(instruction).control
        if control is Control.INDEXED:
            if item.guard is not None:
                raise self._places.error(UNSUPPORTED, "`brx.idx` with a guard is not supported", item)
            piece.end, piece.targets, piece.join = PieceEnd.INDEXED, targets, join
        elif control is Control.BRANCH:
            piece.target = targets[0]
            if item.guard is None:
                piece.following = targets[0]
            else:
                piece.end, piece.following, piece.join = PieceEnd.BRANCH, following, join
        elif item.guard is None:
            piece.end = PieceEnd(control.value)
        else:
            leaving = self._new(body.function)
            leaving.end, leaving.ending = PieceEnd(control.value), item
            piece.end, piece.target = PieceEnd.BRANCH, leaving.index
            piece.following, piece.join = following, join


def _targets(body: _Body, block: flow.Block, end: Instruction) -> Iterator[int]:
    """The blocks that a branch names, in the order of its list."""
    if end.base == "bra":
        successors = body.graph.successors[block.index]
        yield next(b for b in successors if flow.EdgeKind.TAKEN in body.graph.kinds[block.index, b])
        return
    names = [operand.name for operand in end.operands if isinstance(operand, Symbol)]
    lists = {s.label: s.targets for s in body.statements if isinstance(s, BranchTargets)}
    labels = {s.name: i for i, s in enumerate(body.statements) if isinstance(s, Label)}
    for name in names:
        for label in lists.get(name, (name,)):
            yield body.graph.block_of(labels[label])
