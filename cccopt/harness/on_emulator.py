"""A workload's builds on the emulator: one run each, counted launch by launch, results checked."""

from __future__ import annotations

from collections.abc import Mapping

from cccopt.emulator import Profile, Program
from cccopt.harness.builds import kernel_resources
from cccopt.harness.result import BuildResult, Counts, LaunchResult
from cccopt.harness.workload import Array, Inputs, Launch, Sample, fresh_state


def run_on_emulator(
    sample: Sample, inputs: Inputs, expected: Mapping[str, Array], builds: Mapping[str, str], arch: str
) -> tuple[BuildResult, ...]:
    """Run each of ``builds`` (name to PTX). A fault in a kernel is the emulator's `CccError`."""
    return tuple(_run(name, ptx, sample, inputs, expected, arch) for name, ptx in builds.items())


def _run(
    name: str, ptx: str, sample: Sample, inputs: Inputs, expected: Mapping[str, Array], arch: str
) -> BuildResult:
    program = Program(ptx, f"<{name} build of {sample.name}>")
    state = fresh_state(inputs)
    launches: list[tuple[Launch, Counts]] = []
    for launch in sample.workload.launches(state):
        profile = program.launch(launch.kernel, launch.grid, launch.block, launch.arguments)
        launches.append((launch, counts_of(profile)))
    wrong = sample.workload.check(state, expected)
    if wrong:
        return BuildResult(name, (), (), wrong)
    return BuildResult(
        name,
        tuple(
            LaunchResult(launch.label, launch.kernel, launch.grid, launch.block, counts)
            for launch, counts in launches
        ),
        kernel_resources(ptx, arch, (launch for launch, _ in launches)),
    )


def counts_of(profile: Profile) -> Counts:
    """The emulator's counters as counts; what a pass marked as its own is not useful."""
    return Counts(
        profile.warp_instructions,
        profile.thread_instructions,
        profile.thread_instructions_pred_on,
        profile.thread_instructions - profile.overhead_thread_instructions,
    )
