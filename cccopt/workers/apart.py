"""Calls in a process of their own, with a deadline: code under test may end in a fault, or not at all.

A fault on a GPU takes the whole context with it, and a kernel that waits forever cannot be stopped from within. The
call, its stages, the answer and the last words travel in files: a pipe to a process that dies at once blocks its
writer.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, TypeVar

from cccopt.diagnostic import CccError, Diagnostic

T = TypeVar("T")
Began = Callable[[str], None]
"""Called, within a call, with each stage that begins."""

GRACE = 5.0
"""How many seconds a process has to clean up before it is killed."""


class Failed(Exception):
    """A call failed: ``stage`` had begun last, ``why`` says what happened, and the ``diagnostics`` of a `CccError` say
    it at length.
    """

    def __init__(self, stage: str, why: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(why)
        self.stage = stage
        self.why = why
        self.diagnostics = diagnostics


class Running:
    """Running calls, which end when the ``with`` block of this object ends. Each has a session of its own, so what it
    has started ends too. An interrupt from the terminal does not reach them.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._ended = True
            processes = tuple(self._processes)
        for process in processes:
            _signal_session(process, signal.SIGTERM)
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
            _signal_session(process, signal.SIGKILL)

    def add(self, process: subprocess.Popen[bytes]) -> None:
        """Add the process of a call; it ends at once if all others have been ended."""
        with self._lock:
            self._processes.add(process)
            ended = self._ended
        if ended:
            _signal_session(process, signal.SIGKILL)

    def remove(self, process: subprocess.Popen[bytes]) -> None:
        """Forget a process that has ended, and end what it has left running."""
        _signal_session(process, signal.SIGKILL)
        with self._lock:
            self._processes.discard(process)


def _signal_session(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def call(
    function: Callable[..., T],
    *arguments: Any,
    seconds: float | None = None,
    variables: Mapping[str, str] | None = None,
    running: Running | None = None,
) -> T:
    """Call ``function(began, *arguments)`` in a fresh process with additional environment ``variables``. The process is
    killed after ``seconds``, and ends with ``running``.

    The function, its arguments and its result travel by pickle. Raises `Failed` if it raises a `CccError`, if its
    process ends before that, and at the deadline.
    """
    with tempfile.TemporaryDirectory(prefix="cccopt-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _call(folder).write_bytes(pickle.dumps((function, arguments)))
        _stage(folder).touch()
        why = _run(folder, seconds, variables or {}, running)
        if not _answer(folder).is_file():
            raise Failed(_stage(folder).read_text(encoding="utf-8"), why)
        right, value = pickle.loads(_answer(folder).read_bytes())
        if not right:
            raise Failed(_stage(folder).read_text(encoding="utf-8"), _summary(value[0]), value)
        return value  # type: ignore[no-any-return]


def environment() -> dict[str, str]:
    """Environment variables for a process that must find the same modules as this one."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _run(folder: Path, seconds: float | None, variables: Mapping[str, str], running: Running | None) -> str:
    """Run the call; return what happened to its process."""
    last_words = folder / "errors"
    with (
        last_words.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "cccopt.workers.apart", str(folder)],
            env={**environment(), **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=running is not None,
        ) as process,
    ):
        try:
            if running is not None:
                running.add(process)
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"it did not end within {seconds:.0f} s"
        finally:
            process.kill()
            if running is not None:
                running.remove(process)
    said = last_words.read_text(encoding="utf-8", errors="replace")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f"its process ended with status {process.returncode}" + (f": {lines[-1]}" if lines else "")


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
    # What this process has started ends as on an interrupt: in `finally` clauses, which a plain signal would skip.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    function, arguments = pickle.loads(_call(folder).read_bytes())
    try:
        answer = (
            True,
            function(lambda stage: _stage(folder).write_text(stage, encoding="utf-8"), *arguments),
        )
    except CccError as problem:
        answer = (False, problem.diagnostics)
    # The answer appears whole or not at all.
    unfinished = folder / "unfinished"
    unfinished.write_bytes(pickle.dumps(answer))
    unfinished.replace(_answer(folder))


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
