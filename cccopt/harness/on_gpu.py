"""A workload's builds on a GPU: repeats start from equal inputs, builds take turns, results are checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cccopt.device.gpu import Buffer, Gpu, Kernel, Module
from cccopt.harness.builds import kernel_resources
from cccopt.harness.result import BuildResult, LaunchResult, Times
from cccopt.harness.workload import Array, Inputs, Launch, Sample, State, fresh_state

WARM_UPS = 2
REPEATS = 11


@dataclass(frozen=True, slots=True)
class _Run:
    launches: tuple[Launch, ...]
    milliseconds: tuple[float, ...]
    wrong: str


def run_on_gpu(
    gpu: Gpu,
    sample: Sample,
    inputs: Inputs,
    expected: Mapping[str, Array],
    builds: Mapping[str, str],
    repeats: int = REPEATS,
) -> tuple[BuildResult, ...]:
    """Time the launches of each of ``builds`` (name to PTX); the results of every run are checked."""
    modules = {name: gpu.load(ptx) for name, ptx in builds.items()}
    buffers = {name: gpu.upload(value) for name, value in inputs.items() if isinstance(value, np.ndarray)}
    runs: dict[str, list[_Run]] = {name: [] for name in builds}
    for _ in range(WARM_UPS + repeats):
        for name, module in modules.items():
            runs[name].append(_once(gpu, module, sample, fresh_state(inputs), buffers, expected))
    return tuple(_result(name, ptx, gpu.arch, runs[name]) for name, ptx in builds.items())


def _once(
    gpu: Gpu,
    module: Module,
    sample: Sample,
    state: State,
    buffers: Mapping[str, Buffer],
    expected: Mapping[str, Array],
) -> _Run:
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    by_identity = {id(array): buffers[name] for name, array in arrays.items()}
    for buffer in buffers.values():
        gpu.reset(buffer)
    launches: list[Launch] = []
    milliseconds: list[float] = []
    kernels: dict[str, Kernel] = {}
    for launch in sample.workload.launches(state):
        if launch.kernel not in kernels:
            kernels[launch.kernel] = module.kernel(launch.kernel)
        for name in launch.host:
            gpu.write(buffers[name], arrays[name])
        arguments = [by_identity.get(id(argument), argument) for argument in launch.arguments]
        milliseconds.append(gpu.launch(kernels[launch.kernel], launch.grid, launch.block, arguments))
        for name in launch.host:
            gpu.read(buffers[name], arrays[name])
        launches.append(launch)
    for name, array in arrays.items():
        gpu.read(buffers[name], array)
    return _Run(tuple(launches), tuple(milliseconds), sample.workload.check(state, expected))


def _result(name: str, ptx: str, arch: str, runs: list[_Run]) -> BuildResult:
    timed = runs[WARM_UPS:]
    wrong = next((run.wrong for run in runs if run.wrong), "")
    launches = timed[0].launches
    if not wrong and any(len(run.launches) != len(launches) for run in timed):
        wrong = "the number of launches differs between repeats"
    if wrong:
        return BuildResult(name, (), (), wrong)
    return BuildResult(
        name,
        tuple(
            LaunchResult(
                launch.label,
                launch.kernel,
                launch.grid,
                launch.block,
                times=Times(tuple(run.milliseconds[i] for run in timed)),
            )
            for i, launch in enumerate(launches)
        ),
        kernel_resources(ptx, arch, launches),
    )
