"""Names of functions as their authors wrote them."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


def shown(name: str) -> str:
    """The C++ name of a mangled one, with its template arguments and parameters; any other as it is."""
    demangle = _demangler()
    if demangle is None or not name.startswith("_Z"):
        return name
    status = ctypes.c_int()
    address = demangle(name.encode("utf-8", "surrogateescape"), None, None, ctypes.byref(status))
    if status.value != 0 or not address:
        return name
    text = ctypes.string_at(address).decode("utf-8", "surrogateescape")
    _libc_free(address)
    return text


@cache
def _demangler() -> Any:
    """``__cxa_demangle`` of the C++ library, which is there where nvcc's host compiler is; else None."""
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
