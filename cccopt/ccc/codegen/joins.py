"""Where the warp reconverges: lanes that would go different ways pass one node together, with a flag and a destination.

*Converged code* is code that all 32 lanes of a warp enter together: one iteration of the marked loop, or a path that
the warp runs. Lanes that arrive at a marked path in it set a flag and go to the join instead; all others also come
there:

        before                          after
        A: @%p bra E;                   A:            (flag is !%p)
        P: ...                          join: vote, collect or run P, all 32 lanes
        E: C                            E: C

The join is where the path's end leads. Each edge that leaves the part of the code before it, including one that goes
elsewhere (a `continue`, the loop's exits), is led through the join with the number of its destination.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from cccopt.ccc.codegen.builder import Builder
from cccopt.ccc.function.code import flag_op, op
from cccopt.ccc.function.graph import Branch, Jump, Node, Nodes, condition, reachable, retarget, targets
from cccopt.ptx.ir import Guard, Instruction, Register

Build = Callable[[str], tuple[Nodes, str]]
"""Takes the node after the join; returns the join's nodes and the first of them."""


@dataclass(frozen=True, slots=True)
class Join:
    """The join of paths of which a lane reaches at most one: their first nodes, all their nodes, the node that their
    ends lead to, and what the warp runs where the converged code begins. A lane that reaches a path's first node runs
    what ``arrive`` says.

    ``start`` gives the registers of the contexts a value in every lane. Lanes that reach the join past the paths also
    read them, under a false guard; if a register is unwritten in some lanes, ptxas (13.0) may assume any value for it,
    even in lanes that wrote it.
    """

    begins: tuple[str, ...]
    paths: frozenset[str]
    end: str
    start: tuple[Instruction, ...] = ()
    arrive: Mapping[str, Instruction] = field(default_factory=dict)


def insert_flagged_join(
    nodes: Mapping[str, Node],
    entry: str,
    join: Join,
    build: Callable[[Guard, str, bool], tuple[Nodes, str]],
    builder: Builder,
) -> Nodes:
    """`insert_join` for one path: ``build`` also gets the flag of the lanes that want it, and whether all do.

    If a single branch decides, its condition is the flag.
    """
    (begin,) = join.begins
    rest = {name: node for name, node in nodes.items() if name not in join.paths}
    sources, _ = _sources(nodes, entry, join)
    last = rest[sources[0]] if len(sources) == 1 else None
    if last is not None and isinstance(last.end, Branch) and set(targets(last.end)) == {begin, join.end}:
        own, first = build(condition(last.end, begin), join.end, False)
        return {**rest, last.name: replace(last, end=Jump(first)), **own}
    flag = builder.flag()
    if last is not None and last.end == Jump(begin):
        own, first = build(flag, join.end, True)
        out = {**rest, last.name: replace(last, end=Jump(first)), **own}
        start = (*join.start, op("mov.pred", flag.register, 1))
        out[entry] = replace(out[entry], code=(*start, *out[entry].code))
        return out
    start = (*join.start, op("mov.pred", flag.register, 0))
    flagged = replace(join, start=start, arrive={begin: op("mov.pred", flag.register, 1)})

    def shortened(node: Node) -> Instruction | None:
        if isinstance(node.end, Branch) and set(targets(node.end)) == {begin, join.end}:
            return flag_op(flag.register, condition(node.end, begin))
        return None

    return insert_join(nodes, entry, flagged, lambda after: build(flag, after, False), builder, shortened)


def insert_join(
    nodes: Mapping[str, Node],
    entry: str,
    join: Join,
    build: Build,
    builder: Builder,
    shortened: Callable[[Node], Instruction | None] = lambda node: None,
) -> Nodes:
    """The converged code ``nodes``, entered at the node ``entry``, with the nodes of ``build`` in place of the join's
    paths.

    ``entry`` must not be in a path; code is added at its head. ``shortened`` gives the code that may replace a node's
    branch.
    """
    end = join.end
    rest = {name: node for name, node in nodes.items() if name not in join.paths}
    sources, crosses = _sources(nodes, entry, join)
    destination = builder.register()
    crossed = dict.fromkeys(t for n in sources for t in targets(rest[n].end) if crosses(t))
    elsewhere = [t for t in crossed if t not in (*join.begins, end)]
    dispatch, next_node = _dispatch(elsewhere, end, destination, builder)
    own, first = build(next_node)
    out: Nodes = {**rest, **dispatch, **own}

    # One route for each target: if several ends of another path led to one node, they must still do so.
    routes = {end: first}
    for target in crossed:
        if target == end:
            continue
        code = join.arrive.get(target)
        if code is None:
            code = op("mov.u32", destination, elsewhere.index(target) + 1)
        routes[target] = builder.node(out, builder.label("way"), [code], Jump(first))

    for node in (rest[name] for name in sources):
        short = shortened(node)
        if short is not None:
            setter = builder.node(out, builder.label("flag"), [short], Jump(first))
            out[node.name] = replace(node, end=Jump(setter))
        else:
            out[node.name] = replace(node, end=retarget(node.end, lambda t: routes.get(t, t)))
    start = list(join.start)
    if elsewhere:
        start.append(op("mov.u32", destination, 0))
    out[entry] = replace(out[entry], code=(*start, *out[entry].code))
    return out


def _sources(nodes: Mapping[str, Node], entry: str, join: Join) -> tuple[list[str], Callable[[str], bool]]:
    """The nodes before the join from which lanes reach it, and whether an edge to a node leads out of that part."""
    rest = {name: node for name, node in nodes.items() if name not in join.paths}
    after = reachable(rest, [join.end])
    before = reachable({name: node for name, node in rest.items() if name not in after}, [entry])

    def crosses(target: str) -> bool:
        return target in join.begins or target in after or target not in nodes

    return [n for n in rest if n in before and any(crosses(t) for t in targets(rest[n].end))], crosses


def _dispatch(elsewhere: list[str], end: str, destination: Register, builder: Builder) -> tuple[Nodes, str]:
    """Nodes that send lanes to the numbered destination, 1 being the first of ``elsewhere`` and 0 ``end``."""
    nodes: Nodes = {}
    following = end
    for index in reversed(range(len(elsewhere))):
        chosen = builder.flag()
        test = op("setp.eq.u32", chosen.register, destination, index + 1)
        branch = Branch(chosen, elsewhere[index], following)
        following = builder.node(nodes, builder.label("dispatch"), [test], branch)
    return nodes, following
