"""Running a program in our place: it gets our signals, and we get its exit status. Imports nothing heavy."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence

TYPE_CHECKING = False  # like typing's, whose import takes 4 ms
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

# These are sent to one process, but meant for what it runs. An interrupt (Ctrl-C) already reaches the whole group.
_PASSED_ON: tuple[int, ...] = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def launch(program: str, arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run ``program`` and return its exit status as a shell shows it (128 + N if signal N ended it)."""
    _, code = ended(program, arguments, environment)
    return code if code >= 0 else 128 - code


def ended(
    program: str, arguments: Sequence[str], environment: Mapping[str, str], *, quiet: bool = False
) -> tuple[int, int]:
    """Run ``program`` and return its process ID and its exit status, -N if signal N ended it.

    A signal that asks us to end is passed on to the program, which cleans up after itself; after an interrupt, we wait
    for it to end. Its standard output is discarded if ``quiet``.
    """
    nowhere = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)] if quiet else []
    before: dict[int, Any] = {}
    children: list[int] = []
    early: list[int] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT:
            early.append(number)
            for child in children:
                os.kill(child, number)

    for number in (int(signal.SIGINT), *_PASSED_ON):
        # Signals that our parent ignores (nohup) stay ignored, also in the program.
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, pass_on)
    try:
        child = os.posix_spawn(
            program, [program, *arguments], environment, file_actions=nowhere, setsigdef=tuple(before)
        )
        children.append(child)
        for number in early:
            os.kill(child, number)
        _, status = os.waitpid(child, 0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return child, os.waitstatus_to_exitcode(status)
