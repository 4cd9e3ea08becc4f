"""PyCUDA's ``SourceModule`` for annotated kernels."""

from __future__ import annotations

import json
import os
import shutil
import sysconfig
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from cccopt.diagnostic import CccError, error
from cccopt.files import read_text
from cccopt.loaders import library, no_gpu
from cccopt.profiling.modules import MODULE_HEAD, LoadedCounts, as_written, current

_INSTALL = "pip install 'cccopt[gpu]'"
try:
    from pycuda.compiler import SourceModule as _SourceModule
except ImportError:
    # The first use says what is missing.
    _SourceModule = object


class SourceModule(_SourceModule):  # type: ignore[misc]
    """PyCUDA's ``SourceModule`` with ``ccc-nvcc`` as its nvcc.

    PyCUDA itself compiles: the arguments mean the same as in PyCUDA, its cache works, and options of ptxas take effect.
    In a `cccopt.profile` and under `cccopt profile`, nothing is rewritten, and kernels are counted.

    Args:
        source: The annotated CUDA text.
        nvcc: The ``ccc-nvcc`` to run; by default that of this Python, or the one on PATH. CCC_NVCC names the nvcc that
            it runs.
        options: Options of nvcc; PyCUDA's defaults if it is None.
        keep: PyCUDA's: keep the files of the compilation.
        no_extern_c: PyCUDA's: do not put the text into ``extern "C"``.
        arch: PyCUDA's: the architecture; by default that of the current device.
        code: PyCUDA's: the code to generate.
        cache_dir: PyCUDA's: the folder of its cache, or False for none.
        include_dirs: PyCUDA's: folders of headers.
        ccc: ``auto``, ``always`` or ``off``.
        keep_going: Leave a function with a refused region as it was, with a warning.

    Raises:
        CccError: Without PyCUDA (CCC092), without a current context (CCC093) or without ccc-nvcc (CCC080).
        pycuda.driver.CompileError: With the messages of ccc-nvcc: refusals, mistakes in annotations, errors of nvcc.
    """

    def __init__(
        self,
        source: str,
        nvcc: str | None = None,
        options: Sequence[str] | None = None,
        keep: bool = False,
        no_extern_c: bool = False,
        arch: str | None = None,
        code: str | None = None,
        cache_dir: str | bool | None = None,
        include_dirs: Sequence[str] = (),
        *,
        ccc: str = "auto",
        keep_going: bool = False,
    ) -> None:
        driver = library("pycuda.driver", "PyCUDA", _INSTALL)
        self._compiler = library("pycuda.compiler", "PyCUDA", _INSTALL)
        try:
            driver.Context.get_device()
        except driver.Error as reason:
            help = "make a context first: `import pycuda.autoprimaryctx`"
            raise no_gpu("no context is current", reason, help) from reason
        given = self._compiler.DEFAULT_NVCC_FLAGS if options is None else options
        self._source, self._nvcc = source, nvcc if nvcc is not None else _ccc_nvcc()
        counting = current()
        self._options = [*given, f"--ccc={as_written(ccc)}"]
        self._options += ["--ccc-keep-going"] if keep_going else []
        self._options += ["--ccc-instrument"] if counting is not None else []
        self._rest = {
            "no_extern_c": no_extern_c,
            "arch": arch,
            "code": code,
            "include_dirs": list(include_dirs),
        }
        super().__init__(source, self._nvcc, self._options, keep=keep, cache_dir=cache_dir, **self._rest)
        self._counts: LoadedCounts | None = None
        if counting is not None:
            self._driver = driver
            device = driver.Context.get_device().name()
            text = source if no_extern_c else f'extern "C" {{\n{source}\n}}\n'
            try:
                head, _ = self.module.get_global(MODULE_HEAD)
            except driver.LogicError:  # no kernel of it can be counted
                return
            self._counts = counting.add("<SourceModule>", device, int(head), self._copy, text)

    def get_function(self, name: str) -> Any:
        """The kernel ``name`` (a ``pycuda.driver.Function``); its counted copy if kernels are counted."""
        return super().get_function(name if self._counts is None else self._counts.counted_name(name))

    def _copy(self, address: int, size: int) -> bytes:
        self._driver.Context.synchronize()
        found = bytearray(size)
        self._driver.memcpy_dtoh(found, address)
        return bytes(found)

    @property
    def ptx(self) -> str:
        """The rewritten PTX."""
        return self._explained[0]

    @property
    def report(self) -> dict[str, Any]:
        """What became of each region, as JSON data."""
        return self._explained[1]

    @cached_property
    def _explained(self) -> tuple[str, dict[str, Any]]:
        """PTX and report, from a separate compilation: PyCUDA's cache, which may have made the first one unnecessary,
        keeps only machine code.
        """
        with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
            report = Path(folder) / "report.json"
            ptx = self._compiler.compile(
                self._source,
                self._nvcc,
                [*self._options, f"--ccc-report={report}"],
                cache_dir=False,
                target="ptx",
                **self._rest,
            )
            return ptx.decode(), json.loads(read_text(report))


def _ccc_nvcc() -> str:
    folders = [sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)]
    found = shutil.which("ccc-nvcc", path=os.pathsep.join(folders))
    if found is None:
        raise CccError(
            error(
                "CCC080",
                "no `ccc-nvcc` found",
                why=f"it is neither in `{folders[0]}` nor on PATH",
                help='install cccopt with pip, or name the program: `nvcc="/path/to/ccc-nvcc"`',
            )
        )
    return found
