"""The whole way from annotated source or marked PTX to rewritten PTX and a report."""

from __future__ import annotations

TYPE_CHECKING = False  # like typing's: type checkers assume that it is true
if TYPE_CHECKING:
    from cccopt.driver.compilation import Binary, Program, compile, fat_binary, marked_ptx
    from cccopt.driver.pass_options import AnyProfile, options_of, profile_in
    from cccopt.driver.rewriting import Transformed, rewrite_unit, transform

__all__ = [
    "AnyProfile",
    "Binary",
    "Program",
    "Transformed",
    "compile",
    "fat_binary",
    "marked_ptx",
    "options_of",
    "profile_in",
    "rewrite_unit",
    "transform",
]

# Loaded at first use: the shims of `ccc-nvcc` need reports of units before passes, which take 0.15 s to load.
_MODULES = {
    "AnyProfile": "pass_options",
    "Binary": "compilation",
    "Program": "compilation",
    "Transformed": "rewriting",
    "compile": "compilation",
    "fat_binary": "compilation",
    "marked_ptx": "compilation",
    "options_of": "pass_options",
    "profile_in": "pass_options",
    "rewrite_unit": "rewriting",
    "transform": "rewriting",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
