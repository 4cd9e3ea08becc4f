"""What tasks contribute to reductions (`cccopt.ccc.legality.reductions`), and where it is kept.

A task updates a register of its own, its *partial*, which begins with the operator's identity. In the any-lane form a
lane keeps one for the whole loop. In the owner form each thread has a slot in shared memory, and the context holds its
address. `cccopt.ccc.codegen.partial_results` has the code that brings partials to their owners.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cccopt.ccc.function.code import at, op
from cccopt.ccc.function.names import Names
from cccopt.ccc.legality.reductions import Reduction
from cccopt.ptx.ir import Instruction, Register


@dataclass(frozen=True, slots=True)
class Partial:
    """A task's part of a reduction, in ``register``; ``offset`` is the distance in bytes of its slot from the address
    that the context holds, None in the any-lane form.
    """

    reduction: Reduction
    register: Register
    offset: int | None

    @property
    def reset(self) -> Instruction:
        """Sets the partial to the operator's identity."""
        operator = self.reduction.operator
        return op(f"mov.b{operator.bits}", self.register, operator.identity)


@dataclass(frozen=True)
class Slots:
    """The owners' slots of a region: a lane's are at ``address`` plus an offset; a thread has ``stride`` bytes."""

    address: Register
    stride: int
    offsets: dict[str, int]
    """By the reduction's register, from the beginning of the block's stacks."""
    bytes: int

    def offset(self, reduction: Reduction) -> int | None:
        """The offset of a reduction's slot, None if any lane may keep its part."""
        return self.offsets.get(reduction.register)

    def setup(self, reductions: Iterable[Reduction]) -> list[Instruction]:
        """Gives the lane's own slots their initial values."""
        operators = ((r.operator, self.offset(r)) for r in reductions)
        return [
            op(f"st.shared.b{o.bits}", at(self.address, offset), o.identity)
            for o, offset in operators
            if offset is not None
        ]


def slots(reductions: Sequence[Reduction], threads: int, names: Names) -> Slots:
    """Slots for the ``reductions`` that have owners, for ``threads`` threads, at the start of the block's stacks."""
    owned = [r for r in reductions if not r.any_lane]
    stride = max((r.operator.bits // 8 for r in owned), default=4)
    offsets: dict[str, int] = {}
    offset = 0
    # Wide ones first: two narrow ones share the slot of a wide one.
    for r in sorted(owned, key=lambda r: -r.operator.bits):
        row, within = divmod(offset, stride)
        offsets[r.register] = row * stride * threads + within
        offset += r.operator.bits // 8
    rows = (offset + stride - 1) // stride
    return Slots(names.register("b32"), stride, offsets, (rows * stride * threads + 7) // 8 * 8)
