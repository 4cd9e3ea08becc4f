"""NVIDIA's libraries as builds: ``bench/cte/vendor.cu`` as shared libraries that take pointers to the GPU's memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cccopt import resources
from cccopt.device.gpu import Kernel
from cccopt.diagnostic import CccError, error
from cccopt.harness.builds import NoBuild
from cccopt.harness.cte.workload import SHELF
from cccopt.toolchain.discovery import find_nvcc
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings


@dataclass(frozen=True, slots=True)
class Library:
    """One of the shared libraries, loaded when a function of it is needed."""

    path: Path

    def kernel(self, name: str) -> Kernel:
        """The function ``name``, to be launched like a kernel. Raises `CccError` (CCC092) if the library, or one that
        it is linked to, does not load.
        """
        try:
            library = ctypes.CDLL(str(self.path))
        except OSError as reason:
            raise CccError(
                error("CCC092", f"cannot measure `{name}`: its library cannot be loaded", why=str(reason))
            ) from reason
        return Kernel(_call(library, name))


def _call(library: ctypes.CDLL, name: str) -> Callable[..., None]:
    function, words = library[name], library["vendor_error"]
    words.restype = ctypes.c_char_p

    def call(*arguments: Any, grid: object, block: object) -> None:
        status = function(*map(_argument, arguments))
        if status:
            raise CccError(error("CCC095", f"`{name}` failed on the GPU", why=words(status).decode()))

    return call


def _argument(given: Any) -> ctypes.c_longlong | ctypes.c_void_p:
    """A number, or the address of memory on the GPU."""
    return ctypes.c_longlong(int(given)) if isinstance(given, np.generic) else ctypes.c_void_p(int(given))


def part(build: str) -> str:
    """The name of the library that the build is part of: ``cusparse`` or ``cub``."""
    return build.partition("_")[0]


def build(part: str, arch: str, folder: Path) -> Library | NoBuild:
    """Compile the library of ``part`` into ``folder``."""
    path = folder / f"{part}.so"
    done = run_nvcc(
        [
            *_OPTIONS,
            f"-arch={arch}",
            f"-DVENDOR_{part.upper()}",
            *_links(part),
            str(_source()),
            "-o",
            str(path),
        ],
        Settings("off"),
        capture=True,
    )
    if done.status == 0:
        return Library(path)
    said = [line.strip() for line in (done.errors + done.output).splitlines()]
    return NoBuild(
        part, next((line for line in said if "error" in line or "cannot find" in line), "nvcc failed")
    )


_OPTIONS = ("-shared", "-std=c++17", "-Xcompiler", "-fPIC")


def _links(part: str) -> tuple[str, ...]:
    """The options that link cuSPARSE, if ``part`` needs it; at run time it is found in the toolkit as well."""
    if part != "cusparse":
        return ()
    return "-lcusparse", "-Xlinker", "-rpath", "-Xlinker", str(find_nvcc().root / "lib64")


def _source() -> Path:
    top, *rest = SHELF.split("/")
    return resources.folder(top).joinpath(*rest, "vendor.cu")
