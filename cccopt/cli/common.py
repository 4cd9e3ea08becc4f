"""What several commands share: the mode option, the console, remarks on standard error."""

from __future__ import annotations

import argparse
from typing import Any, TextIO

from rich.console import Console

from cccopt.diagnostic import render
from cccopt.toolchain.settings import MODES
from cccopt.unit import diagnostics_of

_WIDTH_OF_A_FILE = 120


def add_mode(parser: argparse.ArgumentParser, default: str = "auto") -> None:
    """Add ``--ccc``."""
    parser.add_argument(
        "--ccc",
        choices=MODES,
        default=default,
        metavar="|".join(MODES),
        help=f"rewrite what is expected to pay, whatever can be rewritten, or nothing (default: {default})",
    )


def console() -> Console:
    """Standard output: as wide as the terminal, or wide enough for our tables in a file or a pipe."""
    out = Console()
    return out if out.is_terminal else Console(width=_WIDTH_OF_A_FILE)


def print_remarks(report: dict[str, Any], stream: TextIO) -> None:
    """Print what there is to say of each unit of a report."""
    for unit in report["units"]:
        for remark in diagnostics_of(unit["remarks"]):
            print(render(remark), file=stream)
