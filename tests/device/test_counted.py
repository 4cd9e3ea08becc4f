"""Counted kernels on a GPU: the counts are the emulator's, by instruction, and the results those of the plain ones."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cccopt
from cccopt.device.gpu import Gpu, open_gpu
from cccopt.emulator import Profile, Program
from cccopt.passes.instrument import COUNTED, MODULE_HEAD, Counting, instrumented
from cccopt.profiling.counts import FunctionCounts, by_name, counts_of
from cccopt.profiling.emulated import of_launch
from cccopt.profiling.modules import Profiling
from cccopt.profiling.run_file import RunFile
from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from tests.device.programs import ProgramOnGpu
from tests.device.test_random_kernels import exact
from tests.emulator.kernels import kernel as ptx_kernel
from tests.fuzz.gpu_runner import STACK
from tests.kernels.generators.kernels import NAME, from_seed
from tests.mix import DEFINES, SOURCE, c_names, expected, values
from tests.passes.instrumenting import HOW, counts_in
from tests.passes.test_instrument import SHAPES

pytestmark = pytest.mark.gpu

GRID, BLOCK, COUNT, ROUNDS = 4, 128, 3000, 7
TEXT = c_names(SOURCE)


class CountedOnGpu(ProgramOnGpu):
    """A module with counters on a GPU."""

    def __init__(self, gpu: Gpu, module: Module, how: Counting) -> None:
        new, self.layout = instrumented(module, how)
        super().__init__(gpu, exact(print_module(new)))

    def counts(self) -> Mapping[str, FunctionCounts]:
        """What was counted, by function."""
        import pycuda.driver as driver

        head = np.zeros(4, np.uint64)
        driver.memcpy_dtoh(head, self._loaded.handle.get_global(MODULE_HEAD)[0])
        raw = np.zeros(int(head[1]) // 8, np.uint64)
        driver.memcpy_dtoh(raw, int(head[0]))
        return by_name(counts_of(self.layout, raw.tobytes()))


def lanes(counts: Mapping[str, FunctionCounts]) -> dict[str, list[int]]:
    return {name: [unit.lanes for unit in function.units] for name, function in counts.items()}


def by_emulator(
    module: Module, how: Counting, name: str, grid: Any, block: Any, args: list[Any]
) -> Mapping[str, FunctionCounts]:
    """What the counters of the copy say after a launch on the emulator, which is what the emulator itself counts."""
    new, layout = instrumented(module, how)
    program = Program(new)
    program.launch(name + COUNTED, grid, block, args)
    return by_name(counts_of(layout, counts_in(program, layout)))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", ["", "grid", "recursive"])
def test_random_kernels(how: str, kind: str) -> None:
    """Results are those of the plain kernel, and lanes the emulator's. Which lanes run together is up to the GPU."""
    with open_gpu() as gpu:
        import pycuda.driver as driver

        # Counted copies of functions that call themselves take more of it than the default has.
        driver.Context.set_limit(driver.limit.STACK_SIZE, STACK)
        for seed in range(100, 116):
            case = from_seed(seed, kind)
            if case.sets_flag:
                continue
            module = parse(exact(case.ptx))
            plain, counted = case.arguments(), case.arguments()
            ProgramOnGpu(gpu, module).launch(NAME, case.grid, case.block, plain)
            program = CountedOnGpu(gpu, module, HOW[how])
            program.launch(NAME + COUNTED, case.grid, case.block, counted)
            assert [a.tobytes() for a in plain if isinstance(a, np.ndarray)] == [
                a.tobytes() for a in counted if isinstance(a, np.ndarray)
            ], seed
            want = by_emulator(module, HOW[how], NAME, case.grid, case.block, case.arguments())
            have = program.counts()
            assert lanes(have) == lanes(want), seed
            for unit in (unit for function in have.values() for unit in function.units):
                assert unit.lanes / 32 <= unit.warps <= unit.lanes, seed
            gc.collect()


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str) -> None:
    """Kernels whose lanes leave in odd places end, with the lanes that the emulator counts."""
    module = parse(ptx_kernel(SHAPES[shape]))
    args: list[Any] = [np.zeros(4096, np.uint32)]
    with open_gpu() as gpu:
        for how in HOW.values():
            program = CountedOnGpu(gpu, module, how)
            program.launch("k" + COUNTED, 3, 70, [args[0].copy()])
            want = by_emulator(module, how, "k", 3, 70, [args[0].copy()])
            assert lanes(program.counts()) == lanes(want)


