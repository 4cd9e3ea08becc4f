"""The drain: it runs what is left on the stacks after the loop, outer paths first, and ends with a barrier.

left:   top == 0: go on
drain:  lanes below top pop a task each and run it
"""

from __future__ import annotations

from collections.abc import Iterable

from cccopt.ccc.codegen.claim import release
from cccopt.ccc.codegen.partial_results import collect
from cccopt.ccc.codegen.region_code import RegionCode
from cccopt.ccc.codegen.sorting import SortingCode
from cccopt.ccc.codegen.task_copies import TaskCopies
from cccopt.ccc.function.code import FULL_WARP, op
from cccopt.ccc.function.graph import UNIFORM, Branch, Jump, Nodes
from cccopt.ccc.plan.plan import PathPlan
from cccopt.ccc.plan.stack import Value, clear


def drain(
    code: RegionCode, copies: TaskCopies, sortings: Iterable[SortingCode], final: str, nodes: Nodes
) -> str:
    """Adds the drain, which goes on to ``final``; returns the name of its first node."""
    build, plan = code.builder, code.plan
    # Lanes that ran a popped task are not those that own it, and what follows may read what it wrote.
    last = [op("bar.warp.sync", FULL_WARP), *release(plan.claim, plan.lane, build)]
    last += collect(plan.partials, plan.slots, build.names, header=plan.split)
    following = build.node(nodes, build.label("drained"), last, Jump(final))
    for sorting in reversed([*sortings]):
        following = sorting.drain(copies.task, following, nodes)
    for path in reversed(plan.all_paths()):
        if plan.has_stack(path):
            following = _drain_path(code, copies, path, following, nodes)
    return following


def _drain_path(code: RegionCode, copies: TaskCopies, path: PathPlan, following: str, nodes: Nodes) -> str:
    """Adds the drain of one path's stack; returns the name of its first node."""
    build, lane = code.builder, code.plan.lane
    some, mine = build.flag(), build.flag()
    first = [op("bar.warp.sync", FULL_WARP), op("setp.lt.s32", mine.register, lane, path.top)]
    if path.children:
        # Inner votes need the whole warp: lanes without a task come along, idle.
        together = copies.remaining_together if path.path.is_loop else copies.task
        begin, task = together(path, following, mine)
        values = path.stack.layout.values()
        first += [clear(Value(path.registers.of(v.name).name, v.type)) for v in values]
        first += path.stack.pop(path.registers.of, path.registers.of, lane, mine)
        first += [*path.context.restore, *path.results.resets]
        pop = build.phase(nodes, path.phase("drain"), first, Jump(begin))
    else:
        apart = copies.remaining if path.path.is_loop else copies.task
        begin, task = apart(path, following)
        load = path.stack.pop(path.registers.of, path.registers.of, lane, None)
        load += [*path.context.restore, *path.results.resets]
        own_task = build.node(nodes, build.label("last"), load, Jump(begin))
        pop = build.phase(nodes, path.phase("drain"), first, Branch(mine, own_task, following))
    nodes.update(task)
    test = [op("setp.ne.s32", some.register, path.top, 0)]
    return build.node(nodes, build.label("left"), test, Branch(some, pop, following, UNIFORM))
