"""Where the warp meets: lanes that would go different ways pass one node together, with a flag and a destination.

A *whole* is code that all 32 lanes of a warp enter together: one iteration of the marked loop, or a path that the
warp runs. Lanes that arrive at a marked path in it set a flag and go to the join instead; all others come there too:

        before                          after
        A: @%p bra E;                   A:            (flag is !%p)
        P: ...                          join: vote, collect or run P, all 32 lanes
        E: C                            E: C

The join stands where the path's end leads. Each way that leaves the part of the whole ahead of it, also one that goes
elsewhere (a `continue`, the loop's exits), is led through the join with the number of its destination.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from cccopt.ccc.code import flag_op, op
from cccopt.ccc.graph import Branch, Jump, Node, Nodes, condition, reachable, retarget, targets
from cccopt.ccc.names import Names
from cccopt.ptx.ir import Guard, Instruction, Register

Build = Callable[[Guard, str], tuple[Nodes, str]]
"""From the flag of the lanes that want the path, and the node behind the site, to the site's nodes and its first."""


@dataclass(frozen=True, slots=True)
class Site:
    """A path to be replaced: its first node, its nodes, the node that its end leads to, and code that gives the
    registers of its context a value in every lane.
    """

    begin: str
    path: frozenset[str]
    end: str
    cleared: tuple[Instruction, ...] = ()


def place_site(
    nodes: Mapping[str, Node], entry: str, site: Site, build: Build, names: Names, region: int
) -> Nodes:
    """The whole ``nodes``, entered at the node ``entry``, with a site of ``build`` in place of a path.

    ``entry`` must not be in the path; code is added at its head: lanes that come to the join past the path's own way
    read the site's ``cleared`` registers too, under a false guard, and ptxas (13.0) may take any value for one that was
    never written, also where it was.
    """
    begin, end = site.begin, site.end
    rest = {name: node for name, node in nodes.items() if name not in site.path}
    behind = reachable(rest, [end])
    ahead = reachable({name: node for name, node in rest.items() if name not in behind}, [entry])

    def crosses(target: str) -> bool:
        return target == begin or target in behind or target not in nodes

    sources = [n for n in rest if n in ahead and any(crosses(t) for t in targets(rest[n].end))]
    last = rest[sources[0]] if len(sources) == 1 else None
    if last is not None and isinstance(last.end, Branch) and set(targets(last.end)) == {begin, end}:
        own, first = build(condition(last.end, begin), end)
        return {**rest, last.name: replace(last, end=Jump(first)), **own}
    flag, destination = Guard(names.register("pred")), names.register("b32")
    crossed = dict.fromkeys(t for n in sources for t in targets(rest[n].end) if crosses(t))
    elsewhere = [t for t in crossed if t not in (begin, end)]
    dispatch, behind_site = _dispatch(elsewhere, end, destination, names, region)
    own, first = build(flag, behind_site)
    out: Nodes = {**rest, **dispatch, **own}

    # One way for each target: where several ends of another path led together, they must lead together still.
    ways = {end: first}
    for target in crossed:
        if target == end:
            continue
        code = (
            op("mov.pred", flag.register, 1)
            if target == begin
            else op("mov.u32", destination, elsewhere.index(target) + 1)
        )
        node = Node(names.label("way"), (code,), Jump(first), region)
        out[node.name] = node
        ways[target] = node.name

    for node in (rest[name] for name in sources):
        if isinstance(node.end, Branch) and set(targets(node.end)) == {begin, end}:
            set_flag = flag_op(flag.register, condition(node.end, begin))
            setter = Node(names.label("flag"), (set_flag,), Jump(first), region)
            out[setter.name] = setter
            out[node.name] = replace(node, end=Jump(setter.name))
        else:
            out[node.name] = replace(node, end=retarget(node.end, lambda t: ways.get(t, t)))
    start: list[Instruction] = [*site.cleared, op("mov.pred", flag.register, 0)]
    if elsewhere:
        start.append(op("mov.u32", destination, 0))
    out[entry] = replace(out[entry], code=(*start, *out[entry].code))
    return out


def _dispatch(
    elsewhere: list[str], end: str, destination: Register, names: Names, region: int
) -> tuple[Nodes, str]:
    """Nodes that send lanes to the numbered destination, 1 being the first of ``elsewhere`` and 0 ``end``."""
    nodes: Nodes = {}
    following = end
    for place in reversed(range(len(elsewhere))):
        chosen = names.register("pred")
        test = op("setp.eq.u32", chosen, destination, place + 1)
        branch = Branch(Guard(chosen), elsewhere[place], following)
        node = Node(names.label("dispatch"), (test,), branch, region)
        nodes[node.name] = node
        following = node.name
    return nodes, following
