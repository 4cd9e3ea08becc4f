"""The block for which the stacks of a region must be large enough, and the shared memory that it has for them."""

from __future__ import annotations

from math import prod

from cccopt.ccc.function.calls import static_shared_bytes
from cccopt.ccc.function.mangled import source_name
from cccopt.ccc.function.view import View
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import refuse
from cccopt.ccc.plan.stack import SLOTS
from cccopt.ccc.regions.marked_loops import Region
from cccopt.diagnostic import Diagnostic
from cccopt.ptx.ir import Directive, Function

SHARED_BYTES = 49152
"""Static shared memory of a block, in bytes (CUDA C++ Programming Guide, compute capabilities)."""

LARGEST_BLOCK = 1024


def block_threads(function: Function, region: Region) -> tuple[int, tuple[Diagnostic, ...]]:
    """The largest block for which the stacks must be large enough, and a remark if its size is not known."""
    for directive in function.directives:
        if directive.name in (".reqntid", ".maxntid"):
            return prod(int(a) for a in directive.arguments), ()
    # A function's callers decide its block, and may launch one of any size.
    if region.annotation.block is not None and function.kind == "entry":
        return prod(region.annotation.block), ()
    help = "add `__launch_bounds__(N)` to the kernel, or `block(N)` to the pragma"
    why = "shared memory that is reserved but not used lowers occupancy"
    if function.kind != "entry":
        help = "let the function be inlined into a kernel that states its block size"
        if region.annotation.block is not None:
            why += "; the clause `block` applies only in kernels, because a function's callers decide its block size"
    return LARGEST_BLOCK, (
        refusal.remark(
            "CCC052",
            f"`{source_name(function.name)}` does not state its block size: stacks are sized for"
            f" {LARGEST_BLOCK} threads",
            region.annotation.place,
            why,
            help,
        ),
    )


def whole_warps(threads: int) -> int:
    """``threads`` rounded up to whole warps."""
    return (threads + SLOTS - 1) // SLOTS * SLOTS


def check_size(view: View, region: Region, needed: int, slots: int) -> None:
    """Raises Refusal if the stacks, including ``slots`` bytes for reductions, need more bytes than a block has left."""
    left = SHARED_BYTES - static_shared_bytes(view.module, view.function)
    if slots > left:
        raise refuse(refusal.SLOTS, region.annotation.place, f"{slots:,}", f"{left:,}")
    if needed > left:
        raise refuse(refusal.STACK, region.annotation.place, f"{needed:,}", f"{left:,}")


def block_limit(view: View, region: Region) -> tuple[Directive, ...]:
    """The directive that makes launches fail if their block is larger than `block(...)`, which sized the stacks."""
    known = any(d.name in (".maxntid", ".reqntid") for d in view.function.directives)
    if known or region.annotation.block is None or view.function.kind != "entry":
        return ()
    return (Directive(".maxntid", tuple(str(size) for size in region.annotation.block)),)
