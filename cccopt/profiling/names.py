"""Names of functions as their authors wrote them."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from typing import Any


def shown(name: str) -> str:
    """The demangled C++ name, with its template arguments and parameters; any other name as it is."""
    demangle = _demangler()
    mangled = _static(name)
    if demangle is None or not mangled.startswith("_Z"):
        return mangled
    status = ctypes.c_int()
    address = demangle(mangled.encode("utf-8", "surrogateescape"), None, None, ctypes.byref(status))
    if status.value != 0 or not address:
        return name
    text = ctypes.string_at(address).decode("utf-8", "surrogateescape")
    _libc_free(address)
    return text


def _static(name: str) -> str:
    """The name of a static function or variable without the number of its file, which nvcc adds with `-rdc=true`.

    ``__nv_static_25__92da177b_4_a_cu_bfad4959__Z4statPi`` is the number's length, the number, and the name.
    """
    found = re.match(r"__nv_static_(\d+)_", name)
    if found is None:
        return name
    rest = name[found.end() + int(found[1]) :]
    return rest.removeprefix("_") or name


@cache
def _demangler() -> Any:
    """``__cxa_demangle`` of the C++ library, which comes with nvcc's host compiler; None if there is none."""
    for library in ("libstdc++.so.6", "libc++abi.so.1"):
        try:
            function = ctypes.CDLL(library).__cxa_demangle
        except (OSError, AttributeError):
            continue
        function.restype = ctypes.c_void_p
        function.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
        return function
    return None


def _libc_free(address: int) -> None:
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = (ctypes.c_void_p,), None
    free(address)
