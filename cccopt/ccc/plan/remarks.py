"""What a plan has to say to the user, besides what becomes of each path."""

from __future__ import annotations

from collections.abc import Iterable

from cccopt.ccc.function.calls import shared_variables
from cccopt.ccc.function.mangled import source_name
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.reductions import Reduction
from cccopt.ccc.outcome import refusal
from cccopt.ccc.plan.pool import Claim
from cccopt.ccc.regions.marked_loops import Region
from cccopt.diagnostic import Diagnostic


def reordered(region: Region, sums: Iterable[Reduction]) -> tuple[Diagnostic, ...]:
    """Remarks for REASSOCIATES: the user should know why last digits change."""
    signs = dict.fromkeys(r.operator.sign for r in sums if r.operator.reassociates)
    return tuple(
        refusal.remark(
            "CCC029",
            f"floating-point values are combined by `{sign}` in a different order",
            region.annotation.place,
            "the clause `reduce` allows it; results may differ in their last digits",
        )
        for sign in signs
    )


def stack_remarks(view: View, region: Region, needed: int) -> tuple[Diagnostic, ...]:
    """What the user should know about the memory that the stacks take, and about how often the new loop will run."""
    found: list[Diagnostic] = []
    if needed and any("extern" in v.linkage for v in shared_variables(view.module, view.function)):
        found.append(
            refusal.remark(
                "CCC056",
                f"the most dynamic shared memory that a launch of `{source_name(view.function.name)}` can request"
                f" drops by {needed:,} bytes",
                region.annotation.place,
                "the context stacks are static shared memory, and both come out of one block's budget",
                "use smaller blocks, and state their size (`__launch_bounds__(N)`, or `block(N)` in the pragma)",
            )
        )
    select = view.block_of_name[region.select]
    around = [loop for loop in view.loops if select in loop.blocks and loop.header != select]
    if any(a in view.uniformity.varying_branches for loop in around for a, _ in loop.exits):
        found.append(
            refusal.remark(
                "CCC055",
                "the marked loop is inside a loop that lanes leave in different iterations",
                region.annotation.place,
                "a warp with lanes missing runs the original loop; `cccopt bench` reports how often",
                "mark the outer loop instead, or make its trip count uniform",
            )
        )
    return tuple(found)


def pool_remarks(region: Region, claim: Claim | None) -> tuple[Diagnostic, ...]:
    """What the user should know about stacks in global memory."""
    if claim is None:
        return ()
    pool = claim.pool
    return (
        refusal.remark(
            "CCC027",
            f"tasks of this loop wait in global memory: {pool.entry_bytes:,} bytes per warp",
            region.annotation.place,
            f"the module reserves {pool.bytes:,} bytes of device memory for this: room for"
            f" {pool.entries:,} warps",
            "shared memory is faster: with a smaller block, fewer paths or fewer values, the stacks may fit there",
        ),
    )
