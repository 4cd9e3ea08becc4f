"""A function body as labeled blocks with explicit ends: the form in which code is copied and edges are moved.

    @%p1 bra  J;            Node("n", code, Branch(@%p1, taken="J", otherwise="m"))
    add.s32 ...;            Node("m", ...)
    J:

`from_body` and `to_body` convert to this form and back; the statement list remains the program. Declarations at the
top level are kept apart so that copied blocks declare nothing twice. ``.loc`` is sticky: a block begins with the one in
force.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from cccopt.analysis import cfg as control_flow
from cccopt.ccc.function.names import Names
from cccopt.ptx.ir import (
    Body,
    BranchTargets,
    Close,
    Guard,
    Instruction,
    Label,
    Location,
    Marker,
    Open,
    Operand,
    RegisterDeclaration,
    Statement,
    Symbol,
    Variable,
)
from cccopt.ptx.isa import Control, facts


@dataclass(frozen=True, slots=True)
class Jump:
    """Control goes to ``target``."""

    target: str


@dataclass(frozen=True, slots=True)
class Branch:
    """Lanes for which ``guard`` holds go to ``taken``, the others to ``otherwise``.

    ``opcode`` is ``bra`` or `UNIFORM`.
    """

    guard: Guard
    taken: str
    otherwise: str
    opcode: str = "bra"


@dataclass(frozen=True, slots=True)
class IndexedJump:
    """``brx.idx``: each lane goes to the target that its index selects."""

    opcode: str
    index: Operand
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """Control leaves the function through ``instruction`` (``ret``, ``exit``, ``trap``) or past the end of the body."""

    instruction: Instruction | None


UNIFORM = "bra.uni"
"""The opcode of a branch on which all lanes of the warp agree."""

End: TypeAlias = "Jump | Branch | IndexedJump | Leave"


@dataclass(frozen=True, slots=True)
class Node:
    """A block: straight-line code and one end. ``overhead`` is the region for which a pass added it, None for the
    program's own. ``phase`` says what a block that is kept does (``push_1``): its label is printed even if nothing
    jumps to it, so that profiles can name it.
    """

    name: str
    code: tuple[Statement, ...]
    end: End
    overhead: int | None = None
    phase: str = ""


Nodes: TypeAlias = "dict[str, Node]"


@dataclass(frozen=True)
class Graph:
    """Nodes by name in layout order, the entry's name, and the declarations of the body's top level."""

    entry: str
    nodes: Mapping[str, Node]
    declarations: tuple[Statement, ...] = field(default=())


def targets(end: End) -> tuple[str, ...]:
    """The nodes that ``end`` may lead to, without repeats."""
    match end:
        case Jump(target):
            return (target,)
        case Branch(_, taken, otherwise):
            return (taken,) if taken == otherwise else (taken, otherwise)
        case IndexedJump(_, _, names):
            return tuple(dict.fromkeys(names))
        case Leave():
            return ()


def retarget(end: End, where: Callable[[str], str]) -> End:
    """``end`` with each target replaced by ``where(target)``."""
    match end:
        case Jump(target):
            return Jump(where(target))
        case Branch():
            return replace(end, taken=where(end.taken), otherwise=where(end.otherwise))
        case IndexedJump():
            return replace(end, targets=tuple(where(name) for name in end.targets))
        case Leave():
            return end


def condition(branch: Branch, target: str) -> Guard:
    """The condition under which ``branch`` goes to ``target``, one of its two."""
    return Guard(branch.guard.register, branch.guard.negated != (branch.taken != target))


def reachable(nodes: Mapping[str, Node], starts: Iterable[str], stop: Collection[str] = ()) -> set[str]:
    """The names in ``nodes`` that ``starts`` reach (themselves included) without going past those in ``stop``."""
    seen: set[str] = set()
    work = [name for name in starts if name in nodes]
    while work:
        name = work.pop()
        if name in seen:
            continue
        seen.add(name)
        if name not in stop:
            work += [target for target in targets(nodes[name].end) if target in nodes]
    return seen


def leading(nodes: Mapping[str, Node], ends: Iterable[str]) -> set[str]:
    """The names in ``nodes`` that reach one of ``ends`` (themselves included)."""
    sources = predecessors(nodes)
    seen: set[str] = set()
    work = [name for name in ends if name in nodes]
    while work:
        name = work.pop()
        if name not in seen:
            seen.add(name)
            work += sources.get(name, ())
    return seen


def predecessors(nodes: Mapping[str, Node]) -> dict[str, list[str]]:
    """For each target of an end, the names of the nodes that lead to it, in layout order."""
    found: dict[str, list[str]] = {name: [] for name in nodes}
    for node in nodes.values():
        for target in targets(node.end):
            found.setdefault(target, []).append(node.name)
    return found


def split_at_markers(body: Body, names: Names) -> Body:
    """``body`` with a label before each begin marker and after each end marker, and at each block's head."""
    out: list[Statement] = []
    pending = False
    for statement in _balanced_scopes(body):
        marker = statement.event if isinstance(statement, Marker) else ""
        begins = marker.endswith(".begin") and not marker.startswith("overhead")
        if (pending or begins) and not isinstance(statement, Label):
            out.append(Label(names.label("block")))
        pending = marker.endswith(".end") and not marker.startswith("overhead")
        out.append(statement)
    labelled: list[Statement] = []
    begins_block = True  # as in `control_flow.split`, whose blocks are not needed here
    for statement in out:
        if begins_block and not isinstance(statement, Label):
            labelled.append(Label(names.label("block")))
        labelled.append(statement)
        begins_block = isinstance(statement, Instruction) and control_flow.ends_block(statement)
    return tuple(labelled)


