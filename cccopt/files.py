"""Files that are whole or absent: a reader never sees half of one, and a failure leaves what was there.

Bytes that are not UTF-8 (a user's Latin-1 comments) and line ends stay unchanged. Imports nothing heavy: the shims of
nvcc's tools read and write with it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from errno import EACCES, EEXIST, EISDIR

TYPE_CHECKING = False  # like typing's, whose import takes 4 ms
if TYPE_CHECKING:
    from collections.abc import Mapping

    from cccopt.diagnostic import CccError


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of ``path``. Raises CccError (CCC086) when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as stream:
            return stream.read()
    except OSError as problem:
        raise file_error("read", path, problem) from problem


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` to ``path`` as `write_bytes` does. Raises CccError (CCC086)."""
    write_bytes(path, encoded(text))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write ``content`` beside ``path`` and move it there in one step. Raises CccError (CCC086)."""
    write_all({path: content})


def write_all(contents: Mapping[str | os.PathLike[str], bytes]) -> None:
    """Write each content as `write_bytes` does, or none if one cannot be written. Raises CccError (CCC086)."""
    aside: dict[str, str] = {}
    path: str | os.PathLike[str] = ""
    try:
        for path, content in contents.items():
            # A link (/dev/stdout is one) is followed; what is not a regular file is written to directly.
            target = os.path.realpath(path)
            if _is_special(target):
                _write(target, content)
                continue
            aside[target] = _beside(target)
            _write(aside[target], content)
            with suppress(FileNotFoundError):
                os.chmod(aside[target], os.stat(target).st_mode & 0o7777)
        for path in contents:
            target = os.path.realpath(path)
            if target in aside:
                os.replace(aside[target], target)
                del aside[target]
    except OSError as problem:
        raise file_error("write", path, problem) from problem
    finally:
        for temporary in aside.values():
            with suppress(OSError):
                os.unlink(temporary)


def require_writable(*paths: str | os.PathLike[str] | None) -> None:
    """Check that each file (None: there is none) can be written, before the work on its contents.

    Raises CccError (CCC086), also if two of them are the same file.
    """
    taken: set[str] = set()
    for path in paths:
        if path is None:
            continue
        target = os.path.realpath(path)
        try:
            if not _is_special(target):
                if target in taken:
                    raise FileExistsError(EEXIST, "another output of this command is written there")
                temporary = _beside(target)
                _write(temporary, b"")
                os.unlink(temporary)
            elif not os.access(target, os.W_OK) or os.path.isdir(target):
                raise OSError(EISDIR if os.path.isdir(target) else EACCES, "")
        except OSError as problem:
            raise file_error("write", path, problem) from problem
        taken.add(target)


def make_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder if it does not exist yet, and check that files can be made in it. Raises CccError (CCC086)."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as problem:
        raise file_error("make the folder", path, problem) from problem
    require_writable(os.path.join(path, "x"))


def encoded(text: str) -> bytes:
    """The bytes of a text that `read_text` returned or is to read."""
    return text.encode("utf-8", "surrogateescape")


def file_error(verb: str, path: str | os.PathLike[str] | None, problem: OSError) -> CccError:
    """The error (CCC086) for a file that the system does not let us ``verb``; it may be unknown which."""
    from cccopt.diagnostic import CccError, error  # takes 10 ms, so only for an error

    reason = (problem.strerror or (os.strerror(problem.errno) if problem.errno else str(problem))).lower()
    what = "standard output or a temporary file" if path is None else f"`{os.fspath(path)}`"
    return CccError(error("CCC086", f"cannot {verb} {what}: {reason}"))


def _is_special(target: str) -> bool:
    return os.path.exists(target) and not os.path.isfile(target)


def _beside(target: str) -> str:
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name}.{os.urandom(4).hex()}")


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as stream:
        stream.write(content)
