"""What tasks contribute to reductions (`cccopt.ccc.legality.reductions`), and how it gets to where it belongs.

A task updates a register of its own, its *partial*, which begins with the operator's identity. In the any-lane form a
lane keeps one for the whole loop and puts it into its own value behind the loop. In the owner form each thread has a
slot in shared memory; the context holds its address, and each task ends with an atomic on it:

    setp.ne.b32 %q, %partial, identity;
    @%q red.shared.add.f32 [%owner+offset], %partial;

`min` and `max` in floating point keep their bits: in any order they give the same number, or the canonical NaN, and a
value into which nothing is put stays as it is. With ``.NaN``, one exception is left, for infinity is the identity
there: a NaN or (``.ftz``) a subnormal number from ahead of the loop stays as it is, too, where nothing but infinities
of the identity's sign come in. PTX does not say what NaN `min.f64` makes of two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cccopt.ccc.function.code import at, op, predicate
from cccopt.ccc.function.graph import Branch, Jump, Node, Nodes
from cccopt.ccc.function.names import Names
from cccopt.ccc.legality.operators import Operator
from cccopt.ccc.legality.reductions import Reduction
from cccopt.ptx.ir import Guard, Instruction, Register


@dataclass(frozen=True, slots=True)
class Partial:
    """A task's part of a reduction, in ``register``; ``offset`` is the place of its slot from the address that the
    context holds, in bytes, None in the any-lane form.
    """

    reduction: Reduction
    register: Register
    offset: int | None

    @property
    def reset(self) -> Instruction:
        """Makes the partial the operator's identity."""
        operator = self.reduction.operator
        return op(f"mov.b{operator.bits}", self.register, operator.identity)


@dataclass(frozen=True)
class Slots:
    """The owners' slots of a region: ``address`` plus an offset is the lane's own; a thread has ``stride`` bytes."""

    address: Register
    stride: int
    offsets: dict[str, int]
    """By the reduction's register, from the block's stacks on."""
    bytes: int

    def offset(self, reduction: Reduction) -> int | None:
        """The place of a reduction's slot, None where any lane may keep its part."""
        return self.offsets.get(reduction.register)

    def setup(self, reductions: Iterable[Reduction]) -> list[Instruction]:
        """Gives the lane's own slots their first values."""
        operators = ((r.operator, self.offset(r)) for r in reductions)
        return [
            op(f"st.shared.b{o.bits}", at(self.address, offset), o.identity)
            for o, offset in operators
            if offset is not None
        ]


def slots(reductions: Sequence[Reduction], threads: int, names: Names) -> Slots:
    """Slots of the owners among ``reductions`` for ``threads`` threads, at the beginning of the block's stacks."""
    owned = [r for r in reductions if not r.any_lane]
    stride = max((r.operator.bits // 8 for r in owned), default=4)
    offsets: dict[str, int] = {}
    place = 0
    # Wide ones first: two narrow ones share the place of a wide one.
    for r in sorted(owned, key=lambda r: -r.operator.bits):
        row, within = divmod(place, stride)
        offsets[r.register] = row * stride * threads + within
        place += r.operator.bits // 8
    rows = (place + stride - 1) // stride
    return Slots(names.register("b32"), stride, offsets, (rows * stride * threads + 7) // 8 * 8)


def deposit(
    partials: Iterable[Partial], address: Register, behind: str, names: Names, region: int, *, reset: bool
) -> tuple[Nodes, str]:
    """Nodes that give each lane's partials to the owners at ``address``, and with ``reset`` begin them anew; the name
    of the first, which is ``behind`` where there is nothing to give.
    """
    nodes: Nodes = {}
    following = behind
    for partial in reversed([p for p in partials if p.offset is not None]):
        following = _deposit(partial, address, following, names, region, reset, nodes)
    return nodes, following


def _deposit(
    partial: Partial, address: Register, behind: str, names: Names, region: int, reset: bool, nodes: Nodes
) -> str:
    operator, mine = partial.reduction.operator, partial.register
    assert partial.offset is not None
    some, place = Guard(names.register("pred")), at(address, partial.offset)
    bits, name = f"b{operator.bits}", names.label("give")
    test = op(f"setp.ne.{bits}", some.register, mine, operator.identity)
    after = [partial.reset] if reset else []
    if operator.atomic is not None:
        code = [test, op(f"red.shared.{operator.atomic}", place, mine, guard=some), *after]
        nodes[name] = Node(name, tuple(code), Jump(behind), region)
        return name
    # No atomic does it. One lane of those that meet at a slot wins each round, so that all come through.
    old, new, found = (names.register(bits) for _ in range(3))
    again, attempt, done = Guard(names.register("pred")), names.label("attempt"), names.label("given")
    nodes[name] = Node(
        name, (test, op(f"mov.{bits}", old, operator.identity)), Branch(some, attempt, done), region
    )
    code = [
        op(operator.opcode, new, old, mine),
        op(f"atom.shared.cas.{bits}", found, place, old, new),
        op(f"setp.ne.{bits}", again.register, found, old),
        op(f"mov.{bits}", old, found),
    ]
    nodes[attempt] = Node(attempt, tuple(code), Branch(again, attempt, done), region)
    nodes[done] = Node(done, tuple(after), Jump(behind), region)
    return name


def put(
    operator: Operator, target: Register, part: Register, names: Names, guard: Guard | None = None
) -> list[Instruction]:
    """Puts ``part`` into ``target``, under a guard."""
    if operator.is_float_extreme:
        some, test = Guard(names.register("pred")), f"b{operator.bits}"
        if guard is None:
            code = [op(f"setp.ne.{test}", some.register, part, operator.identity)]
        else:
            code = [op(f"setp.ne.and.{test}", some.register, part, operator.identity, predicate(guard))]
        return [*code, op(operator.opcode, target, target, part, guard=some)]
    return [op(operator.opcode, target, target, part, guard=guard)]


def collect(partials: Iterable[Partial], slots: Slots, names: Names, *, header: bool) -> list[Instruction]:
    """Puts what tasks contributed into the values that lanes have behind the loop, and with ``header`` into those with
    which they go on in it.
    """
    code: list[Instruction] = []
    for reduction, part in {p.reduction: p.register for p in partials}.items():
        operator, offset = reduction.operator, slots.offset(reduction)
        if offset is not None:
            part = names.register(f"b{operator.bits}")
            code.append(op(f"ld.shared.b{operator.bits}", part, at(slots.address, offset)))
        goals = sorted(reduction.behind | ({reduction.register} if header else frozenset()))
        code += [i for goal in goals for i in put(operator, Register(goal), part, names)]
    return code