def lines(run: RunFile) -> dict[int, tuple[int, int]]:
    """Warp instructions and lanes by line of the text."""
    found: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for line in (line for function in run.functions for line in function.lines):
        warps, lanes = found[line.line]
        found[line.line] = (warps + line.warps, lanes + line.lanes)
    return dict(found)


def lines_by_emulator(folder: Path) -> dict[int, tuple[int, int]]:
    """The same from the emulator, for the kernel of `tests.mix`."""
    source = folder / "mix.cu"
    source.write_text(TEXT)
    ptx = cccopt.compile(source, ccc="off", nvcc_options=[*DEFINES, "-lineinfo"]).ptx
    program = Program(parse(ptx))
    given, result = values(COUNT), np.zeros(COUNT, np.uint32)
    profile: Profile = program.launch("mix", GRID, BLOCK, [COUNT, ROUNDS, given, result])
    return lines(of_launch(program, profile, str(source)))


def check(counting: Profiling, result: Any, folder: Path) -> None:
    assert np.array_equal(result, expected(values(COUNT), ROUNDS))
    assert lines(counting.run) == lines_by_emulator(folder)
    assert [f.name for f in counting.run.functions] == ["mix"]


def test_pycuda(tmp_path: Path) -> None:
    driver = pytest.importorskip("pycuda.driver")
    from cccopt.pycuda import SourceModule

    driver.init()
    primary = driver.Device(0).retain_primary_context()
    primary.push()
    try:
        from pycuda import gpuarray

        result = gpuarray.zeros(COUNT, np.uint32)
        with cccopt.profile(tmp_path / "mix.ccc.json") as counting:
            module = SourceModule(TEXT, no_extern_c=True, options=DEFINES, ccc="off", cache_dir=False)
            arguments = (np.int32(COUNT), np.int32(ROUNDS), gpuarray.to_gpu(values(COUNT)), result)
            module.get_function("mix")(*arguments, grid=(GRID, 1), block=(BLOCK, 1, 1))
        check(counting, result.get(), tmp_path)
        assert "mix" in (tmp_path / "mix.ccc.json").read_text()
    finally:
        primary.pop()


def test_cupy(tmp_path: Path) -> None:
    cupy = pytest.importorskip("cupy")
    result = cupy.zeros(COUNT, cupy.uint32)
    with cccopt.profile() as counting:
        module = cccopt.cupy_module(TEXT, options=DEFINES, ccc="off")
        arguments = (np.int32(COUNT), np.int32(ROUNDS), cupy.asarray(values(COUNT)), result)
        module.get_function("mix")((GRID,), (BLOCK,), arguments)
    check(counting, result.get(), tmp_path)


def test_cuda_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NVRTC's code, whose lines are those of a file that is there."""
    core, cupy = pytest.importorskip("cuda.core"), pytest.importorskip("cupy")
    monkeypatch.chdir(tmp_path)
    Path("mix.cu").write_text(TEXT)
    device = core.Device()
    device.set_current()
    text = cccopt.annotate(TEXT, "mix.cu").text
    define = ("FACTOR", "1664525u")
    options = core.ProgramOptions(name="mix.cu", arch=f"sm_{device.arch}", define_macro=define, lineinfo=True)
    given, result = cupy.asarray(values(COUNT)), cupy.zeros(COUNT, cupy.uint32)
    cupy.cuda.Device().synchronize()
    with cccopt.profile() as counting:
        code = cccopt.optimize(core.Program(text, "c++", options).compile("ptx"))
        stream = device.create_stream()
        config = core.LaunchConfig(grid=GRID, block=BLOCK)
        numbers = np.int32(COUNT), np.int32(ROUNDS)
        core.launch(stream, config, code.get_kernel("mix"), *numbers, given.data.ptr, result.data.ptr)
    assert np.array_equal(result.get(), expected(values(COUNT), ROUNDS))
    (function,) = counting.run.functions
    assert function.name == "mix"
    assert function.warps > 1000
    assert {Path(line.file).name for line in function.lines} == {"mix.cu"}
    assert list(counting.run.kernels.functions) == ["mix"]
