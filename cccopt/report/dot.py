"""The control flow graphs of functions in Graphviz's language, with marked regions shaded."""

from __future__ import annotations

from collections import deque

from cccopt.analysis.cfg import Block, ControlFlowGraph, EdgeKind, build
from cccopt.ptx.ir import Body, Function, Instruction, Label, Marker, Module
from cccopt.ptx.printer import print_statement

_SHADES = ("white", "#deebf7", "#fdd0a2", "#fdae6b", "#e6550d")


def dot(module: Module) -> str:
    """One digraph with a cluster for each function that has a body.

    A block shows its instructions and markers; its shade deepens with the number of regions it begins in.
    Dashed edges fall through, solid ones are taken.
    """
    lines = ["digraph ptx {", '  node [shape=box, style=filled, fontname="monospace", fontsize=9];']
    functions = [function for function in module.functions() if function.body is not None]
    for number, function in enumerate(functions):
        lines += _cluster(number, function)
    return "\n".join([*lines, "}"]) + "\n"


def _cluster(number: int, function: Function) -> list[str]:
    body = function.body if function.body is not None else ()
    graph = build(body)
    regions = _regions_at_entry(graph, body)
    lines = [f"  subgraph cluster_{number} {{", f"    label={_quoted(function.name)};"]
    for block in graph.blocks:
        shade = _SHADES[min(len(regions.get(block.index, ())), len(_SHADES) - 1)]
        text = "".join(f"{line}\\l" for line in _lines(block, body))
        lines.append(f'    b{number}_{block.index} [fillcolor="{shade}", label={_quoted(text)}];')
    for source, target in graph.edges():
        style = "solid" if EdgeKind.TAKEN in graph.kinds[source, target] else "dashed"
        lines.append(f"    b{number}_{source} -> b{number}_{target} [style={style}];")
    return [*lines, "  }"]


def _regions_at_entry(graph: ControlFlowGraph, body: Body) -> dict[int, frozenset[int]]:
    """The regions that control is in when it enters each block, along some path from the function's entry."""
    found = {graph.entry: frozenset[int]()}
    waiting = deque([graph.entry])
    while waiting:
        block = waiting.popleft()
        inside = found[block]
        for statement in body[graph.blocks[block].start : graph.blocks[block].stop]:
            if isinstance(statement, Marker) and statement.event in ("for.begin", "if.begin"):
                inside |= {statement.region}
            elif isinstance(statement, Marker) and statement.event in ("for.end", "if.end"):
                inside -= {statement.region}
        for successor in graph.successors[block]:
            if successor not in found:
                found[successor] = inside
                waiting.append(successor)
    return found


def _lines(block: Block, body: Body) -> list[str]:
    shown = (body[index] for index in block.statements())
    return [print_statement(s).strip() for s in shown if isinstance(s, (Instruction, Label, Marker))]


def _quoted(text: str) -> str:
    escaped = text.replace('"', '\\"')
    return f'"{escaped}"'
