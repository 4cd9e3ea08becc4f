"""PyCUDA and CuPy with ``ccc-nvcc`` as their compiler, by the snippets of docs/build-systems.md, on a GPU.

Each step is a process of its own, as for a user: both packages remember what a compiler said to the process.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.builds import PAGE, make_command

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]

KERNEL = """\
extern "C" __global__ void __launch_bounds__(128)
work(int n, const unsigned* __restrict__ in, unsigned* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
#pragma ccc if
    if (in[i] % 8 == 3) {
      unsigned x = in[i];
      for (int k = 0; k < 40; ++k) x = (x ^ (x >> 15)) * 2246822519u;
      out[i] = x;
    }
  }
}
"""

INPUT = """
import io
import warnings
from pathlib import Path

import numpy as np

source = Path("kernel.cu").read_text()
n = 10_000
values = np.random.default_rng(1).integers(0, 2**32, n, dtype=np.uint32)
x = values.copy()
for _ in range(40):
    x = (x ^ (x >> np.uint32(15))) * np.uint32(2246822519)
expected = np.where(values % 8 == 3, x, np.uint32(0))
"""

# PyCUDA makes a warning of whatever the compiler prints.
PYCUDA = """
import pycuda.autoinit
import pycuda.driver as driver

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
{snippet}
assert not said, said[0].message
out = np.zeros(n, np.uint32)
work = module.get_function("work")
work(np.int32(n), driver.In(values), driver.InOut(out), grid=(8, 1), block=(128, 1, 1))
np.testing.assert_array_equal(out, expected)
"""

CUPY = """
if True:
{snippet}
said = io.StringIO()
module.compile(log_stream=said)
assert not said.getvalue(), said.getvalue()
out = cupy.asarray(np.zeros(n, np.uint32))
work = module.get_function("work")
work((8,), (128,), (np.int32(n), cupy.asarray(values), out))
np.testing.assert_array_equal(cupy.asnumpy(out), expected)
"""

Step = Callable[..., None]


def snippet(package: str) -> str:
    """The page's snippet for ``package``, indented."""
    (text,) = re.findall(rf"^```python\n((?:from|import) {package}\b.*?)^```$", PAGE.read_text(), re.M | re.S)
    return textwrap.indent(text, "    ")


@pytest.fixture
def step(tmp_path: Path) -> Step:
    """Runs a script in a folder with the kernel, with ``ccc-nvcc`` on PATH and these variables."""
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "cache").mkdir()
    command = make_command(tmp_path / "bin")

    def run(script: str, **variables: str) -> None:
        (tmp_path / "report.json").unlink(missing_ok=True)
        path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [sys.executable, "-c", INPUT + script],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, **variables},
            text=True,
            capture_output=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    return run


def outcomes(folder: Path) -> list[str]:
    """What became of the regions that the last step compiled; empty when it compiled none."""
    report = folder / "report.json"
    units = json.loads(report.read_text())["units"] if report.exists() else []
    return [region["outcome"] for unit in units for region in unit["regions"]]


def test_pycuda(step: Step, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    block = snippet("pycuda")
    always = block.replace('"--ccc=always"', f'"--ccc=always", "--ccc-report={tmp_path}/report.json"')
    assert always != block

    def run(text: str, **variables: str) -> set[bytes]:
        step(PYCUDA.format(snippet=text), PYCUDA_CACHE_DIR=str(cache), **variables)
        return {path.read_bytes() for path in cache.glob("*.cubin")}

    first = run(always)
    assert outcomes(tmp_path) == ["rewritten", "rewritten"]
    assert len(first) == 1
    # Kept: nothing is compiled.
    assert run(always) == first
    assert outcomes(tmp_path) == []
    # Another cccopt, other options.
    run(always, PRETENDED_VERSION="99.0")
    assert outcomes(tmp_path) == ["rewritten", "rewritten"]
    both = run(block.replace("--ccc=always", "--ccc=off"))
    assert first < both
    assert len(list(cache.glob("*.cubin"))) == 3


def test_cupy(step: Step, tmp_path: Path) -> None:
    cupy = pytest.importorskip("cupy")
    try:
        cupy.cuda.nvrtc.getVersion()
    except RuntimeError as problem:
        pytest.skip(f"CuPy finds no NVRTC, which it needs to key its cache: {problem}")
    cache = tmp_path / "cache"
    block = snippet("cupy")
    always = block.replace('"--ccc=always"', f'"--ccc=always", "--ccc-report={tmp_path}/report.json"')
    assert always != block

    def run(text: str, nvcc: str = "ccc-nvcc", **variables: str) -> int:
        """The number of modules in the cache behind this step (CuPy's own kernels are kept there, too)."""
        kept = {"CUPY_CACHE_DIR": str(cache), "CUPY_CACHE_SAVE_CUDA_SOURCE": "1"}
        step(CUPY.format(snippet=text), NVCC=nvcc, **kept, **variables)
        return sum("#pragma ccc" in path.read_text() for path in cache.glob("*.cu"))

    assert run(always) == 1
    assert outcomes(tmp_path) == ["rewritten", "rewritten"]
    assert run(always) == 1
    assert outcomes(tmp_path) == []
    assert run(always, PRETENDED_VERSION="99.0") == 2
    assert outcomes(tmp_path) == ["rewritten", "rewritten"]
    # Options in NVCC, which CuPy sees only by the PTX of an empty file.
    plain = block.replace('"--ccc=always"', "")
    assert plain != block
    assert run(plain, nvcc="ccc-nvcc --ccc=always") == 3
    assert run(plain, nvcc="ccc-nvcc --ccc=off") == 4
    assert run(plain, nvcc="ccc-nvcc --ccc=always") == 4
