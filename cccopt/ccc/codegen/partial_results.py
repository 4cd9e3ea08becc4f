"""The code that brings contributions of tasks to reductions to where they belong (`cccopt.ccc.plan.partials`).

In the any-lane form, a lane combines its partial with its own value after the loop. In the owner form, each task ends
with an atomic on its owner's slot:

    setp.ne.b32 %q, %partial, identity;
    @%q red.shared.add.f32 [%owner+offset], %partial;

Floating-point `min` and `max` give the same bits in any order: the same number, or the canonical NaN; and a value with
which nothing is combined stays as it is. With ``.NaN``, one exception remains, because infinity is the identity there:
a NaN or (``.ftz``) a subnormal number from before the loop also stays as it is if only infinities of the identity's
sign come in. PTX does not say which NaN `min.f64` makes of two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cccopt.ccc.codegen.builder import Builder
from cccopt.ccc.function.code import at, op, predicate
from cccopt.ccc.function.graph import Branch, Jump, Nodes
from cccopt.ccc.function.names import Names
from cccopt.ccc.legality.operators import Operator
from cccopt.ccc.plan.partials import Partial, Slots
from cccopt.ptx.ir import Guard, Instruction, Register


def deposit(
    partials: Iterable[Partial], address: Register, after: str, builder: Builder, *, reset: bool
) -> tuple[Nodes, str]:
    """Nodes that give each lane's partials to the owners at ``address`` and, with ``reset``, reset them; and the name
    of the first, which is ``after`` if there is nothing to give.
    """
    nodes: Nodes = {}
    following = after
    for partial in reversed([p for p in partials if p.offset is not None]):
        reset_code = [partial.reset] if reset else []
        following = _deposit(partial, address, reset_code, following, builder, nodes)
    return nodes, following


def _deposit(
    partial: Partial,
    address: Register,
    reset: Sequence[Instruction],
    after: str,
    builder: Builder,
    nodes: Nodes,
) -> str:
    operator, mine = partial.reduction.operator, partial.register
    assert partial.offset is not None
    some, place = builder.flag(), at(address, partial.offset)
    bits, name = f"b{operator.bits}", builder.label("give")
    test = op(f"setp.ne.{bits}", some.register, mine, operator.identity)
    if operator.atomic is not None:
        code = [test, op(f"red.shared.{operator.atomic}", place, mine, guard=some), *reset]
        return builder.node(nodes, name, code, Jump(after))
    # There is no atomic for it. In each round, one of the lanes that meet at a slot wins, so all come through.
    old, new, found = (builder.register(bits) for _ in range(3))
    again, attempt, done = builder.flag(), builder.label("attempt"), builder.label("given")
    start = (test, op(f"mov.{bits}", old, operator.identity))
    builder.node(nodes, name, start, Branch(some, attempt, done))
    code = [
        op(operator.opcode, new, old, mine),
        op(f"atom.shared.cas.{bits}", found, place, old, new),
        op(f"setp.ne.{bits}", again.register, found, old),
        op(f"mov.{bits}", old, found),
    ]
    builder.node(nodes, attempt, code, Branch(again, attempt, done))
    builder.node(nodes, done, reset, Jump(after))
    return name


def put(
    operator: Operator, target: Register, part: Register, names: Names, guard: Guard | None = None
) -> list[Instruction]:
    """Combines ``part`` into ``target``, under a guard."""
    if operator.is_float_extreme:
        some, test = Guard(names.register("pred")), f"b{operator.bits}"
        if guard is None:
            code = [op(f"setp.ne.{test}", some.register, part, operator.identity)]
        else:
            code = [op(f"setp.ne.and.{test}", some.register, part, operator.identity, predicate(guard))]
        return [*code, op(operator.opcode, target, target, part, guard=some)]
    return [op(operator.opcode, target, target, part, guard=guard)]


def collect(partials: Iterable[Partial], slots: Slots, names: Names, *, header: bool) -> list[Instruction]:
    """Combines what tasks contributed into the values that lanes have after the loop and, with ``header``, into those
    with which they go on in it.
    """
    code: list[Instruction] = []
    for reduction, part in {p.reduction: p.register for p in partials}.items():
        operator, offset = reduction.operator, slots.offset(reduction)
        if offset is not None:
            part = names.register(f"b{operator.bits}")
            code.append(op(f"ld.shared.b{operator.bits}", part, at(slots.address, offset)))
        goals = sorted(reduction.at_exits | ({reduction.register} if header else frozenset()))
        code += [i for goal in goals for i in put(operator, Register(goal), part, names)]
    return code
