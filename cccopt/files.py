"""Files that are whole or absent: a reader never sees half of one, and a failure leaves what was there.

Bytes that are no UTF-8 (a user's Latin-1 comments) and line ends travel unchanged.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cccopt.diagnostic import CccError, Diagnostic, error


def read_text(path: Path) -> str:
    """The text of ``path``. Raises CccError (CCC086) when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as stream:
            return stream.read()
    except OSError as problem:
        raise CccError(_trouble("read", path, problem)) from problem


def write_text(path: Path, text: str) -> None:
    """Write ``text`` beside ``path`` and move it there in one step. Raises CccError (CCC086) when that
    fails.
    """
    # A link (/dev/stdout is one) is followed; what is no plain file takes the text as it comes.
    target = Path(os.path.realpath(path))
    whole = target.is_file() or not target.exists()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}") if whole else target
    try:
        try:
            with open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="") as stream:
                stream.write(text)
            if whole:
                os.replace(temporary, target)
        except OSError:
            if whole:
                temporary.unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise CccError(_trouble("write", path, problem)) from problem


def _trouble(verb: str, path: Path, problem: OSError) -> Diagnostic:
    reason = (problem.strerror or str(problem)).lower()
    return error("CCC086", f"cannot {verb} `{path}`: {reason}")
