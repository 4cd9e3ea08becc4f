"""``cccopt``: one command line, one module per command."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from cccopt.cli import advise, bench, check, doctor, emulate, explain, profile, transform, tune, verify
from cccopt.cli.completion import SHELLS, PrintCompletion
from cccopt.cli.failure import reader_left, report
from cccopt.cli.start import INTERRUPTED
from cccopt.diagnostic import CccError
from cccopt.resources import folder
from cccopt.version import __version__

_COMMANDS = (advise, transform, explain, emulate, verify, check, profile, tune, bench, doctor)

_WHAT = "Remove warp divergence from annotated CUDA kernels. `ccc-nvcc` compiles them and takes nvcc's command line."
_MAP = """\
from an unannotated program to a faster one:
  cccopt doctor                                        is everything installed?
  ccc-nvcc --ccc-instrument -O3 app.cu -o app          build with counters
  cccopt profile --html app.html -- ./app ARGUMENTS    where lanes idle
  ccc-nvcc --ccc-candidates --ccc-instrument ...       build with counters for all candidates
  cccopt profile -- ./app ARGUMENTS                    run it again, to count them
  cccopt advise app.ccc.json --apply                   write the pragmas that pay off
  ccc-nvcc -O3 app.cu -o app                           compile the annotated program
  cccopt explain app.cu                                what became of each annotation
  cccopt tune --build COMMAND --run COMMAND            measure, and keep what is fastest
without a GPU:
  cccopt bench --demo                                  samples before and after, on the emulator
  cccopt emulate, verify, check                        your kernel on the emulator

`cccopt COMMAND --help` describes a command."""


class _Print(argparse.Action):
    """Prints what it is given, on one line, and exits: the action ``version`` would break long lines."""

    def __init__(self, option_strings: list[str], dest: str, const: str, help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, const=const, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(self.const)
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line; each command's module adds its own part and names its ``run``."""
    top = argparse.ArgumentParser(
        prog="cccopt",
        description=_WHAT,
        epilog=_MAP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"cccopt {__version__}")
    for option, path, what in (
        ("--cte-include", folder("cte_templates"), "cte.cuh"),
        ("--cmake-dir", Path(str(files("cccopt"))) / "cmake", "cccoptConfig.cmake, for -Dcccopt_DIR="),
    ):
        top.add_argument(option, action=_Print, const=str(path), help=f"print the folder of {what}")
    top.add_argument(
        "--completion",
        action=PrintCompletion,
        choices=SHELLS,
        metavar="SHELL",
        help=f"print the completion script for a shell: {', '.join(SHELLS)}",
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(commands)
    for one in commands.choices.values():
        one.description = _sentence(one.description or "")
        one.formatter_class = _WholeWords
    return top


class _WholeWords(argparse.HelpFormatter):
    """Wraps help texts only at spaces: options have hyphens."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return textwrap.fill(
            " ".join(text.split()),
            width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )


def _sentence(description: str) -> str:
    """A description without the command that it begins with, which the usage already shows."""
    text = re.sub(r"^``[^`]*``: ", "", description)
    return text[:1].upper() + text[1:]


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments. A command's list, ``listed``, may go on after options, where argparse stops.

    For `profile`, what comes after ``--`` is the command line of a program, whose options are not ours.
    """
    top = parser()
    words = list(sys.argv[1:] if argv is None else argv)
    program: list[str] | None = None
    if words[:1] == ["profile"] and "--" in words:
        at = words.index("--")
        words, program = words[:at], words[at + 1 :]
    arguments, more = top.parse_known_args(words)
    arguments.program = program
    listed: str = getattr(arguments, "listed", "")
    if more and (not listed or any(word.startswith("-") for word in more)):
        top.error(f"unrecognized arguments: {' '.join(more)}")
    if more:
        getattr(arguments, listed).extend(more)
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status: 1 for a difference, a refusal or another error of the input."""
    try:
        arguments = _parsed(argv)
        status: int = arguments.run(arguments)
        print(end="", flush=True)  # a failed write is noticed here, not by the interpreter at its end
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return reader_left()
    except CccError as problem:
        return report(problem)
    except Exception as problem:
        return report(problem, _folder())


def _folder() -> str:
    """A folder for the traceback of a bug of ours; empty if none can be made."""
    try:
        return tempfile.mkdtemp(prefix="cccopt-")
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
