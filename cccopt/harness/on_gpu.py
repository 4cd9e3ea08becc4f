"""A workload's builds on a GPU: repeats start from equal data, builds take turns, results are checked."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np

from cccopt.device.gpu import Gpu, Kernel
from cccopt.diagnostic import CccError
from cccopt.harness.result import BuildResult, LaunchResult, Times
from cccopt.harness.table import FEWEST_REPEATS
from cccopt.harness.workload import (
    Array,
    Instance,
    Launch,
    State,
    Zeros,
    arrays,
    base_state,
    run_state,
)

Ran = TypeVar("Ran")

WARM_UPS = 2
REPEATS = 11
LEAST_OF_LONG_ONES = 3
WHOLE_RUNS = 3
"""How often the elapsed time of a build's run is measured."""
LONG_REPEAT, ROW = 0.5, 5.0
"""In seconds: the time above which a repeat counts as long, and the time that all repeats of a build may take together.
"""


class BuildFailure(CccError):
    """The error with which a build failed on a GPU, whose context is lost with it."""

    def __init__(self, build: str, problem: CccError) -> None:
        super().__init__(*problem.diagnostics)
        self.build = build


class LoadedCode(Protocol):
    """Code on a GPU, which has a build's kernels."""

    def kernel(self, name: str) -> Kernel:
        """The kernel with this name."""


def loaded(gpu: Gpu, code: str | bytes | LoadedCode) -> LoadedCode:
    """``code`` (PTX or a cubin, unless it is loaded already) on ``gpu``. Raises `CccError` as `Gpu.load` does."""
    return gpu.load(code) if isinstance(code, (str, bytes)) else code


@dataclass(slots=True)
class LoadedBuild:
    """A build with the results of its runs: ``milliseconds`` by repeat, then by launch, and ``elapsed`` ones by run."""

    name: str
    module: LoadedCode
    kernels: dict[str, Kernel] = field(default_factory=dict)
    launches: tuple[Launch, ...] = ()
    milliseconds: list[tuple[float, ...]] = field(default_factory=list)
    elapsed: list[float] = field(default_factory=list)
    repeats: int = REPEATS
    wrong: str = ""

    def kernel(self, name: str) -> Kernel:
        """The kernel, looked up once."""
        if name not in self.kernels:
            self.kernels[name] = self.module.kernel(name)
        return self.kernels[name]


