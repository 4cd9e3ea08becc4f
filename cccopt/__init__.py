"""cccopt: removes warp divergence from irregular CUDA kernels, between nvcc's front end and ptxas.

    program = cccopt.compile("bfs.cu", arch="sm_90", ccc="always")      # .ptx .original_ptx .report
    result = cccopt.transform(marked_ptx)                               # .ptx .report
    profile = cccopt.emulate(program.ptx, "bfs", grid=(16, 1, 1), block=(256, 1, 1), args=[...])
    with cccopt.profile("app.ccc.json"): ...                            # counts kernels that Python loads
    checked = cccopt.check(marked_ptx, "bfs", grid=(16, 1, 1), block=(256, 1, 1), args=[...])   # .conflicts .meetings
    module = cccopt.parse(text);  text = cccopt.print(module)

Errors are `CccError` and its subclasses, which carry diagnostics.
"""

from __future__ import annotations

from cccopt.version import __version__

TYPE_CHECKING = False  # like typing's: type checkers take it for true; importing typing takes 4 ms
if TYPE_CHECKING:
    from cccopt.checking import Checked, check
    from cccopt.diagnostic import CccError, Diagnostic
    from cccopt.driver import Program, Transformed, compile, transform
    from cccopt.emulator import Profile, emulate
    from cccopt.loaders import cupy_module, optimize
    from cccopt.profiling.modules import profile
    from cccopt.ptx.parser import parse
    from cccopt.ptx.printer import print_module as print
    from cccopt.source.annotate import annotate

__all__ = [
    "CccError",
    "Checked",
    "Diagnostic",
    "Profile",
    "Program",
    "Transformed",
    "__version__",
    "annotate",
    "check",
    "compile",
    "cupy_module",
    "emulate",
    "optimize",
    "parse",
    "print",
    "profile",
    "transform",
]

# Loaded at first use: `ccc-nvcc` and its shims import this package at every compilation.
_HOMES = {
    "CccError": ("cccopt.diagnostic", "CccError"),
    "Diagnostic": ("cccopt.diagnostic", "Diagnostic"),
    "annotate": ("cccopt.source.annotate", "annotate"),
    "check": ("cccopt.checking", "check"),
    "Checked": ("cccopt.checking", "Checked"),
    "compile": ("cccopt.driver", "compile"),
    "cupy_module": ("cccopt.loaders", "cupy_module"),
    "optimize": ("cccopt.loaders", "optimize"),
    "profile": ("cccopt.profiling.modules", "profile"),
    "transform": ("cccopt.driver", "transform"),
    "Program": ("cccopt.driver", "Program"),
    "Transformed": ("cccopt.driver", "Transformed"),
    "emulate": ("cccopt.emulator", "emulate"),
    "Profile": ("cccopt.emulator", "Profile"),
    "parse": ("cccopt.ptx.parser", "parse"),
    "print": ("cccopt.ptx.printer", "print_module"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module, attribute = _HOMES[name]
    value: object = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value
