"""What would help if two memory accesses may not change order: only what can help these two is named."""

from __future__ import annotations

from collections.abc import Iterator

from cccopt.analysis.effects import is_pure
from cccopt.analysis.invariance import LoopInvariance
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.order import Clash
from cccopt.ptx.ir import Address, Instruction, Register

_Use = tuple[int, object]
"""A statement and an operand that it reads."""

_DEPTH = 6
"""The most definitions followed from an address."""


REMOVAL = "remove the pragma from the path if its code may run in place"
"""What always helps, unless the path is to be deferred."""


def remedies(view: View, clash: Clash, *, follows: bool) -> str:
    """What the user can do about ``clash``, as one phrase; ``follows`` says that the other access comes after the path
    in its inner iteration.
    """
    found = [*_of(view, clash, follows=follows)]
    *others, last = found if follows else [*found, REMOVAL]
    joint = "; or " if last == REMOVAL else ", or "
    return f"{', '.join(others)}{joint}{last}" if others else last


def _of(view: View, clash: Clash, *, follows: bool) -> Iterator[str]:
    if any(_only_reads(view, index) for index in (clash.deferred, clash.other)):
        yield "make the pointers provably distinct (`const __restrict__` for what is only read)"
    elif _of_two_parameters(view, clash):
        yield "declare the kernel's pointers `__restrict__` if they point to different memory"
    if follows and not _may_be_read_before(view, clash.other):
        yield "move the access into the path"
    elif not follows and all(map(view.memory.may_write, (clash.deferred, clash.other))):
        yield "make both updates the same integer atomic, and do not read its result"
    if _may_be_read_before(view, clash.other):
        yield (
            "load the value into a local variable before the loop if it does not change there (a loop bound, for"
            " example)"
        )
    if not _same_address(view, clash):
        yield "add `independent` to the path's pragma if the accesses never overlap"


def _only_reads(view: View, index: int) -> bool:
    """Whether a statement loads through a pointer that no store of the function goes through: `const __restrict__`
    would make that a promise.
    """
    memory = view.memory
    if memory.may_write(index) or "shared" in memory.spaces(index) or "local" in memory.spaces(index):
        return False
    roots = memory.roots(index)
    writers = (i for i in range(len(view.body)) if memory.may_write(i))
    return all(root.kind == "parameter" for root in roots) and all(
        roots.isdisjoint(memory.roots(writer)) for writer in writers
    )


def _of_two_parameters(view: View, clash: Clash) -> bool:
    """Whether the accesses go through different parameters of the kernel."""
    mine, other = (view.memory.roots(index) for index in (clash.deferred, clash.other))
    return mine.isdisjoint(other) and all(root.kind == "parameter" for root in mine | other)


def _may_be_read_before(view: View, index: int) -> bool:
    """Whether a load reads one address in all iterations of the loop around it."""
    address = _address(view, index)
    loop = view.innermost(view.cfg.block_of(index))
    if address is None or loop is None or view.memory.may_write(index):
        return False
    invariance = LoopInvariance(view.function, view.reaching, loop.blocks)
    return not isinstance(address.base, Register) or invariance.holds(index, address.base.name)


def _same_address(view: View, clash: Clash) -> bool:
    """Whether two accesses of one iteration surely use the same address."""
    a, b = (_address(view, index) for index in (clash.deferred, clash.other))
    if a is None or b is None or a.offset != b.offset or clash.deferred == clash.other:
        return False
    return _same_value(view, (clash.deferred, a.base), (clash.other, b.base))


def _same_value(view: View, a: _Use, b: _Use, depth: int = _DEPTH) -> bool:
    """Whether two uses surely have the same value: from the same definitions, or the same computation of the same
    values.
    """
    (at_a, x), (at_b, y) = a, b
    if not isinstance(x, Register) or not isinstance(y, Register):
        return x == y
    found, others = view.reaching.reaching(at_a, x.name), view.reaching.reaching(at_b, y.name)
    if x == y and found == others:
        return True
    if not depth or len(found) != 1 or len(others) != 1 or ENTRY in found | others:
        return False
    (i,), (j,) = found, others
    one, other = view.body[i], view.body[j]
    if not isinstance(one, Instruction) or not isinstance(other, Instruction):
        return False
    same = one.opcode == other.opcode and len(one.operands) == len(other.operands) and is_pure(one)
    pairs = zip(one.operands[1:], other.operands[1:], strict=True) if same else ()
    return same and all(_same_value(view, (i, p), (j, q), depth - 1) for p, q in pairs)


def _address(view: View, index: int) -> Address | None:
    statement = view.body[index]
    found = (
        [o for o in statement.operands if isinstance(o, Address)]
        if isinstance(statement, Instruction)
        else []
    )
    return found[0] if len(found) == 1 else None
