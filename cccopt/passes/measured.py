"""What a profile says about the regions of a function."""

from __future__ import annotations

from collections.abc import Mapping

from cccopt.ccc.plan.block_size import block_threads
from cccopt.ccc.plan.devices import warps_at_once
from cccopt.ccc.profitability.profile import RegionProfile, shared_by
from cccopt.ccc.regions.marked_loops import Region
from cccopt.passes.options import Options
from cccopt.ptx.ir import Function, Module


def measured(
    module: Module, function: Function, region: Region, options: Options
) -> Mapping[int, RegionProfile] | None:
    """The counts of ``function`` in the options' profile, None if there are none. For a loop over blocks, they
    are converted to those that the rewritten loop will have.
    """
    regions = None if options.profile is None else options.profile.functions.get(function.name)
    if regions is None:
        return None
    threads, _ = block_threads(function, region)
    return shared_by(regions, warps_at_once(module, threads, options.resident))


def trips(module: Module, function: Function, region: Region, options: Options) -> Mapping[int, float]:
    """The inner iterations of a lane on average, by region, for the inner loops that lanes reached."""
    found = measured(module, function, region, options) or {}
    return {number: of.lanes / of.entered for number, of in found.items() if of.entered}
