"""The two programs. An interrupt (Ctrl-C) ends them quietly, even while they load what they need.

Imports nothing heavy: every compilation goes through here.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # like typing's, whose import takes 4 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

INTERRUPTED = 130  # as a shell reports a program that SIGINT ended


def cccopt() -> int:
    """The program ``cccopt``; returns its exit status."""
    _watch(_end)
    from cccopt.cli.main import main

    return _finished(main)


def ccc_nvcc() -> int:
    """The program ``ccc-nvcc``; returns its exit status."""
    _watch(_end)
    from cccopt.cli.nvcc import main

    return _finished(main)


def _finished(main: Callable[[], int]) -> int:
    try:
        _watch(signal.default_int_handler)
        return main()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        _watch(_end)


def _watch(handler: Callable[[int, FrameType | None], object]) -> None:
    """Let ``handler`` handle interrupts, unless our parent has set them to be ignored (nohup)."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)


def _end(number: int, frame: FrameType | None) -> None:
    """Nothing was begun, or all is done: there is nothing to clean up, and a traceback would not help."""
    os._exit(INTERRUPTED)
