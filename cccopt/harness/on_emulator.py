"""A workload's builds on the emulator: one run each, counted launch by launch, results checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from cccopt.diagnostic import CccError
from cccopt.emulator import Profile, Program
from cccopt.harness.choices import BuildName
from cccopt.harness.result import BuildResult, Counts, LaunchResult, Phase, RewrittenRegion
from cccopt.harness.workload import Instance, Launch, Sample, State, arrays, base_state, run_state

OnFailure = Callable[[str, CccError], BuildResult]
"""What to do with a build that fails: given its name and the error, raise the error or make a result of it."""


def run_on_emulator(
    instance: Instance,
    builds: Mapping[str, str],
    regions: tuple[RewrittenRegion, ...] = (),
    *,
    wanted: Collection[str] | None = None,
    on_failure: OnFailure | None = None,
    began: Callable[[str], None] = lambda build: None,
) -> tuple[BuildResult, ...]:
    """Run each of ``builds`` (name to PTX), or those that are ``wanted``.

    The sample's plain build fills the inputs and runs what is not timed. ``regions`` are those of `BuildName.CCC`. A
    fault in a kernel raises the emulator's `CccError`, or goes to ``on_failure``. ``began`` is called with each build
    before its run.
    """
    sample = instance.sample
    began(sample.plain)
    plain = _program(sample, sample.plain, builds[sample.plain])
    base = base_state(instance.inputs)
    for launch in sample.setup(base):
        _launch(plain, launch)
    written = sample.written(base)
    # These arrays cannot be written, so a reference that works in place is detected.
    expected = sample.workload.reference(run_state(base, ())) if instance.has_reference else None
    found = []
    # Builds that differ only in their launches share a program.
    programs = {builds[sample.plain]: plain}
    for name in builds if wanted is None else wanted:
        state = run_state(base, written)
        began(name)
        try:
            if builds[name] not in programs:
                programs[builds[name]] = _program(sample, name, builds[name])
            program = programs[builds[name]]
            launches = list(_launches(program, plain, sample, state, name))
        except CccError as problem:
            if on_failure is None:
                raise
            found.append(on_failure(name, problem))
            continue
        if expected is None and name == sample.plain:
            expected = {key: arrays(state)[key] for key in instance.results(base)}
        ours = regions if name == BuildName.CCC else ()
        found.append(_result(name, launches, ours, instance.wrong(state, expected)))
    return tuple(found)


def _program(sample: Sample, name: str, ptx: str) -> Program:
    return Program(ptx, f"<{name} build of {sample.name}>")


def _launches(
    program: Program, plain: Program, sample: Sample, state: State, build: str
) -> Iterator[tuple[Launch, Profile]]:
    """Run the workload. The launches that are timed on a GPU are counted here."""
    for launch in sample.launches(state, build):
        if launch.timed:
            yield launch, _launch(program, launch)
        else:
            _launch(plain, launch)


def _launch(program: Program, launch: Launch) -> Profile:
    return program.launch(launch.kernel, launch.grid, launch.block, launch.arguments)


def _result(
    name: str, launches: list[tuple[Launch, Profile]], regions: tuple[RewrittenRegion, ...], wrong: str
) -> BuildResult:
    if wrong:
        return BuildResult(name, (), (), wrong)
    return BuildResult(
        name,
        tuple(
            LaunchResult(launch.label, launch.kernel, launch.grid, launch.block, counts_of(profile))
            for launch, profile in launches
        ),
        (),
        phases=tuple(_phases(regions, [profile for _, profile in launches])),
    )


def _phases(regions: Iterable[RewrittenRegion], profiles: list[Profile]) -> Iterator[Phase]:
    """The phases of the kernels that ran, with 0 for those that no warp reached."""
    for region in regions:
        here = [profile.by_label for profile in profiles if profile.kernel == region.kernel]
        for name, labels in region.labels if here else ():
            keys = [(region.kernel, label) for label in labels]
            warps = sum(counts[key].warps for counts in here for key in keys if key in counts)
            yield Phase(region.kernel, region.region, name, warps)


def counts_of(profile: Profile) -> Counts:
    """The emulator's counters as counts; instructions that a pass marked as its own are not useful."""
    return Counts(
        profile.warp_instructions,
        profile.thread_instructions,
        profile.thread_instructions_pred_on,
        profile.global_transactions,
        profile.thread_instructions - profile.overhead_thread_instructions,
    )
