"""Pure instructions whose results are no longer read are dropped from rewritten functions.

        sqrt.rn.f32 %f3, %f2;       -> (nothing)        each task computes the root from %f2, and no lane before it

Collecting leaves such code in the program: where tasks now compute a value themselves (`cccopt.ccc.plan.sinking`),
nothing reads what the code before the branch used to compute for them. ptxas would drop it anyway; with it gone, counts
of PTX instructions are those of the program that runs.

An instruction is dropped if the instruction table calls it pure and the registers that it writes are dead after it.
Safety: EXACT.
Functions without added code are left as they are.
"""

from __future__ import annotations

from dataclasses import replace

from cccopt.analysis import cfg as control_flow
from cccopt.analysis import effects
from cccopt.analysis.liveness import liveness
from cccopt.passes.options import Options
from cccopt.passes.result import PassResult
from cccopt.ptx.ir import Body, Function, Item, Marker, Module, Statement


def run(module: Module, options: Options) -> PassResult:
    """Drop dead code from the functions that a pass has added code to; EXACT."""
    items: list[Item] = []
    for item in module.items:
        if isinstance(item, Function) and any(map(_is_added, item.body or ())):
            item = replace(item, body=_alive(item.body or ()))
        items.append(item)
    return PassResult(Module(tuple(items)))


def _is_added(statement: Statement) -> bool:
    return isinstance(statement, Marker) and statement.event == "overhead.begin"


def _alive(body: Body) -> Body:
    """The body without dead code, and without code whose results only dead code reads."""
    while True:
        dead = _dead(body)
        if not dead:
            return body
        body = tuple(statement for index, statement in enumerate(body) if index not in dead)


def _dead(body: Body) -> set[int]:
    cfg = control_flow.build(body)
    live_out = liveness(cfg, body).live_out
    found: set[int] = set()
    for block in cfg.blocks:
        if block.index not in cfg.reachable:
            continue
        # What the rest of the block needs and kills; anything else is live if it is live at the block's end.
        needed: set[str] = set()
        killed: set[str] = set()
        for index in reversed(block.statements()):
            statement = body[index]
            effect = effects.of(statement)
            if (
                effect.writes
                and needed.isdisjoint(effect.writes)
                and effects.is_pure(statement)
                and not any(live_out.holds(block.index, name) for name in effect.writes - killed)
            ):
                found.add(index)
                continue
            killed |= effect.kills
            needed -= effect.kills
            needed |= effect.needs
    return found
