"""Calls in a process of their own, with a deadline: code under test may end in a fault, or not at all.

A fault on a GPU takes the whole context with it, and a kernel that waits for ever cannot be stopped from within. Call,
stages and answer travel in files: a pipe to a process that dies at once blocks its writer.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from cccopt.diagnostic import CccError, Diagnostic

T = TypeVar("T")
Began = Callable[[str], None]
"""Called, within a call, with each stage that begins."""


class Failed(Exception):
    """A call came to nothing: ``stage`` had begun last, ``why`` says what happened, as the ``diagnostics`` of a
    `CccError` do at length.
    """

    def __init__(self, stage: str, why: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(why)
        self.stage = stage
        self.why = why
        self.diagnostics = diagnostics


def call(function: Callable[..., T], *arguments: Any, seconds: float) -> T:
    """``function(began, *arguments)`` in a fresh process, which is killed when ``seconds`` have passed.

    The function, its arguments and its result travel by pickle. Raises `Failed` for a `CccError` in it, for the
    end of its process and for the deadline.
    """
    with tempfile.TemporaryDirectory(prefix="cccopt-") as name:
        folder = Path(name)
        _call(folder).write_bytes(pickle.dumps((function, arguments)))
        _stage(folder).touch()
        why = _run(folder, seconds)
        if not _answer(folder).is_file():
            raise Failed(_stage(folder).read_text(encoding="utf-8"), why)
        right, value = pickle.loads(_answer(folder).read_bytes())
        if not right:
            raise Failed(_stage(folder).read_text(encoding="utf-8"), _summary(value[0]), value)
        return value  # type: ignore[no-any-return]


def environment() -> dict[str, str]:
    """Variables for a process that is to find the modules that this one finds."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _run(folder: Path, seconds: float) -> str:
    """Run the call; what happened to its process."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cccopt.harness.apart", str(folder)],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {seconds:.0f} s"
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return f"its process ended with status {done.returncode}" + (f": {lines[-1]}" if lines else "")


def _call(folder: Path) -> Path:
    return folder / "call.pickle"


def _stage(folder: Path) -> Path:
    return folder / "stage"


def _answer(folder: Path) -> Path:
    return folder / "answer.pickle"


def _summary(first: Diagnostic) -> str:
    where = f" at {first.place}" if first.place is not None else ""
    return f"{first.code}: {first.message}{where}" + (f" ({first.why})" if first.why else "")


def _serve(folder: Path) -> None:
    function, arguments = pickle.loads(_call(folder).read_bytes())
    try:
        answer = (
            True,
            function(lambda stage: _stage(folder).write_text(stage, encoding="utf-8"), *arguments),
        )
    except CccError as problem:
        answer = (False, problem.diagnostics)
    # Whole or not at all.
    unfinished = folder / "unfinished"
    unfinished.write_bytes(pickle.dumps(answer))
    unfinished.replace(_answer(folder))


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
