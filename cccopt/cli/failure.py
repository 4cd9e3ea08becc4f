"""What a command prints when it cannot go on: diagnostics, or one for a bug of ours."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from cccopt.diagnostic import CccError, Diagnostic, error
from cccopt.files import file_error, write_text
from cccopt.version import __version__

TRACEBACK = "cccopt-crash.txt"


def report(problem: Exception, keep: str = "") -> int:
    """Print ``problem`` to standard error as `as_errors` words it; returns the exit status, 1."""
    print(as_errors(problem, keep), file=sys.stderr)
    return 1


def reader_left() -> int:
    """The reader of our output has closed it (``| head``): end quietly; returns the exit status, 1."""
    # At its end, the interpreter writes what is left, and would complain.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return 1


def as_errors(problem: Exception, keep: str = "") -> CccError:
    """``problem``, or a diagnostic for it: the system's refusal (CCC086), or else a bug of ours (CCC099).

    The traceback of the latter goes into the folder ``keep``, if there is one.
    """
    if isinstance(problem, CccError):
        return problem
    if isinstance(problem, OSError):
        return file_error("use", problem.filename or None, problem)
    return CccError(_internal(problem, keep))


def _internal(problem: Exception, keep: str) -> Diagnostic:
    frames = traceback.extract_tb(problem.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    said = " ".join(str(problem).split())
    advice = f"report it with the folder that `--ccc-keep=FOLDER` fills: it then holds a traceback in `{TRACEBACK}`"
    if keep:
        advice = f"report it with the folder `{keep}`; the traceback is in `{TRACEBACK}`"
        try:
            write_text(Path(keep) / TRACEBACK, "".join(traceback.format_exception(problem)))
        except CccError as unwritten:
            advice = f"report it; the traceback could not be kept ({unwritten.diagnostics[0].message})"
    return error(
        "CCC099",
        f"internal error in cccopt {__version__}: {type(problem).__name__}{where}"
        + (f": {said}" if said else ""),
        why="this is a bug in cccopt, not in your program",
        help=f"{advice}; `--ccc=off` compiles without the rewrite",
    )
