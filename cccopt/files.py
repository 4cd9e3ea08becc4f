"""Files that are whole or absent: a reader never sees half of one, and a failure leaves what was there.

Bytes that are no UTF-8 (a user's Latin-1 comments) and line ends travel unchanged. Imports nothing heavy: the
shims of nvcc's tools read and write with it.
"""

from __future__ import annotations

import os
from contextlib import suppress

TYPE_CHECKING = False  # as typing's, whose import takes 4 ms
if TYPE_CHECKING:
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
    write_bytes(path, text.encode("utf-8", "surrogateescape"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write ``content`` beside ``path`` and move it there in one step. Raises CccError (CCC086)."""
    # A link (/dev/stdout is one) is followed; what is no plain file takes the text as it comes.
    target = os.path.realpath(path)
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            _write(target, content)
        else:
            _replace(target, content)
    except OSError as problem:
        raise file_error("write", path, problem) from problem


def file_error(verb: str, path: str | os.PathLike[str], problem: OSError) -> CccError:
    """The error (CCC086) for a file that the system does not let us ``verb``."""
    from cccopt.diagnostic import CccError, error  # 10 ms that those without an error need not wait

    reason = (problem.strerror or str(problem)).lower()
    return CccError(error("CCC086", f"cannot {verb} `{os.fspath(path)}`: {reason}"))


def _replace(target: str, content: bytes) -> None:
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{os.urandom(4).hex()}")
    try:
        _write(temporary, content)
        with suppress(FileNotFoundError):
            os.chmod(temporary, os.stat(target).st_mode & 0o7777)
        os.replace(temporary, target)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as stream:
        stream.write(content)
