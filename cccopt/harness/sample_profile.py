"""A sample's profile, on which `auto` bases its decisions: its launches at a small size, on the emulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cccopt.driver import marked_ptx
from cccopt.harness.workload import Launch, Sample, State, base_state
from cccopt.region_profiles import RunProfile, profile_of

PROFILED_SIZE = "small"
SWEPT_SIZE = "sweep"
"""The size at which a sample that is swept has a launch for each point, small enough for the emulator."""


def sample_profile(
    sample: Sample,
    arch: str,
    *,
    size: str = PROFILED_SIZE,
    seed: int = 1,
    wanted: Callable[[Launch], bool] = lambda launch: True,
) -> RunProfile | None:
    """How often lanes reach the marked regions of ``sample`` in the launches that are ``wanted``; None for a sample
    without annotations.

    Raises CccError for an unknown size, and if the emulator stops.
    """
    marked = marked_ptx(sample.source, arch=arch)
    if not marked:
        return None
    state = base_state(sample.inputs(size, seed))
    return profile_of(marked, marked_launches(sample, state, wanted))


def marked_launches(
    sample: Sample, state: State, wanted: Callable[[Launch], bool] = lambda launch: True
) -> Iterator[Launch]:
    """The launches of a run of the marked build. Those that fill the inputs run as well; nothing in them is marked."""
    yield from sample.setup(state)
    yield from (launch for launch in sample.workload.launches(state) if wanted(launch))
