"""The host side of `--ccc-instrument`: what is added to a CUDA file, and which of two kernels is registered.

Each kernel ``K`` that is counted has a copy in the same module, ``K__ccc_counted``. cicc writes a stub file that
registers kernels by name (TOOLCHAIN 1). With CCC_PROFILE_COUNT=1 in the program's environment, the copy is registered:

    __cudaRegisterEntry(__T0, ((void ( *)(int *))f), _Z1fPi, (-1));

becomes

    if (ccc_profile_counts()) { __cudaRegisterEntry(__T0, ..., _Z1fPi__ccc_counted, (-1)); } else { ... }

Imports nothing heavy: the shim of cudafe++ uses this module.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from cccopt.files import encoded, read_text

COUNTED = "__ccc_counted"
"""The suffix of a counted copy's name."""

COUNT_VARIABLE = "CCC_PROFILE_COUNT"
"""The variable that makes a program run its counted copies."""

_HEADER = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "profiling", "ccc_profile.h"
)

_CALL = "__cudaRegisterEntry("
_NAME = re.compile(r"\s*(?P<name>[A-Za-z_$][\w$]*)\s*")
_BOUNDS = re.compile(r",\s*(?:\(|\d+\s*\))")
_CALLBACK = re.compile(r"^static void __nv_cudaEntityRegisterCallback\( ?void \*\*\w+\) ?\{", re.MULTILINE)

_COUNTS = (
    'extern "C" char *ccc_profile_getenv(const char *) __asm__("getenv");\n'
    "static bool ccc_profile_counts() {"
    f" const char *said = ccc_profile_getenv(\"{COUNT_VARIABLE}\"); return said && said[0] == '1' && !said[1]; }}\n"
)


def with_header(text: str, file: str) -> str:
    """The preprocessed ``text`` of ``file``, then our declarations as a system header, which causes no warnings."""
    name = "".join(chr(b) if chr(b).isalnum() and b < 128 else f"\\{b:03o}" for b in encoded(file))
    header = read_text(_HEADER).replace(" CCC_PROFILE_FILE;", f' "{name}";')
    return f'{text}\n# 1 "ccc_profile.h" 1 3\n{header}'


def with_counted_entries(stub: str, counted: Collection[str]) -> str | None:
    """cicc's stub file, changed to register the kernels with the names in ``counted`` as the environment says; None if
    the file has an unknown form.
    """
    callbacks = list(_CALLBACK.finditer(stub))
    if not counted:
        return stub
    entries = [_name_in(stub, call.end()) for call in re.finditer(re.escape(_CALL), stub)]
    if len(callbacks) != 1:
        return None
    pieces: list[str] = []
    done = 0
    for entry in entries:
        if entry is None:
            return None
        name, end = entry
        if name["name"] in counted:
            start = stub.rindex(_CALL, 0, name.start())
            copy = stub[start : name.end("name")] + COUNTED + stub[name.end("name") : end]
            pieces += [
                stub[done:start],
                f"if (ccc_profile_counts()) {{ {copy} }} else {{ {stub[start:end]} }}",
            ]
            done = end
    edited = "".join([*pieces, stub[done:]])
    at = callbacks[0].start()
    return f"{edited[:at]}{_COUNTS}{edited[at:]}"


def _name_in(stub: str, at: int) -> tuple[re.Match[str], int] | None:
    """The kernel's name among the arguments of a call, which begin at ``at``, and where the statement ends.

    It is the third of four. The last, the launch bounds, is a number or in parentheses:
    `( ::Policy<int, 8> ::THREADS)`.
    """
    depth = 0
    commas: list[int] = []
    for i in range(at, len(stub)):
        if stub[i] in "([{":
            depth += 1
        elif depth and stub[i] in ")]}":
            depth -= 1
        elif stub[i] == ")":
            if len(commas) != 3 or not _BOUNDS.match(stub, commas[2]) or not stub.startswith(");", i):
                return None
            found = _NAME.fullmatch(stub, commas[1] + 1, commas[2])
            return None if found is None else (found, i + 2)
        elif stub[i] == "," and not depth:
            commas.append(i)
    return None
