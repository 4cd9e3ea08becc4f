"""The loaders on a GPU, with PyCUDA, CuPy and cuda.core as they are, and the page that shows them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cccopt
from cccopt.pycuda import SourceModule
from tests.mix import DEFINES, REFUSED, SOURCE, c_names, expected, values

pytestmark = pytest.mark.gpu

ROUNDS = 50
GRID, BLOCK = 64, 128
PAGE = (Path(__file__).resolve().parents[2] / "docs/python.md").read_text()


@pytest.fixture(autouse=True)
def _ccc_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ``ccc-nvcc`` on PATH, for where cccopt is imported from a checkout and not installed."""
    program = tmp_path / "bin" / "ccc-nvcc"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path[:0] = {sys.path!r}\n"
        "from cccopt.cli.nvcc import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("PYCUDA_CACHE_DIR", str(tmp_path / "cache"))


def outcomes(report: dict[str, Any]) -> list[str]:
    return [region["outcome"] for unit in report["units"] for region in unit["regions"]]


# --- PyCUDA ----------------------------------------------------------------------------------------------------


@pytest.fixture
def context() -> Iterator[None]:
    """The GPU's primary context, which CuPy and cuda.core use as well."""
    driver = pytest.importorskip("pycuda.driver")
    driver.init()
    primary = driver.Device(0).retain_primary_context()
    primary.push()
    yield
    primary.pop()


def mixed_by_pycuda(module: Any) -> bool:
    """Whether the module's kernel computes what it should."""
    from pycuda import gpuarray

    given = values()
    result = gpuarray.zeros(given.size, np.uint32)
    mix = module.get_function("mix")
    n, rounds = np.int32(given.size), np.int32(ROUNDS)
    mix(n, rounds, gpuarray.to_gpu(given), result, grid=(GRID, 1), block=(BLOCK, 1, 1))
    return np.array_equal(result.get(), expected(given, ROUNDS))


def test_pycuda(context: None, tmp_path: Path) -> None:
    from pycuda.compiler import SourceModule as Plain

    on = SourceModule(SOURCE, options=DEFINES, ccc="always")
    off = SourceModule(SOURCE, options=DEFINES, ccc="off")
    assert len(list((tmp_path / "cache").iterdir())) == 2
    assert isinstance(on, Plain)
    assert mixed_by_pycuda(on)
    assert mixed_by_pycuda(off)
    assert outcomes(on.report) == ["rewritten"] * 2
    assert "ccc_whole" in on.ptx
    assert "ccc_whole" not in off.ptx
    assert on.get_function("mix").shared_size_bytes > off.get_function("mix").shared_size_bytes == 0
    # PyCUDA's own kernels are in there as well by now.
    cached = sorted((tmp_path / "cache").iterdir())
    assert mixed_by_pycuda(SourceModule(SOURCE, options=DEFINES, ccc="always"))
    assert sorted((tmp_path / "cache").iterdir()) == cached


def test_pycuda_with_more_arguments(context: None, tmp_path: Path) -> None:
    (tmp_path / "factor.h").write_text("#define FACTOR 1664525u\n")
    module = SourceModule(
        '#include "factor.h"\n' + c_names(SOURCE),
        no_extern_c=True,
        arch="compute_90",
        code="sm_90",
        include_dirs=[str(tmp_path)],
        ccc="always",
    )
    assert mixed_by_pycuda(module)
    assert outcomes(module.report) == ["rewritten"] * 2


def test_pycuda_says_what_is_refused(context: None) -> None:
    from pycuda.driver import CompileError

    with pytest.raises(CompileError) as caught:
        SourceModule(REFUSED, options=DEFINES)
    assert re.search(r"error\[CCC036\](.|\n)*kernel\.cu:8:5", caught.value.stderr)
    with pytest.warns(UserWarning, match=r"warning\[CCC036\]"):
        module = SourceModule(REFUSED, options=DEFINES, keep_going=True)
    assert module.get_function("mix").shared_size_bytes == 0


