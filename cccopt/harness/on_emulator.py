"""A workload's builds on the emulator: one run each, counted launch by launch, results checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cccopt.emulator import Profile, Program
from cccopt.harness.builds import Builds, kernel_resources
from cccopt.harness.result import CCC, BuildResult, Counts, LaunchResult, Phase, Region
from cccopt.harness.workload import Array, Inputs, Launch, Sample, fresh_state


def run_on_emulator(
    sample: Sample, inputs: Inputs, expected: Mapping[str, Array], builds: Builds, arch: str
) -> tuple[BuildResult, ...]:
    """Run each of ``builds``. A fault in a kernel is the emulator's `CccError`."""
    return tuple(
        _run(name, ptx, sample, inputs, expected, arch, builds.regions if name == CCC else ())
        for name, ptx in builds.ptx.items()
    )


def _run(
    name: str,
    ptx: str,
    sample: Sample,
    inputs: Inputs,
    expected: Mapping[str, Array],
    arch: str,
    regions: tuple[Region, ...],
) -> BuildResult:
    program = Program(ptx, f"<{name} build of {sample.name}>")
    state = fresh_state(inputs)
    launches: list[tuple[Launch, Profile]] = []
    for launch in sample.workload.launches(state):
        profile = program.launch(launch.kernel, launch.grid, launch.block, launch.arguments)
        launches.append((launch, profile))
    wrong = sample.workload.check(state, expected)
    if wrong:
        return BuildResult(name, (), (), wrong)
    return BuildResult(
        name,
        tuple(
            LaunchResult(launch.label, launch.kernel, launch.grid, launch.block, counts_of(profile))
            for launch, profile in launches
        ),
        kernel_resources(ptx, arch, (launch for launch, _ in launches)),
        phases=tuple(_phases(regions, [profile for _, profile in launches])),
    )


def _phases(regions: tuple[Region, ...], profiles: list[Profile]) -> Iterator[Phase]:
    """The phases of the kernels that ran, 0 where no warp came by."""
    for region in regions:
        here = [profile.by_label for profile in profiles if profile.kernel == region.kernel]
        for name, labels in region.labels if here else ():
            keys = [(region.kernel, label) for label in labels]
            warps = sum(counts[key].warps for counts in here for key in keys if key in counts)
            yield Phase(region.kernel, region.region, name, warps)


def counts_of(profile: Profile) -> Counts:
    """The emulator's counters as counts; what a pass marked as its own is not useful."""
    return Counts(
        profile.warp_instructions,
        profile.thread_instructions,
        profile.thread_instructions_pred_on,
        profile.thread_instructions - profile.overhead_thread_instructions,
    )
