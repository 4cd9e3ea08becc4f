"""The control flow graph: basic blocks of a function body and the edges between them.

A block is a maximal run of statements that control enters at the first and leaves after the last. A block
starts at a label and after each branch, `ret`, `exit` or `trap`; calls do not end one. Declarations, markers
and `.loc` belong to the block they are in, so the blocks cover the body without a gap, in file order.

        setp.eq.s32 %p1, %r1, 0;      block 0  -> 2 (taken), 1 (falls through)
        @%p1 bra  DONE;
        add.s32  %r1, %r1, 1;         block 1  -> 2 (falls through)
    DONE:
        ret;                          block 2  leaves the function

Allen, "Control flow analysis", SIGPLAN Notices 5(7), 1970; PTX ISA 9.0, 9.7.12 (control flow instructions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from cccopt.ptx import isa
from cccopt.ptx.ir import Body, Close, Instruction, Label, Open, Statement
from cccopt.ptx.isa import Control


class EdgeKind(Enum):
    """How control passes from one block to the next; one edge may be of several kinds."""

    TAKEN = "taken"  # by a branch, direct or indexed
    FALLTHROUGH = "fallthrough"  # past the end of the block


@dataclass(frozen=True, slots=True)
class Block:
    """Statements ``start`` to ``stop`` (half-open); ``label`` is the first label at its head, if any."""

    index: int
    start: int
    stop: int
    label: str | None = None

    def statements(self) -> range:
        """The indices of the block's statements."""
        return range(self.start, self.stop)


@dataclass(frozen=True)
class ControlFlowGraph:
    """Blocks in file order and the edges between them, by block index.

    ``successors[b]`` and ``predecessors[b]`` are sorted and hold each block once; ``kinds[a, b]`` says how
    ``a`` reaches ``b``. ``exits`` are the blocks from which control can leave the function (`ret`, `exit`,
    `trap`, guarded or not, and the end of the body); a guarded one has a successor too.
    """

    blocks: tuple[Block, ...]
    successors: tuple[tuple[int, ...], ...]
    predecessors: tuple[tuple[int, ...], ...]
    kinds: Mapping[tuple[int, int], frozenset[EdgeKind]]
    exits: tuple[int, ...]

    @property
    def entry(self) -> int:
        """The block that control enters the function through."""
        return 0

    @cached_property
    def _block_of(self) -> tuple[int, ...]:
        return tuple(block.index for block in self.blocks for _ in block.statements())

    def block_of(self, statement: int) -> int:
        """The block that statement ``statement`` of the body is in."""
        return self._block_of[statement]

    @cached_property
    def reverse_postorder(self) -> tuple[int, ...]:
        """The blocks that the entry reaches, each (back edges aside) after its predecessors."""
        return reverse_postorder(self.successors, self.entry)

    @cached_property
    def reachable(self) -> frozenset[int]:
        """The blocks that the entry reaches."""
        return frozenset(self.reverse_postorder)

    def edges(self) -> Iterator[tuple[int, int]]:
        """All edges, by source and then by target."""
        return ((a, b) for a, targets in enumerate(self.successors) for b in targets)


def build(body: Body) -> ControlFlowGraph:
    """The control flow graph of ``body``.

    Raises ValueError if a branch names a label that is not visible in its scope (the verifier reports that with a
    place).
    """
    blocks = split(body)
    block_of = [block.index for block in blocks for _ in block.statements()]
    find_label = _label_finder(body)
    kinds: dict[tuple[int, int], frozenset[EdgeKind]] = {}
    successors: list[set[int]] = [set() for _ in blocks]
    predecessors: list[set[int]] = [set() for _ in blocks]
    exits: list[int] = []

    def connect(source: int, target: int, kind: EdgeKind) -> None:
        kinds[source, target] = kinds.get((source, target), frozenset()) | {kind}
        successors[source].add(target)
        predecessors[target].add(source)

    for block in blocks:
        end = ending(body, block)
        for name in () if end is None else isa.targets(end, body):
            connect(block.index, block_of[find_label(block.stop - 1, name)], EdgeKind.TAKEN)
        falls = end is None or end.guard is not None
        last_block = block.index + 1 == len(blocks)
        if falls and not last_block:
            connect(block.index, block.index + 1, EdgeKind.FALLTHROUGH)
        if (falls and last_block) or (end is not None and isa.facts(end).control in _LEAVING):
            exits.append(block.index)
    return ControlFlowGraph(
        blocks,
        tuple(tuple(sorted(targets)) for targets in successors),
        tuple(tuple(sorted(sources)) for sources in predecessors),
        kinds,
        tuple(exits),
    )


def ending(body: Body, block: Block) -> Instruction | None:
    """The branch, `ret`, `exit` or `trap` that ends ``block``, or None if control only falls through."""
    last = body[block.stop - 1] if block.stop > block.start else None
    return last if isinstance(last, Instruction) and ends_block(last) else None


def reverse_postorder(
    successors: Mapping[int, Iterable[int]] | Sequence[Iterable[int]], *entries: int
) -> tuple[int, ...]:
    """The nodes that ``entries`` reach, in reverse postorder of a depth-first walk from each entry in turn, targets in
    order.
    """
    order: list[int] = []
    seen: set[int] = set()
    for entry in entries:
        if entry in seen:
            continue
        seen.add(entry)
        stack = [(entry, iter(successors[entry]))]
        while stack:
            node, targets = stack[-1]
            target = next((t for t in targets if t not in seen), None)
            if target is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(target)
                stack.append((target, iter(successors[target])))
    return tuple(reversed(order))


def split(body: Body) -> tuple[Block, ...]:
    """The blocks of ``body``, as in `build`; consecutive labels head one block."""
    starts = [0]
    after_end, after_label = False, True
    for index, statement in enumerate(body):
        is_label = isinstance(statement, Label)
        if after_end or (is_label and not after_label):
            starts.append(index)
        after_end, after_label = not is_label and ends_block(statement), is_label
    stops = [*starts[1:], len(body)]
    return tuple(
        Block(number, start, stop, _label(body, start))
        for number, (start, stop) in enumerate(zip(starts, stops, strict=True))
    )


def _label(body: Body, start: int) -> str | None:
    first = body[start] if start < len(body) else None
    return first.name if isinstance(first, Label) else None


_LEAVING = frozenset({Control.RETURN, Control.EXIT, Control.TRAP})
_STAYING = (Control.NEXT, Control.CALL)  # not a set: each instruction is tested, and enum members hash slowly


def ends_block(statement: Statement) -> bool:
    """Whether control may continue anywhere but after the statement."""
    return isinstance(statement, Instruction) and isa.facts(statement).control not in _STAYING


def _label_finder(body: Body) -> Callable[[int, str], int]:
    """A function that maps a statement and a label's name to the label's statement: names live in `{ }` scopes."""
    scope_of: list[int] = []
    parent = {0: 0}
    scope = 0
    labels: dict[tuple[int, str], int] = {}
    for index, statement in enumerate(body):
        if isinstance(statement, Open):
            parent[len(parent)] = scope
            scope = len(parent) - 1
        elif isinstance(statement, Close):
            scope = parent[scope]
        elif isinstance(statement, Label):
            labels[scope, statement.name] = index
        scope_of.append(scope)

    def find(statement: int, name: str) -> int:
        scope = scope_of[statement]
        while (scope, name) not in labels:
            if scope == 0:
                raise ValueError(f"no label `{name}` in the scope of statement {statement}")
            scope = parent[scope]
        return labels[scope, name]

    return find
