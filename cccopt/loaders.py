"""Annotated kernels in Python's GPU libraries: CuPy and cuda.core. PyCUDA has a module of its own, `cccopt.pycuda`.

CuPy gets a fat binary, not PTX: ptxas has run with the user's options (``-maxrregcount``), and a driver older than nvcc
can load it.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import importlib
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from cccopt.diagnostic import CccError, Severity, error, render
from cccopt.driver import fat_binary, transform
from cccopt.driver.counted_copies import with_counted_copies
from cccopt.driver.unit_report import diagnostics_of
from cccopt.files import read_text, write_bytes
from cccopt.passes.instrument import COUNTED, MODULE_HEAD
from cccopt.profiling.modules import Profiling, as_written, current
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module


def cupy_module(
    source: str,
    *,
    options: Sequence[str] = (),
    arch: str | None = None,
    ccc: str = "auto",
    keep_going: bool = False,
    name_expressions: Sequence[str] | None = None,
    enable_cooperative_groups: bool = False,
) -> Any:
    """Compile annotated CUDA text for CuPy.

    Arguments that ``cupy.RawModule`` or `cccopt.compile` also has mean the same there. Messages of nvcc for a text
    that compiles become warnings. In a `cccopt.profile` and under `cccopt profile`, nothing is rewritten, and
    kernels are counted.

    Args:
        source: The text. Kernels are looked up by their PTX names, so declare them ``extern "C"``.
        options: Options of nvcc; CuPy's headers are found.
        arch: The architecture (``sm_90``); by default that of the current device.
        ccc: ``auto``, ``always`` or ``off``.
        keep_going: Leave a function with a refused region as it was, with a warning in the report.
        name_expressions: Refused: they need NVRTC.
        enable_cooperative_groups: CuPy's: allow cooperative launches.

    Returns:
        A ``cupy.RawModule`` whose ``report`` is that of `cccopt.compile`.

    Raises:
        CccError: With the refusals, with nvcc's messages (CCC085), without CuPy (CCC092), without a GPU whose
            architecture could be used (CCC093), and for ``name_expressions`` (CCC097).
    """
    cupy = library("cupy", "CuPy", "pip install cupy-cuda13x")
    if name_expressions is not None:
        raise CccError(
            error(
                "CCC097",
                "`name_expressions` are for modules that NVRTC compiles",
                why="cccopt compiles with nvcc, which does not report the names of template instances",
                help="move the kernel template's body into a `__device__` template, and call that from an"
                ' `extern "C"` kernel',
            )
        )
    if arch is None:
        try:
            arch = f"sm_{cupy.cuda.Device().compute_capability}"
        except cupy.cuda.runtime.CUDARuntimeError as reason:
            raise no_gpu("CuPy finds none", reason, 'give the architecture: `arch="sm_90"`') from reason
    headers = Path(cupy.__file__).parent / "_core" / "include"
    made = fat_binary(
        source,
        name="<cupy_module>",
        arch=arch,
        ccc=as_written(ccc),
        instrument=current() is not None,
        nvcc_options=(*options, f"-I{headers}"),
        keep_going=keep_going,
    )
    if made.messages:
        warnings.warn(made.messages, stacklevel=2)
    # CuPy keeps what it has loaded from a path forever: different contents need a different name.
    path = _folder() / f"{hashlib.sha256(made.code).hexdigest()}.fatbin"
    write_bytes(path, made.code)
    # An instance of RawModule itself accepts no further attribute.
    module = type("RawModule", (cupy.RawModule,), {"report": made.report})
    counting = current()
    if counting is None:
        return module(path=str(path), enable_cooperative_groups=enable_cooperative_groups)
    counted = type("RawModule", (module,), {"get_function": _counted_function})
    loaded: Any = counted(path=str(path), enable_cooperative_groups=enable_cooperative_groups)
    try:
        head = loaded.get_global(MODULE_HEAD).ptr
    except cupy.cuda.driver.CUDADriverError:  # no kernel of it can be counted
        return module(path=str(path), enable_cooperative_groups=enable_cooperative_groups)
    copy = partial(_cupy_copy, cupy, cupy.cuda.Device().id)
    loaded.counts = counting.add("<cupy_module>", _cupy_device(cupy), head, copy, source)
    return loaded


def _counted_function(module: Any, name: str) -> Any:
    """The counted copy of the kernel ``name``."""
    return super(type(module), module).get_function(module.counts.counted_name(name))


def _cupy_device(cupy: Any) -> str:
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return str(properties["name"].decode())


def _cupy_copy(cupy: Any, device: int, address: int, size: int) -> bytes:
    runtime = cupy.cuda.runtime
    found = bytearray(size)
    here = (ctypes.c_char * size).from_buffer(found)
    with cupy.cuda.Device(device):
        runtime.deviceSynchronize()
        runtime.memcpy(ctypes.addressof(here), address, size, runtime.memcpyDeviceToHost)
    return bytes(found)


def optimize(object_code: Any, *, ccc: str = "auto", keep_going: bool = False) -> Any:
    """Rewrite the marked regions of a cuda.core ``ObjectCode``.

    `cccopt.annotate` puts marks into the source before NVRTC compiles it. In a `cccopt.profile` and under
    `cccopt profile` nothing is rewritten, and kernels are counted on the current device; names then map to the counted
    copies.

    Args:
        object_code: An ``ObjectCode`` of PTX.
        ccc: ``auto``, ``always`` or ``off``.
        keep_going: Leave a function with a refused region as it was, with a warning. `cccopt.transform` gives a report.

    Returns:
        An ``ObjectCode`` of the same name and symbol mapping; ``object_code`` itself if no region is rewritten.

    Raises:
        CccError: For refused regions and for PTX that cannot be read, as in `cccopt.transform`, for object code that
            holds no PTX (CCC097), and if kernels are to be counted and no device is current (CCC093).
    """
    kind = getattr(object_code, "code_type", type(object_code).__name__)
    if kind != "ptx":
        raise CccError(
            error(
                "CCC097",
                f"only object code that holds PTX can be rewritten, but this is `{kind}`",
                why="the passes read PTX and leave machine code and intermediate forms alone",
                help='compile with `program.compile("ptx")`',
            )
        )
    code = object_code.code
    given = read_text(Path(code)) if isinstance(code, str) else bytes(code).decode("utf-8", "surrogateescape")
    # NVRTC's text ends in a zero byte.
    text = given.rstrip("\0")
    name = object_code.name or "<ObjectCode>"
    counting = current()
    if counting is not None:
        return _counted_object(object_code, text, name, counting)
    done = transform(text, ccc=as_written(ccc), keep_going=keep_going, name=name)
    for unit in done.report["units"]:
        for remark in diagnostics_of(unit["remarks"]):
            if remark.severity is Severity.WARNING:
                warnings.warn(render(remark), stacklevel=2)
    if done.ptx == text:
        return object_code
    return _with_code(object_code, done.ptx, object_code.symbol_mapping)


def _with_code(object_code: Any, ptx: str, names: Mapping[Any, str | bytes]) -> Any:
    code = ptx.encode("utf-8", "surrogateescape") + b"\0"
    return object_code.from_ptx(code, name=object_code.name, symbol_mapping=dict(names))


def _counted_object(object_code: Any, text: str, name: str, counting: Profiling) -> Any:
    """``object_code`` with counted copies of its kernels, which are found by the kernels' names."""
    module, layout = with_counted_copies(parse(text, name))
    copies = {f.name: (f.name + COUNTED).encode() for f in layout.functions if f.kernel and f.counted}
    if not copies:
        return object_code
    names: dict[str | bytes, str | bytes] = {
        # NVRTC's symbols are bytes.
        n: copies.get(s.decode() if isinstance(s, bytes) else s, s)
        for n, s in object_code.symbol_mapping.items()
    }
    for kernel, copy in copies.items():
        names |= {kernel: copy, kernel.encode(): copy}
    made = _with_code(object_code, print_module(module), names)
    memory = _ObjectCodeMemory(
        library("cuda.bindings.driver", "cuda.bindings", "pip install cuda-core"), made
    )
    counting.add(name, memory.device, memory.address(MODULE_HEAD), memory.copy, None)
    return made


