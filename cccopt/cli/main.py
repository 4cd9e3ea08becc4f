"""``cccopt``: one command line, one module a command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cccopt.cli import bench, check, doctor, emulate, explain, transform, verify
from cccopt.diagnostic import CccError
from cccopt.version import __version__

_COMMANDS = (transform, explain, emulate, verify, check, bench, doctor)

INTERRUPTED = 130  # as a shell reports a program that SIGINT ended


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line; each command's module adds its own part and names its ``run``."""
    top = argparse.ArgumentParser(
        prog="cccopt",
        description="Remove warp divergence from annotated CUDA kernels. `ccc-nvcc` compiles them like nvcc.",
    )
    top.add_argument("--version", action="version", version=f"cccopt {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(commands)
    return top


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments. A command's list, ``listed``, may go on behind options: argparse stops there."""
    top = parser()
    arguments, more = top.parse_known_args(argv)
    listed: str = getattr(arguments, "listed", "")
    if more and (not listed or any(word.startswith("-") for word in more)):
        top.error(f"unrecognized arguments: {' '.join(more)}")
    if more:
        getattr(arguments, listed).extend(more)
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status: 1 for a difference, a refusal or another error of the input."""
    arguments = _parsed(argv)
    try:
        status: int = arguments.run(arguments)
        return status
    except CccError as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
