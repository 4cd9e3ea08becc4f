"""What several commands share: the mode option, the console, remarks on standard error."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from rich import progress
from rich.console import Console

from cccopt.device.visible import workers_on_gpus
from cccopt.diagnostic import CccError, render
from cccopt.driver.unit_report import diagnostics_of
from cccopt.toolchain.discovery import find_nvcc, warnings_of
from cccopt.toolchain.options import FORMS, MEMORIES, is_resident, is_selection
from cccopt.toolchain.settings import MODES
from cccopt.workers.queue import Worker

_WIDTH_OF_A_FILE = 120


def add_mode(parser: argparse.ArgumentParser, default: str = "auto") -> None:
    """Add ``--ccc``."""
    parser.add_argument(
        "--ccc",
        choices=MODES,
        default=default,
        metavar="|".join(MODES),
        help="auto: rewrite what is expected to pay off; always: everything that can be rewritten, except loops that"
        f" nvcc would unroll or that have nothing to collect; off: nothing (default: {default})",
    )


def add_profile(parser: argparse.ArgumentParser) -> None:
    """Add ``--ccc-profile``."""
    parser.add_argument(
        "--ccc-profile",
        type=Path,
        metavar="FILE.json",
        help="how often lanes reach each region, from `cccopt profile` or"
        " `cccopt emulate --profile`; `auto` relies on it",
    )


def add_resident(parser: argparse.ArgumentParser) -> None:
    """Add ``--ccc-resident``."""
    parser.add_argument(
        "--ccc-resident",
        type=_resident,
        metavar="N",
        help="how many blocks of a kernel marked `grid` share its work (default: as many as the target runs at once)",
    )


def add_bisection(parser: argparse.ArgumentParser) -> None:
    """Add ``--ccc-form``, ``--ccc-stacks`` and ``--ccc-only``."""
    parser.add_argument(
        "--ccc-form",
        choices=FORMS,
        default="auto",
        metavar="FORM",
        help=f"the form of rewritten loops: {' | '.join(FORMS)} (default: auto)",
    )
    parser.add_argument(
        "--ccc-stacks",
        choices=MEMORIES,
        default="auto",
        metavar="|".join(MEMORIES),
        help="the memory in which tasks wait (default: auto, shared memory where they fit)",
    )
    parser.add_argument(
        "--ccc-only",
        type=_selection,
        metavar="REGION,...",
        help="rewrite only these regions: numbers as `cccopt explain` prints them, names, FILE:LINE or :LINE",
    )


def _selection(text: str) -> str:
    if not is_selection(text):
        raise argparse.ArgumentTypeError(f"`{text}` is not a list of regions")
    return text


def _resident(text: str) -> int:
    if not is_resident(text):
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of blocks")
    return int(text)


def add_workers(parser: argparse.ArgumentParser, help: str) -> None:
    """Add ``--workers``, which is None if it is not given."""
    parser.add_argument("--workers", type=_workers, metavar="N", help=help)


def _workers(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of workers: it must be 1 or more")
    return int(text)


def workers_for(asked: int | None, *, on_gpus: bool) -> tuple[Worker, ...] | None:
    """The workers for ``--workers``, None if it is not given. If there are too few GPUs, one line says so."""
    if asked is None or not on_gpus:
        return None if asked is None else (Worker(),) * asked
    workers, fewer = workers_on_gpus(asked)
    if fewer:
        print(fewer, file=sys.stderr)
    return workers


def console(width: int = _WIDTH_OF_A_FILE) -> Console:
    """Standard output, as wide as the terminal; in a file or a pipe ``width`` columns, enough for our tables."""
    out = Console()
    return out if out.is_terminal else Console(width=width)


def open_shown(path: str) -> AbstractContextManager[BinaryIO]:
    """Open a file for reading; on a terminal, a bar shows the progress."""
    terminal = Console(stderr=True)
    said = f"Reading {os.path.basename(path)}"
    return progress.open(
        path, "rb", description=said, console=terminal, transient=True, disable=not terminal.is_terminal
    )


def warn_of_nvcc() -> None:
    """Print what was passed over in the search for nvcc; if there is no nvcc, the command that needs it says so."""
    with suppress(CccError):
        for warning in warnings_of(find_nvcc()):
            print(render(warning), file=sys.stderr)


def print_remarks(report: dict[str, Any], stream: TextIO) -> None:
    """Print the remarks on each unit of a report."""
    for unit in report["units"]:
        for remark in diagnostics_of(unit["remarks"]):
            print(render(remark), file=stream)
