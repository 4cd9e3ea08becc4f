"""Checks a sample's annotations: runs its launches, marked and not rewritten, on the emulator."""

from __future__ import annotations

from cccopt.checking import NOTHING, Checked, Checker
from cccopt.diagnostic import CccError, error
from cccopt.driver import marked_ptx
from cccopt.harness.sample_profile import marked_launches
from cccopt.harness.workload import Sample, State, arrays, base_state


def check_sample(sample: Sample, size: str, *, seed: int = 1, arch: str = "sm_90") -> Checked:
    """Find where iterations of the sample's marked loops touch the same memory, over all launches at ``size``.

    Raises CccError for an unknown size, for a source without annotations (CCC103), and if the emulator stops.
    """
    state = base_state(sample.inputs(size, seed))
    marked = marked_ptx(sample.source, arch=arch, nvcc_options=("-lineinfo",))
    if not marked:
        raise CccError(error(NOTHING, f"`{sample.name}` has no annotation", why="there is nothing to check"))
    checker = Checker(marked, sample.name)
    for launch in marked_launches(sample, state):
        names = [_name(state, argument) for argument in launch.arguments]
        checker.launch(
            launch.kernel, launch.grid, launch.block, launch.arguments, label=launch.label, names=names
        )
    return checker.result()


def _name(state: State, argument: object) -> str:
    """The name of an argument in the state; empty for a number."""
    return next((name for name, array in arrays(state).items() if array is argument), "")
