"""Profiles for `auto`: marked PTX run on the emulator, counted region by region."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from cccopt.ccc.profitability.profile import RunProfile
from cccopt.ccc.profitability.region_counts import measure
from cccopt.emulator import Profile, Program
from cccopt.passes.pipeline import asks_for_loops, prepared
from cccopt.ptx.parser import parse

__all__ = ["RunProfile", "of_run", "profile_of", "program_of"]


class KernelLaunch(Protocol):
    """One kernel launch; numpy arrays among the arguments are device buffers, updated in place."""

    @property
    def kernel(self) -> str: ...
    @property
    def grid(self) -> tuple[int, int, int]: ...
    @property
    def block(self) -> tuple[int, int, int]: ...
    @property
    def arguments(self) -> Sequence[Any]: ...


def profile_of(marked: str, launches: Iterable[KernelLaunch]) -> RunProfile:
    """Count on the emulator how often warps and lanes reach each marked region.

    Args:
        marked: PTX with marks, not rewritten (`cccopt.driver.marked_ptx`).
        launches: The launches to run, for instance `cccopt.harness.workload.Launch` objects. A launch runs before the
            next is requested.

    Returns:
        A profile for `cccopt.compile` and `cccopt.transform`; two profiles can be added with ``+``.

    Raises:
        EmulatorError: For what a kernel does wrong (CCC070 to CCC079).
        PtxError: For text that is not PTX.
    """
    program = program_of(marked)
    found = RunProfile()
    for launch in launches:
        run = program.launch(launch.kernel, launch.grid, launch.block, launch.arguments)
        found += of_run(program, run)
    return found


def program_of(marked: str, name: str = "<ptx>") -> Program:
    """Marked PTX, ready to be run for a profile, with the loops that its markers ask for (``grid``, ``recursive``).

    Raises PtxError for text that is not PTX.
    """
    module = parse(marked, name)
    return Program(prepared(module) if asks_for_loops(module) else marked, name)


def of_run(program: Program, run: Profile) -> RunProfile:
    """The profile of one launch of ``program`` that counted ``run``."""
    launches = {function.name: run.launches for function in program.module.functions()}
    return measure(program.module, run.issues, run.sectors_by_function, launches=launches)
