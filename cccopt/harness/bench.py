"""Measure one workload before and after, on the emulator or on a GPU: build, run, check, compare."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace

from cccopt.device.gpu import open_gpu
from cccopt.harness.builds import compile_builds, kernel_resources
from cccopt.harness.choices import Platform
from cccopt.harness.on_emulator import run_on_emulator
from cccopt.harness.on_gpu import run_on_gpu
from cccopt.harness.result import BuildResult, Measurement
from cccopt.harness.workload import Sample, load

EMULATED_ARCH = "sm_90"


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """Where and what to measure.

    ``arch``: None means the GPU's own architecture, or `EMULATED_ARCH` on the emulator. ``ccc`` is the mode of the pass
    (``auto`` or ``always``), ``form`` the form that loops must take (`cccopt.toolchain.options.FORMS`). ``marked`` adds
    the build with markers and without the pass.
    """

    on: Platform = Platform.EMULATOR
    size: str = "small"
    seed: int = 1
    arch: str | None = None
    ccc: str = "always"
    form: str = "auto"
    marked: bool = True


def measure_named(name: str, options: MeasureOptions) -> Measurement:
    """Call `measure` for the workload with this name, or for the one in this folder."""
    return measure(load(name), options)


def measure(sample: Sample, options: MeasureOptions) -> Measurement:
    """Measure ``sample``. A wrong result is part of the measurement; any other failure raises `CccError`."""
    with ExitStack() as stack:
        gpu = stack.enter_context(open_gpu()) if options.on == Platform.GPU else None
        arch = options.arch or (EMULATED_ARCH if gpu is None else gpu.arch)
        instance = sample.instance(options.size, options.seed)
        builds = compile_builds(sample, arch, marked=options.marked, ccc=options.ccc, form=options.form)
        if gpu is None:
            on = "emulator (PTX)"
            results = run_on_emulator(instance, builds.ptx, builds.regions)
        else:
            on, results = gpu.name, run_on_gpu(gpu, instance, builds.ptx)
    return Measurement(
        sample.name,
        options.size,
        options.seed,
        arch,
        on,
        tuple(_with_resources(result, builds.ptx[result.name], arch) for result in results),
        builds.regions,
        builds.remarks,
    )


def _with_resources(result: BuildResult, ptx: str, arch: str) -> BuildResult:
    """The result with what ptxas reports for the kernels that ran; a void result has none."""
    kernels = tuple(dict.fromkeys(launch.kernel for launch in result.launches))
    return replace(result, resources=kernel_resources(ptx, arch, kernels)) if kernels else result