def test_pycuda_without_a_context() -> None:
    pytest.importorskip("pycuda.driver")
    done = python("from cccopt.pycuda import SourceModule; SourceModule('')", Path.cwd())
    assert re.search(r"error\[CCC093\](.|\n)*pycuda\.autoprimaryctx", done.stderr)


# --- CuPy ------------------------------------------------------------------------------------------------------


def mixed_by_cupy(kernel: Any) -> bool:
    cupy = pytest.importorskip("cupy")
    given = values()
    result = cupy.zeros(given.size, cupy.uint32)
    kernel((GRID,), (BLOCK,), (np.int32(given.size), np.int32(ROUNDS), cupy.asarray(given), result))
    return np.array_equal(result.get(), expected(given, ROUNDS))


def test_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    text = "#include <cupy/complex.cuh>\n" + c_names(SOURCE)
    on = cccopt.cupy_module(text, options=DEFINES, ccc="always")
    off = cccopt.cupy_module(text, options=DEFINES, ccc="off")
    assert isinstance(on, cupy.RawModule)
    kernels = [module.get_function("mix") for module in (on, off)]
    assert [mixed_by_cupy(kernel) for kernel in kernels] == [True, True]
    assert kernels[0].shared_size_bytes > kernels[1].shared_size_bytes == 0
    assert outcomes(on.report) == ["rewritten"] * 2
    assert [unit["arch"] for unit in on.report["units"]] == [
        f"compute_{cupy.cuda.Device().compute_capability}"
    ]


def test_cupy_takes_code_for_an_older_gpu() -> None:
    # The fat binary holds PTX as well.
    module = cccopt.cupy_module(c_names(SOURCE), options=DEFINES, arch="sm_80", ccc="always")
    assert mixed_by_cupy(module.get_function("mix"))


# --- cuda.core -------------------------------------------------------------------------------------------------


def test_cuda_core() -> None:
    """NVRTC's PTX of a template, marked by `cccopt.annotate`."""
    core = pytest.importorskip("cuda.core")
    cupy = pytest.importorskip("cupy")
    device = core.Device()
    device.set_current()
    text = SOURCE.replace("__global__", "template <unsigned FACTOR> __global__")
    marked = cccopt.annotate(text, "mix.cu").text
    program = core.Program(marked, "c++", core.ProgramOptions(arch=f"sm_{device.arch}"))
    plain = program.compile("ptx", name_expressions=("mix<1664525u>",))
    made = cccopt.optimize(plain, ccc="always")
    assert type(made) is type(plain)
    assert b"ccc_whole" in made.code
    given = cupy.asarray(values())
    kernels = [code.get_kernel("mix<1664525u>") for code in (made, plain)]
    for kernel in kernels:
        result = cupy.zeros_like(given)
        cupy.cuda.Device().synchronize()
        stream = device.create_stream()
        numbers = np.int32(given.size), np.int32(ROUNDS)
        config = core.LaunchConfig(grid=GRID, block=BLOCK)
        core.launch(stream, config, kernel, *numbers, given.data.ptr, result.data.ptr)
        stream.sync()
        np.testing.assert_array_equal(result.get(), expected(given.get(), ROUNDS))
    assert kernels[0].attributes.shared_size_bytes > kernels[1].attributes.shared_size_bytes == 0


# --- the page --------------------------------------------------------------------------------------------------


def python(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, whose contexts end with it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("library", ["pycuda", "cupy", "cuda.core"])
def test_snippets_run(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    (snippet,) = (text for text in blocks("python") if re.search(rf"^(from|import) {library}\b", text, re.M))
    (kernel,) = blocks("cuda")
    (tmp_path / "mix.cu").write_text(kernel)
    done = python(snippet, tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"rewritten$|^[1-9]\d*$", done.stdout.strip()), done.stdout


def blocks(language: str) -> list[str]:
    """The page's blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
