"""``ccc-nvcc``: nvcc's command line with a few options of ours; everything else goes to nvcc unchanged."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cccopt.diagnostic import CccError, Diagnostic, error, render
from cccopt.files import file_error, read_text, write_text
from cccopt.source.thesis import thesis_annotations
from cccopt.toolchain.discovery import find_nvcc
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import MODES, Settings
from cccopt.version import __version__

_OPTIONS = "--ccc=auto|always|off, --ccc-keep-going, --ccc-report=FILE.json, --ccc-keep=DIR and --ccc-verbose"


@dataclass(frozen=True, slots=True)
class Request:
    """A parsed command line: our options, the report's file, an nvcc that a compiler launcher names, nvcc's
    part.
    """

    settings: Settings
    report: Path | None
    nvcc: str | None
    arguments: tuple[str, ...]


def parse(argv: Sequence[str]) -> Request:
    """Take our options out of ``argv``. Raises CccError (CCC083) for an option ``--ccc...`` that does not
    exist.
    """
    mode, report, keep = "auto", None, ""
    flags = set()
    rest = list(argv)
    # As CMAKE_CUDA_COMPILER_LAUNCHER, we are given the compiler's path first.
    launched = bool(rest) and os.path.basename(rest[0]) == "nvcc" and os.access(rest[0], os.X_OK)
    nvcc = rest.pop(0) if launched else None
    arguments = []
    for argument in rest:
        name, _, value = argument.partition("=")
        if not name.startswith("--ccc"):
            arguments.append(argument)
        elif argument in ("--ccc-keep-going", "--ccc-verbose"):
            flags.add(argument)
        elif name == "--ccc" and value in MODES:
            mode = value
        elif name == "--ccc-report" and value:
            report = Path(value)
        elif name == "--ccc-keep" and value:
            keep = os.path.abspath(value)
        else:
            raise CccError(_unknown(argument))
    settings = Settings(mode, "--ccc-keep-going" in flags, "--ccc-verbose" in flags, keep=keep)
    return Request(settings, report, nvcc, tuple(arguments))


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns nvcc's exit status, or 1 for an error of ours."""
    try:
        return _run(parse(sys.argv[1:] if argv is None else argv))
    except CccError as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        # nvcc had the signal as well and has cleaned up; 130 is how a shell reports it.
        return 130


def _run(request: Request) -> int:
    if request.settings.keep:
        _make_folder(Path(request.settings.keep))
    run = run_nvcc(request.arguments, request.settings, nvcc=find_nvcc(request.nvcc))
    if run.status != 0:
        _hint_at_spelling(request.arguments)
    if run.status == 0 and request.report is not None:
        # The driver's schema, spelled here because importing the driver would slow every compilation.
        data = {"schema": 1, "cccopt": __version__, "units": list(run.reports)}
        write_text(request.report, json.dumps(data, indent=2) + "\n")
    if run.status == 0 and {"--version", "-V"} & set(request.arguments):
        print(f"cccopt {__version__} (cfg {_configuration(request.settings)})")
    # With several threads (-t) nvcc has a status of its own for a tool that failed.
    return 1 if run.refused else run.status


def _hint_at_spelling(arguments: Sequence[str]) -> None:
    """nvcc has refused the program: annotations as the thesis spells them are a likely cause."""
    for source in (Path(argument) for argument in arguments if argument.endswith((".cu", ".cuh"))):
        for diagnostic in thesis_annotations(read_text(source), str(source)) if source.is_file() else ():
            print(render(diagnostic), file=sys.stderr)


def _configuration(settings: Settings) -> str:
    """Eight digits that change with what changes our output: build systems key their caches by this line."""
    text = f"{__version__} {settings.mode} {settings.keep_going}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise file_error("make the folder", folder, problem) from problem


def _unknown(argument: str) -> Diagnostic:
    return error("CCC083", f"`{argument}` is no option of ccc-nvcc", help=f"its own options are {_OPTIONS}")