class Bench:
    """An instance of a workload on a GPU, with its inputs filled, ready to run builds. ``plain``, the code of the
    sample's plain build, runs what is not timed.

    The GPU holds one copy of read-only arrays. Those that the launches write are restored from a snapshot before every
    run.
    """

    def __init__(self, gpu: Gpu, instance: Instance, plain: str | bytes | LoadedCode) -> None:
        self._gpu, self._instance = gpu, instance
        self._sample = sample = instance.sample
        self._inputs = inputs = instance.inputs
        self._plain = LoadedBuild(sample.plain, loaded(gpu, plain))
        self._base = base_state(inputs)
        self._written = sample.written(self._base)
        self._looked_at = instance.results(self._base)
        self._buffers = {
            name: gpu.zeros(value.nbytes) if isinstance(inputs.get(name), Zeros) else gpu.upload(value)
            for name, value in arrays(self._base).items()
        }
        self._expected: Mapping[str, Array] | None = None
        self._launch_all(self._plain, sample.setup(self._base), self._base)
        self._snapshots = {name: gpu.snapshot(self._buffers[name]) for name in self._written}
        if instance.has_reference:
            self._download(self._base, self._filled())

    def _filled(self) -> Iterator[str]:
        """The arrays that ``setup`` may have written."""
        for name, value in arrays(self._base).items():
            if value.flags.writeable and hasattr(self._sample.workload, "setup"):
                yield name

    def run(self, build: LoadedBuild, *, check: bool, profile: bool = False) -> tuple[Launch, ...]:
        """Run the launches of ``build`` once, starting from the snapshot. ``check``: download and check the results.

        With ``profile``, a profiler looks at the launches that are timed.
        """
        state = self._restored()
        timed = self._launch_all(build, self._sample.launches(state, build.name), state, profile)
        build.milliseconds.append(tuple(milliseconds for _, milliseconds in timed))
        if check:
            self._check(build, state)
        return tuple(launch for launch, _ in timed)

    def time_whole(self, build: LoadedBuild, *, check: bool = False) -> None:
        """Run the launches of ``build`` once, and measure the time from the first launch to the end of the last one.
        This includes the gaps in which the host (Python) reads what it needs and prepares the next launch.
        """
        state = self._restored()
        launches = self._sample.launches(state, build.name)

        def start(launch: Launch, kernel: Kernel, arguments: Sequence[object]) -> None:
            self._gpu.start(kernel, launch.grid, launch.block, arguments)

        self._gpu.synchronize()
        # The preparation of the first launch is not part of the run: the clock starts after it.
        began: list[float] = []

        def clocked() -> Generator[Launch, None, None]:
            for launch in launches:
                began.append(time.perf_counter())
                yield launch

        for _ in self._each(build, clocked(), state, start):
            pass
        self._gpu.synchronize()
        build.elapsed.append(1e3 * (time.perf_counter() - began[0]) if began else 0.0)
        if check:
            self._check(build, state)

    def _restored(self) -> State:
        """The data as before every run, on the GPU and here: a run has its own copy of what it writes."""
        for name, snapshot in self._snapshots.items():
            self._gpu.restore(self._buffers[name], snapshot)
        state: State = {}
        for name, value in self._base.items():
            given = self._inputs.get(name)
            if name not in self._written or not isinstance(value, np.ndarray):
                state[name] = value
            elif isinstance(given, Zeros):
                state[name] = given.make()
            else:
                state[name] = value.copy()
        return state

    def _launch_all(
        self, build: LoadedBuild, launches: Generator[Launch, None, None], state: State, profile: bool = False
    ) -> list[tuple[Launch, float]]:
        """Run ``launches``; the plain build runs those that are not timed. Returns the others with milliseconds."""

        def run(launch: Launch, kernel: Kernel, arguments: Sequence[object]) -> float:
            with self._gpu.profile() if profile and launch.timed else contextlib.nullcontext():
                return self._gpu.launch(kernel, launch.grid, launch.block, arguments)

        ran = self._each(build, launches, state, run)
        return [(launch, milliseconds) for launch, milliseconds in ran if launch.timed]

    def _each(
        self,
        build: LoadedBuild,
        launches: Generator[Launch, None, None],
        state: State,
        run: Callable[[Launch, Kernel, Sequence[object]], Ran],
    ) -> Iterator[tuple[Launch, Ran]]:
        """Run ``launches`` with ``run``, and yield what it returns. What the host sees is copied before and after."""
        here = arrays(state)
        by_identity = {id(here[name]): buffer for name, buffer in self._buffers.items()}
        for launch in launches:
            for name in launch.host:
                self._gpu.write(self._buffers[name], here[name])
            arguments = [by_identity.get(id(argument), argument) for argument in launch.arguments]
            kernel = (build if launch.timed else self._plain).kernel(launch.kernel)
            ran = run(launch, kernel, arguments)
            for name in launch.host:
                self._gpu.read(self._buffers[name], here[name])
            yield launch, ran

    def _download(self, state: State, names: Iterable[str]) -> None:
        for name in names:
            self._gpu.read(self._buffers[name], arrays(state)[name])

    def _right(self, build: LoadedBuild, state: State) -> Mapping[str, Array] | None:
        """The expected results: those of the reference if there is one, else what the plain build has just left."""
        if self._instance.has_reference:
            return self._sample.workload.reference(run_state(self._base, ()))
        is_plain = build.name == self._sample.plain
        return {name: arrays(state)[name] for name in self._looked_at} if is_plain else None

    def _check(self, build: LoadedBuild, state: State) -> None:
        self._download(state, self._looked_at)
        if self._expected is None:
            self._expected = self._right(build, state)
        build.wrong = build.wrong or self._instance.wrong(state, self._expected)


