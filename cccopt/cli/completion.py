"""What a shell needs to complete the words of a ``cccopt`` command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from cccopt.harness.libraries import library

SHELLS = ("bash", "zsh", "tcsh")


class PrintCompletion(argparse.Action):
    """Prints the script for a shell, and exits. Raises CccError without shtab (CCC092)."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: object, shell: Any, *_: object) -> None:
        print(script(parser, shell))
        parser.exit()


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script that the user's shell evaluates at its start."""
    shtab = library("shtab", "complete command lines", "completion")
    for action in _actions(parser):
        # Without this, shtab completes nothing there, not even file names.
        if action.nargs != 0 and action.choices is None and action.type not in (int, float):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of a parser and of its commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
        else:
            yield action