def _balanced_scopes(body: Body) -> Iterator[Statement]:
    """The body with labels that nothing jumps to (from debug information) moved after the scope that they are in."""
    if not _labels_in_scopes(body):
        yield from body
        return
    goals = {goal for s in body if isinstance(s, BranchTargets) for goal in s.targets}
    goals |= {o.name for s in body if isinstance(s, Instruction) for o in s.operands if isinstance(o, Symbol)}
    depth = 0
    waiting: list[Statement] = []
    for statement in body:
        depth += isinstance(statement, Open) - isinstance(statement, Close)
        if depth and isinstance(statement, Label) and statement.name not in goals:
            waiting.append(statement)
            continue
        yield statement
        if not depth:
            yield from waiting
            waiting = []


def _labels_in_scopes(body: Body) -> bool:
    depth = 0
    for statement in body:
        depth += isinstance(statement, Open) - isinstance(statement, Close)
        if depth and isinstance(statement, Label):
            return True
    return False


def from_body(body: Body, flow: control_flow.ControlFlowGraph, names: Names) -> Graph:
    """The graph of a body with the control flow ``flow``, each of whose blocks begins with a label
    (`split_at_markers`).
    """
    lists = {s.label: s.targets for s in body if isinstance(s, BranchTargets)}
    canonical = {
        statement.name: block.label
        for block in flow.blocks
        for statement in body[block.start : block.stop]
        if isinstance(statement, Label) and block.label is not None
    }
    depth = 0
    location: Location | None = None
    declarations: list[Statement] = []
    nodes: Nodes = {}
    for block in flow.blocks:
        if block.label is None:
            raise ValueError("a block without a label")
        last = control_flow.ending(body, block)
        code: list[Statement] = [] if location is None else [location]
        for index in range(block.start, block.stop - (last is not None)):
            statement = body[index]
            depth += isinstance(statement, Open) - isinstance(statement, Close)
            location = statement if isinstance(statement, Location) else location
            if depth == 0 and isinstance(statement, RegisterDeclaration | Variable):
                declarations.append(statement)
            elif not isinstance(statement, BranchTargets) and index != block.start:
                code.append(statement)
        following = flow.blocks[block.index + 1].label if block.index + 1 < len(flow.blocks) else None
        end, extra = _end(last, following, lists, canonical, names)
        nodes[block.label] = Node(block.label, tuple(code), end)
        nodes.update((node.name, node) for node in extra)
    entry = flow.blocks[0].label
    assert entry is not None
    return Graph(entry, nodes, tuple(declarations))


def _end(
    last: Instruction | None,
    following: str | None,
    lists: Mapping[str, tuple[str, ...]],
    canonical: Mapping[str, str],
    names: Names,
) -> tuple[End, tuple[Node, ...]]:
    """The end of a block, and the nodes that it needs: leaving under a guard requires one of its own."""
    extra: tuple[Node, ...] = ()
    if following is None:
        off = Node(names.label("end"), (), Leave(None))
        following, extra = off.name, (off,)
    if last is None:
        return Jump(following), extra
    control = facts(last).control
    unguarded: End
    if control is Control.BRANCH:
        (target,) = (o.name for o in last.operands if isinstance(o, Symbol))
        goal = canonical[target]
        if last.guard is not None:
            return Branch(last.guard, goal, following), extra
        return Jump(goal), ()
    if control is Control.INDEXED:
        index, label = last.operands
        assert isinstance(label, Symbol)
        # The tasks of a warp need not agree on the target, even if its lanes did.
        unguarded = IndexedJump(
            last.opcode.removesuffix(".uni"), index, tuple(canonical[name] for name in lists[label.name])
        )
    else:
        unguarded = Leave(replace(last, guard=None))
    if last.guard is None:
        return unguarded, ()
    own = Node(names.label("leave"), (), unguarded)
    return Branch(last.guard, own.name, following), (*extra, own)


def balanced(node: Node) -> bool:
    """Whether each scope that opens in the node closes in it."""
    depth = 0
    for statement in node.code:
        depth += isinstance(statement, Open) - isinstance(statement, Close)
        if depth < 0:
            return False
    return depth == 0


def copy(
    nodes: Iterable[Node], names: Names, rewrite: Callable[[Instruction], Instruction]
) -> tuple[Nodes, Mapping[str, str]]:
    """Copies of ``nodes`` under fresh names, with the edges among them, and instructions passed through ``rewrite``;
    and the name of each node's copy.
    """
    originals = list(nodes)
    name_of = {node.name: names.label(node.phase or "copy") for node in originals}

    def end_of(node: Node) -> End:
        end = retarget(node.end, lambda name: name_of.get(name, name))
        if isinstance(end, Branch):
            guarded = rewrite(Instruction(end.opcode, (Symbol(end.taken),), end.guard))
            assert guarded.guard is not None
            return replace(end, guard=guarded.guard)
        if isinstance(end, IndexedJump):
            indexed = rewrite(Instruction(end.opcode, (end.index, Symbol("_"))))
            return replace(end, index=indexed.operands[0])
        return end

    copies = {
        name_of[node.name]: replace(
            node,
            name=name_of[node.name],
            code=tuple(
                rewrite(s) if isinstance(s, Instruction) else s for s in node.code if not isinstance(s, Label)
            ),
            end=end_of(node),
        )
        for node in originals
    }
    return copies, name_of


def led(nodes: Mapping[str, Node], where: Mapping[str, str]) -> Nodes:
    """``nodes`` with each edge to a key of ``where`` redirected to its value."""
    return {n: replace(node, end=retarget(node.end, lambda t: where.get(t, t))) for n, node in nodes.items()}


def program_order(nodes: Mapping[str, Node], chosen: Collection[str]) -> list[str]:
    """The ``chosen`` names in the order of ``nodes``."""
    return [name for name in nodes if name in chosen]
