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
from dataclasses import replace

from cccopt.ccc.code import op
from cccopt.ccc.graph import Branch, Jump, Node, Nodes, reachable, retarget, targets
from cccopt.ccc.names import Names
from cccopt.ptx.ir import Guard, Instruction, Register

Build = Callable[[Guard, str], tuple[Nodes, str]]
"""From the flag of the lanes that want the path, and the node behind the site, to the site's nodes and its first."""


def place_site(
    nodes: Mapping[str, Node],
    entry: str,
    begin: str,
    path: frozenset[str],
    end: str,
    build: Build,
    names: Names,
    region: int,
) -> Nodes:
    """The whole ``nodes``, entered at the node ``entry``, with ``path`` replaced by a site ahead of ``end``.

    ``begin`` is the path's first node. ``entry`` must not be in the path; code is added at its head.
    """
    rest = {name: node for name, node in nodes.items() if name not in path}
    behind = reachable(rest, [end])
    ahead = reachable({name: node for name, node in rest.items() if name not in behind}, [entry])

    def crosses(target: str) -> bool:
        return target == begin or target in behind or target not in nodes

    sources = [n for n in rest if n in ahead and any(crosses(t) for t in targets(rest[n].end))]
    if len(sources) == 1 and set(targets(rest[sources[0]].end)) == {begin, end}:
        (name,) = sources
        branch = rest[name].end
        assert isinstance(branch, Branch)
        site, first = build(_flag_of(branch, begin), end)
        return {**rest, name: replace(rest[name], end=Jump(first)), **site}
    flag = Guard(names.register("pred"))
    elsewhere = [
        t
        for t in dict.fromkeys(t for n in sources for t in targets(rest[n].end))
        if crosses(t) and t not in (begin, end)
    ]
    destination = names.register("b32")
    dispatch, behind_site = _dispatch(elsewhere, end, destination, names, region)
    site, first = build(flag, behind_site)
    out: Nodes = {**rest, **dispatch, **site}
    for name in sources:
        node = rest[name]
        if isinstance(node.end, Branch) and set(targets(node.end)) == {begin, end}:
            own = _flag_of(node.end, begin)
            setter = Node(names.label("flag"), (_set_flag(flag, own),), Jump(first), region)
            out[setter.name] = setter
            out[name] = replace(node, end=Jump(setter.name))
            continue
        ways: dict[str, str] = {}
        for target in targets(node.end):
            if not crosses(target):
                ways[target] = target
            elif target == end:
                ways[target] = first
            else:
                code = (
                    op("mov.pred", flag.register, 1)
                    if target == begin
                    else op("mov.u32", destination, elsewhere.index(target) + 1)
                )
                way = Node(names.label("way"), (code,), Jump(first), region)
                out[way.name] = way
                ways[target] = way.name
        out[name] = replace(node, end=retarget(node.end, ways.__getitem__))
    start: list[Instruction] = [op("mov.pred", flag.register, 0)]
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


def _flag_of(branch: Branch, begin: str) -> Guard:
    """The condition under which ``branch`` goes to ``begin``."""
    negated = branch.guard.negated != (branch.taken != begin)
    return Guard(branch.guard.register, negated)


def _set_flag(flag: Guard, value: Guard) -> Instruction:
    return op("not.pred" if value.negated else "mov.pred", flag.register, value.register)


def hold(flag: Guard, names: Names) -> tuple[Instruction, Guard]:
    """The copy of a flag into a register of its own, for use where its register may have been overwritten."""
    own = Guard(names.register("pred"))
    return _set_flag(own, flag), own
