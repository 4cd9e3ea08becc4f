"""The agent (`agent.cpp`): a small library that reads counts and times in a running program, built at first use.

It is built with the host's C++ compiler, kept in the cache folder, and rebuilt when its source, the compiler or cccopt
changes.
"""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from cccopt.diagnostic import CccError, error
from cccopt.toolchain.cache import cache_folders, prepare
from cccopt.version import __version__

SOURCE = Path(__file__).with_name("agent.cpp")

_COMPILERS = ("c++", "g++", "clang++")
# No C++ library: the agent is loaded into programs that bring their own.
_OPTIONS = (
    "-std=c++17", "-O2", "-fPIC", "-shared", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-nodefaultlibs"
)  # fmt: skip
_LIBRARIES = ("-lc", "-ldl", "-lpthread")


def agent() -> Path:
    """Return the library, built if it does not exist yet.

    Raises CccError if there is no C++ compiler or it fails (CCC110), and if no cache folder can be written (CCC082).
    """
    compiler = _compiler()
    name = f"agent-{_key(compiler)}.so"
    places = [Path(folder) / "agents" / name for folder in cache_folders()]
    for place in places:
        if place.is_file():
            return place
    reasons = []
    for place in places:
        try:
            prepare(str(place.parent.parent))
            place.parent.mkdir(exist_ok=True)
        except OSError as problem:
            reasons.append(str(problem))
            continue
        return _built(compiler, place)
    raise CccError(
        error(
            "CCC082",
            f"cannot write to a cache folder; tried {', '.join(f'`{place.parent.parent}`' for place in places)}",
            why="; ".join(reasons),
            help="set CCCOPT_CACHE to a writable folder",
        )
    )


def _compiler() -> str:
    named = os.environ.get("CXX", "").strip()
    for name in (named,) if named else _COMPILERS:
        found = shutil.which(name)
        if found is not None:
            return found
    raise CccError(
        error(
            "CCC110",
            "there is no C++ compiler to build the agent",
            why=f"CXX names `{named}`, which is not a program"
            if named
            else f"none of {', '.join(_COMPILERS)} is on PATH",
            help="install g++ (a small library is built with it, once), or set CXX to a C++ compiler",
        )
    )


def _key(compiler: str) -> str:
    """A hash of everything that the library depends on."""
    state = os.stat(os.path.realpath(compiler))
    facts = (
        __version__,
        platform.machine(),
        " ".join((*_OPTIONS, *_LIBRARIES)),
        f"{os.path.realpath(compiler)} {state.st_size} {state.st_mtime_ns}",
        SOURCE.read_text(),
    )
    return hashlib.sha256("\0".join(facts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _built(compiler: str, place: Path) -> Path:
    """Build under another name and move into place: another process may do the same."""
    aside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    command = [compiler, *_OPTIONS, str(SOURCE), "-o", str(aside), *_LIBRARIES]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            raise CccError(
                error(
                    "CCC110",
                    f"`{compiler}` cannot build the agent",
                    why=(done.stderr + done.stdout).strip() or f"its exit status is {done.returncode}",
                    help="set CXX to another C++ compiler (C++17)",
                )
            )
        aside.rename(place)
    finally:
        with suppress(OSError):
            aside.unlink()
    return place
