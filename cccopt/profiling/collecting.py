"""A run's file from what the processes of a program left: counts by place, times by kernel, and what is missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cccopt.ccc.profitability.elapsed import Elapsed
from cccopt.ccc.profitability.profile import RunProfile
from cccopt.device.facts import DeviceFacts
from cccopt.diagnostic import CccError, error
from cccopt.passes.counting.layout import of_bytes
from cccopt.profiling.candidate_counts import candidates_of, has_candidates
from cccopt.profiling.counts import counts_of, functions_of, groups_of, issues_of, notes_of, regions_of
from cccopt.profiling.elapsed import elapsed_on
from cccopt.profiling.merging import largest, merged
from cccopt.profiling.names import shown
from cccopt.profiling.run_file import FunctionRun, RunFile, UncountedKernel
from cccopt.profiling.running import KernelTime, ProgramRun, UnitCounts
from cccopt.profiling.sources import files_of, on_disk, with_sources
from cccopt.ptx.parser import parse
from cccopt.text import quantity


@dataclass(frozen=True, slots=True)
class _Launched:
    """All launches of the kernels with one name."""

    launches: int = 0
    nanoseconds: int = 0
    registers: int = 0
    shared: int = 0
    warps: int = 0
    block: tuple[int, ...] = ()
    dynamic_shared: int = 0

    def __add__(self, other: KernelTime) -> _Launched:
        return _Launched(
            self.launches + other.launches,
            self.nanoseconds + other.nanoseconds,
            max(self.registers, other.registers),
            max(self.shared, other.shared),
            self.warps + other.warps,
            largest([self.block, other.block] if self.launches else [other.block]),
            max(self.dynamic_shared, other.dynamic_shared),
        )


def run_file(counted: ProgramRun, timed: ProgramRun | None) -> RunFile:
    """The file of a run with counters and of one without, which was timed (None: there was none).

    Raises CccError if the counters are from another version of cccopt (CCC111).
    """
    known_times = () if timed is None or timed.untimed else timed.times
    elapsed = _elapsed(known_times, (timed or counted).devices)
    plain = _launched(time for time in known_times if not time.counted)
    copies = _launched(time for time in counted.times if time.counted)
    launches = {name: of.launches for name, of in copies.items()}
    units = [counts_in(unit, elapsed, launches) for unit in counted.units]
    decoded = merged(units)
    functions = decoded.functions
    others = _launched(time for time in counted.times if not time.counted)
    notes = [*decoded.notes, *counted.lost, *(timed.lost if timed else ())]
    notes += _different(plain, copies)
    functions, several = _with_times(functions, plain, copies)
    notes += several
    known = {function.name for function in functions if function.kernel}
    run = RunFile(
        runs=1,
        kernels=_without_doubtful_times(decoded.kernels, units, plain, copies),
        candidates=decoded.candidates,
        devices=tuple(sorted({unit.device for unit in counted.units})),
        functions=tuple(f for f in functions if f.warps or f.launches),
        uncounted=tuple(
            UncountedKernel(shown(name), of.launches, of.nanoseconds)
            for name, of in sorted((plain or others).items())
            if name not in known
        ),
        notes=tuple(dict.fromkeys(notes)),
        hardware=(timed or counted).devices,
    )
    return with_sources(run, on_disk(files_of(run.functions)))


def counts_in(
    unit: UnitCounts,
    times: Mapping[str, Elapsed] | None = None,
    launches: Mapping[str, int] | None = None,
) -> RunFile:
    """What a unit counted on one device. Kernels that cannot be counted are included so that they can get times.
    ``times`` are what the GPU offered while each kernel ran, ``launches`` how often it ran.
    """
    try:
        layout = of_bytes(unit.layout)
        counts, groups = counts_of(layout, unit.counts), groups_of(layout, unit.counts)
    except ValueError as problem:
        raise CccError(
            error(
                "CCC111",
                f"the counters of `{unit.name}` cannot be read",
                why=str(problem),
                help="compile it again, with the `ccc-nvcc` of this cccopt",
            )
        ) from problem
    refused = (
        FunctionRun(function.name, shown(function.name), True, unit.name, counted=False)
        for function in layout.functions
        if function.kernel and not function.counted
    )
    functions = (*functions_of(layout, counts, unit.name, groups), *refused)
    found = RunFile(functions=functions, notes=notes_of(layout, counts))
    if not layout.marked:
        return found
    marked = parse(layout.marked)
    if has_candidates(marked):
        return replace(found, candidates=candidates_of(unit.name, marked, issues_of(counts)))
    return replace(found, kernels=regions_of(marked, layout, counts, times, launches))


def _elapsed(times: Iterable[KernelTime], devices: Iterable[DeviceFacts]) -> dict[str, Elapsed]:
    """What the GPU offered while each kernel without counters ran."""
    facts = {device.name: device for device in devices}
    found: dict[str, Elapsed] = defaultdict(Elapsed)
    for time in times:
        if not time.counted and (on := facts.get(time.device)) is not None:
            found[time.name] += elapsed_on(on, time.nanoseconds, time.launches, time.warps)
    return found


def _without_doubtful_times(
    regions: RunProfile, units: Iterable[RunFile], plain: dict[str, _Launched], copies: dict[str, _Launched]
) -> RunProfile:
    """The regions, without doubtful times and launches. They are doubtful if other counts share them (kernels of the
    same name, or several processes), or if the timed run launched the kernel a different number of times.
    """
    counted = Counter(f.name for unit in units for f in unit.functions if f.kernel)
    sure = {
        name
        for name in regions.functions
        if counted[name] == 1
        and (name not in copies or name not in plain or plain[name].launches == copies[name].launches)
    }
    return RunProfile(
        {
            name: found
            if name in sure
            else {n: replace(region.untimed(), launches=0) for n, region in found.items()}
            for name, found in regions.functions.items()
        }
    )


def _launched(times: Iterable[KernelTime]) -> dict[str, _Launched]:
    found: dict[str, _Launched] = defaultdict(_Launched)
    for time in times:
        found[time.name] += time
    return dict(found)


def _with_times(
    functions: Sequence[FunctionRun], plain: dict[str, _Launched], copies: dict[str, _Launched]
) -> tuple[tuple[FunctionRun, ...], list[str]]:
    """``functions`` with what is known of their launches, and notes. CUPTI knows only names: if kernels in several
    files have the same name, the first that ran gets everything.
    """
    named: dict[str, list[FunctionRun]] = defaultdict(list)
    for function in functions:
        if function.kernel:
            named[function.name].append(function)
    result: list[FunctionRun] = []
    notes: list[str] = []
    for function in functions:
        same = named.get(function.name, [])
        ran = [one for one in same if one.warps] or same
        if not function.kernel or function is not ran[0]:
            result.append(function)
            continue
        result.append(_timed(function, plain.get(function.name), copies.get(function.name), bool(plain)))
        if len(ran) > 1 and (plain or copies):
            files = ", ".join(one.unit for one in ran)
            notes.append(
                f"`{function.shown}` is in several files ({files}): the time of all of them is attributed to the first"
            )
    return tuple(result), notes


def _timed(
    function: FunctionRun, plain: _Launched | None, copy: _Launched | None, timed: bool
) -> FunctionRun:
    if timed:
        here = plain or _Launched()
        function = replace(function, launches=here.launches, time_ns=here.nanoseconds)
    elif copy is not None:
        function = replace(function, launches=copy.launches)
    if plain is not None:
        function = replace(
            function,
            registers=plain.registers,
            shared=plain.shared,
            dynamic_shared=plain.dynamic_shared,
            launched=plain.warps,
        )
    if copy is not None:
        function = replace(function, registers_counted=copy.registers, shared_counted=copy.shared)
    ran = [each.block for each in (plain, copy) if each is not None]
    return replace(function, block=largest(ran) or None)


def _different(plain: dict[str, _Launched], copies: dict[str, _Launched]) -> list[str]:
    """Notes on kernels that both runs launched, but one of them more often."""
    return [
        f"`{shown(name)}` was launched {quantity(copies[name].launches, 'time')} with counters, and"
        f" {quantity(plain[name].launches, 'time')} without"
        for name in sorted(plain.keys() & copies.keys())
        if plain[name].launches != copies[name].launches
    ]
