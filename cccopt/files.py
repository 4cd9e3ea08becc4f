"""Files that are whole or absent: a reader never sees half of one, and a failure leaves what was there.

Bytes that are no UTF-8 (a user's Latin-1 comments) and line ends travel unchanged.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cccopt.diagnostic import CccError, error


def read_text(path: Path) -> str:
    """The text of ``path``. Raises CccError (CCC086) when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as stream:
            return stream.read()
    except OSError as problem:
        raise file_error("read", path, problem) from problem


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` as `write_bytes` does. Raises CccError (CCC086)."""
    write_bytes(path, text.encode("utf-8", "surrogateescape"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` beside ``path`` and move it there in one step. Raises CccError (CCC086)."""
    try:
        _write(path, content)
    except OSError as problem:
        raise file_error("write", path, problem) from problem


def file_error(verb: str, path: Path, problem: OSError) -> CccError:
    """The error (CCC086) for a file that the system does not let us ``verb``."""
    reason = (problem.strerror or str(problem)).lower()
    return CccError(error("CCC086", f"cannot {verb} `{path}`: {reason}"))


def _write(path: Path, content: bytes) -> None:
    # A link (/dev/stdout is one) is followed; what is no plain file takes the text as it comes.
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