def run_on_gpu(
    gpu: Gpu,
    instance: Instance,
    builds: Mapping[str, str | bytes | LoadedCode],
    began: Callable[[str], None] = lambda build: None,
    *,
    whole_runs: bool = False,
) -> tuple[BuildResult, ...]:
    """Time the launches of each of ``builds`` (name to PTX, cubin or loaded code); the sample's plain build fills the
    inputs.

    Results are checked after the first warm-up and after the last repeat; a wrong build is not run again. With
    ``whole_runs``, the elapsed time of whole runs is measured as well. ``began`` is called with each build before each
    of its runs. Raises `BuildFailure` if a build cannot be loaded or ends in a fault, and `CccError` for what is not a
    build's fault.
    """
    name_of_plain = instance.sample.plain
    with _blamed(name_of_plain, began):
        plain = builds[name_of_plain]
        assert isinstance(plain, (str, bytes))
        bench = Bench(gpu, instance, plain)
    ready = []
    for name, code in builds.items():
        with _blamed(name, began):
            ready.append(LoadedBuild(name, loaded(gpu, code)))
    for number in range(WARM_UPS):
        for build in _right(ready):
            start = time.perf_counter()
            with _blamed(build.name, began):
                build.launches = bench.run(build, check=number == 0)
            build.repeats = repeats_for(time.perf_counter() - start)
        for build in ready:
            build.milliseconds.clear()
    for number in range(max(build.repeats for build in ready)):
        for build in _right(ready):
            if number < build.repeats:
                with _blamed(build.name, began):
                    bench.run(build, check=number == build.repeats - 1)
    for number in range(WHOLE_RUNS if whole_runs else 0):
        for build in _right(ready):
            with _blamed(build.name, began):
                bench.time_whole(build, check=number == WHOLE_RUNS - 1)
    varies = getattr(instance.sample.workload, "LAUNCHES_VARY", False)
    return tuple(_result(build, varies) for build in ready)


def repeats_for(seconds: float) -> int:
    """The number of repeats of a build if one takes ``seconds``, including its preparation.

    `REPEATS`, or fewer if only fewer fit into `ROW` seconds; but at least `FEWEST_REPEATS` or, if one takes more than
    `LONG_REPEAT` seconds, `LEAST_OF_LONG_ONES`.
    """
    fitting = int(ROW / seconds) - WARM_UPS if seconds else REPEATS
    least = LEAST_OF_LONG_ONES if seconds > LONG_REPEAT else FEWEST_REPEATS
    return max(least, min(REPEATS, fitting))


def _right(builds: Iterable[LoadedBuild]) -> Iterator[LoadedBuild]:
    return (build for build in builds if not build.wrong)


@contextlib.contextmanager
def _blamed(name: str, began: Callable[[str], None]) -> Iterator[None]:
    """Call ``began``, then raise any `CccError` in here as a failure of the build ``name``."""
    began(name)
    try:
        yield
    except CccError as problem:
        raise BuildFailure(name, problem) from problem


def _result(build: LoadedBuild, varies: bool) -> BuildResult:
    launches = build.launches
    elapsed = Times(tuple(build.elapsed)) if build.elapsed else None
    if varies and not build.wrong:
        ran = tuple(LaunchResult(one.label, one.kernel, one.grid, one.block) for one in launches)
        times = Times(tuple(map(sum, build.milliseconds)))
        return BuildResult(build.name, ran, (), run_times=times, elapsed=elapsed)
    if not build.wrong and any(len(repeat) != len(launches) for repeat in build.milliseconds):
        build.wrong = "the number of launches differs between repeats"
    if build.wrong:
        return BuildResult(build.name, (), (), build.wrong)
    return BuildResult(
        build.name,
        tuple(
            LaunchResult(launch.label, launch.kernel, launch.grid, launch.block, times=Times(milliseconds))
            for launch, milliseconds in zip(launches, zip(*build.milliseconds, strict=True), strict=True)
        ),
        (),
        elapsed=elapsed,
    )
