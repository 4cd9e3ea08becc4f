"""The folders for everything that cccopt can rebuild, and the result of the last search for a toolkit.

A build starts ccc-nvcc for every file. Searching for nvcc may run programs (0.1 s), so the answer is saved together
with the state of every file that it depends on, and is valid as long as none of them changes. Imports nothing heavy.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from errno import EACCES
from zlib import crc32

from cccopt.version import __version__

_VARIABLES = ("CCC_NVCC", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "PATH")


def cache_folders() -> list[str]:
    """The folders to try, best first: only the one that ``CCCOPT_CACHE`` names, or else ``cccopt`` in the user's cache
    folder and then a private temporary folder, in case the user's home cannot be written.
    """
    named = os.environ.get("CCCOPT_CACHE")
    if named:
        return [os.path.abspath(named)]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    found = [os.path.join(home, "cccopt")] if os.path.isabs(home) else []
    temporary = _temporary()
    return found if os.path.lexists(temporary) and not _is_private(temporary) else [*found, temporary]


def prepare(folder: str) -> None:
    """Make a cache folder. Raises OSError, including if other users could place programs there that we would run."""
    os.makedirs(folder, 0o700, exist_ok=True)
    if folder == _temporary() and not _is_private(folder):
        raise PermissionError(EACCES, "other users can write there", folder)


def temporary_folder() -> str:
    """``TMPDIR`` if that is a folder, or else ``/tmp``."""
    named = os.environ.get("TMPDIR", "")
    return os.path.abspath(named) if named and os.path.isdir(named) else "/tmp"


def _temporary() -> str:
    return os.path.join(temporary_folder(), f"cccopt-{os.getuid()}")


def _is_private(folder: str) -> bool:
    state = os.lstat(folder)
    shared = state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid() and not shared


def recall(named: str | None) -> tuple[str, str] | None:
    """The nvcc to run and the warning that `remember` saved for the same search, if nothing has changed since."""
    question = _question(named)
    for folder in cache_folders():
        try:
            with open(_note(folder, question), encoding="utf-8", errors="surrogateescape") as stream:
                asked, answer, warning, *seen = stream.read().split("\0")
        except (OSError, ValueError):
            continue
        unchanged = all(_state(path) == state for path, state in zip(seen[::2], seen[1::2], strict=False))
        if asked == question and unchanged and os.path.exists(answer):
            return answer, warning
    return None


def remember(named: str | None, answer: str, warning: str, evidence: Iterable[str]) -> None:
    """Save that the search for nvcc, with the name ``named`` (None: no name), led to ``answer`` and ``warning``, given
    the state of ``evidence``.

    A cache that cannot be written is not an error here: the next compilation searches again.
    """
    question = _question(named)
    parts = [question, answer, warning]
    for path in dict.fromkeys(evidence):
        parts += (path, _state(path))
    # The answer is CACHE/toolkits/KEY/bin/nvcc.
    note = _note(os.path.normpath(os.path.join(answer, *[os.pardir] * 4)), question)
    aside = f"{note}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(note), exist_ok=True)
        with open(aside, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write("\0".join(parts))
        os.replace(aside, note)
    except OSError:
        return


def _question(named: str | None) -> str:
    """Everything that a search depends on besides the files that it looks at."""
    values = [os.environ.get(variable, "") for variable in _VARIABLES]
    relative = any(not os.path.isabs(folder) for folder in values[-1].split(os.pathsep))
    here = os.getcwd() if relative or (named and not os.path.isabs(named)) else ""
    return "\n".join([__version__, sys.executable, *sys.path, *values, named or "", here])


def _note(folder: str, question: str) -> str:
    name = f"{crc32(question.encode('utf-8', 'surrogateescape')):08x}"
    return os.path.join(folder, "searches", name)


def _state(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return "none"
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"