class _ObjectCodeMemory:
    """The variables of an object code on the device that is current when this is made: cuda.core itself finds only
    kernels.
    """

    def __init__(self, driver: Any, object_code: Any) -> None:
        self._driver = driver
        self._object_code = object_code  # unloaded with its last user
        self._context = self._call("cuCtxGetCurrent")
        self.device = (
            bytes(self._call("cuDeviceGetName", 256, self._call("cuCtxGetDevice"))).decode().rstrip("\0")
        )

    def _call(self, function: str, *arguments: Any) -> Any:
        """What a function of the driver returns."""
        status, *given = getattr(self._driver, function)(*arguments)
        if int(status):
            help = "make a device current first: `cuda.core.Device().set_current()`"
            raise no_gpu(f"{function} fails", RuntimeError(str(status)), help)
        return given[0] if given else None

    def address(self, variable: str) -> int:
        """Where a variable is, after loading the object code if necessary."""
        return int(self._call("cuLibraryGetGlobal", self._object_code.handle, variable.encode()))

    def copy(self, address: int, size: int) -> bytes:
        """Bytes from the device, once all work on it has ended."""
        found = bytearray(size)
        self._call("cuCtxPushCurrent", self._context)
        try:
            self._call("cuCtxSynchronize")
            self._call("cuMemcpyDtoH", found, address, size)
        finally:
            self._call("cuCtxPopCurrent")
        return bytes(found)


def library(module: str, name: str, install: str) -> Any:
    """A GPU library's module. Raises CccError (CCC092) if it does not load."""
    try:
        return importlib.import_module(module)
    except ImportError as reason:
        raise CccError(
            error(
                "CCC092",
                f"cannot use a GPU: {name} cannot be loaded",
                why=" ".join(str(reason).split()),
                help=f"install it: `{install}`",
            )
        ) from reason


def no_gpu(message: str, reason: Exception, help: str) -> CccError:
    """The error (CCC093) for a library that has no GPU to work with."""
    return CccError(
        error("CCC093", f"cannot use a GPU: {message}", why=" ".join(str(reason).split()), help=help)
    )


@cache
def _folder() -> Path:
    """The folder for this process's modules until its end: CuPy reads them late, and again for each device."""
    folder = Path(tempfile.mkdtemp(prefix="cccopt-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
