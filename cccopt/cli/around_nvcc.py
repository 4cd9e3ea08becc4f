"""What only some compilations by ``ccc-nvcc`` need: a search for nvcc, marked PTX, reports, failures."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from cccopt.diagnostic import CccError, Diagnostic, Severity, error, render
from cccopt.driver.unit_report import diagnostics_of, wrap_reports
from cccopt.files import read_text, write_text
from cccopt.source.thesis import thesis_annotations
from cccopt.toolchain import cache, options, shadow
from cccopt.toolchain.discovery import evidence, find_nvcc, warnings_of
from cccopt.toolchain.invoke import read_reports, was_refused
from cccopt.toolchain.settings import Settings

# Where a region begins. Rewritten PTX has other markers, for the emulator's counters.
_MARKERS = tuple(f"// ccc {event}.begin " for event in ("for", "if", "recursive", "grid"))


def find_program(named: str | None) -> tuple[str, str]:
    """The nvcc of the shadow toolkit for the compiler ``named``, or for the one that is found, and a warning if another
    was passed over. The result of the search is cached.
    """
    nvcc = find_nvcc(named)
    program = str(shadow.shadow_toolkit(nvcc) / "bin" / "nvcc")
    warning = "\n".join(map(render, warnings_of(nvcc)))
    cache.remember(named, program, warning, [*map(str, evidence(nvcc)), shadow.__file__])
    return program, warning


def refuse_options(ours: Sequence[str]) -> NoReturn:
    """Raise CccError (CCC083) for options of ours that do not exist or are where none is allowed."""
    unknown = [option for option in ours if not options.is_known(option)]
    if not unknown:
        message = "an options file contains options of ccc-nvcc"
        raise CccError(
            error(
                "CCC083",
                message,
                why="nvcc reads these files by itself",
                help="put them on the command line, or in NVCC_APPEND_FLAGS",
            )
        )
    raise CccError(*(_refused(*option.partition("=")) for option in unknown))


def _refused(name: str, equals: str, value: str) -> Diagnostic:
    if name in options.VALUES and equals:
        takes = f"it takes {', '.join(options.VALUES[name])}"
        return error("CCC083", f"`{value}` is not a value of `{name}`", help=takes)
    takes = next((options.spelled(known, what) for known, what, *_ in options.TABLE if known == name), "")
    if takes:
        return error("CCC083", f"malformed option `{name}{equals}{value}`", help=f"write `{takes}`")
    names = ", ".join(options.spelled(name, value) for name, value, *_ in options.TABLE)
    return error(
        "CCC083", f"`{name}{equals}{value}` is not an option of ccc-nvcc", help=f"its own options are {names}"
    )


def refuse_find() -> NoReturn:
    """Raise CccError (CCC083) for `--ccc-find` without a profile."""
    raise CccError(
        error(
            "CCC083",
            f"`{options.FIND}` needs `--ccc-profile=FILE.json`",
            why="only a run can tell what is worth rewriting",
            help="build with `ccc-nvcc --ccc-candidates --ccc-instrument` and run `cccopt profile`",
        )
    )


def print_help() -> None:
    """Print what ccc-nvcc is, its options, and the title of nvcc's options, which follow."""
    print("Usage  : ccc-nvcc [options] <inputfile>\n")
    print(
        "Takes nvcc's command line. Code with `#pragma ccc` is rewritten on its way to ptxas; nvcc does the rest.\n"
    )
    print("Options of ccc-nvcc, also taken from NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS")
    print("=============================================================================")
    for name, value, does, otherwise in options.TABLE:
        default = f" (default: {otherwise})" if otherwise else ""
        print(f"{options.spelled(name, value):<28}  {does}{default}")
    print(
        "\nCCC_NVCC names the nvcc to use; CCCOPT_CACHE names the cache folder, whose files can be regenerated."
    )
    print("`cccopt explain CCC030` prints the page of a code, `cccopt doctor` shows which nvcc is used.")
    print("\nThe options of nvcc, as `nvcc --help` prints them:", flush=True)


def with_rewritten_ptx(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """``arguments`` with each PTX file that holds markers replaced by its rewritten text, under the same name.

    Rewritten files hold no such markers, so nothing is rewritten twice. Raises CccError for what is refused, and
    (CCC098) for a marked file that only an options file names.
    """
    settings = Settings.from_environment(environment)
    in_files = list(options.words_in_files(arguments, environment))
    hidden = [in_files[n] for n in options.ptx_inputs(in_files) if _is_marked(in_files[n])]
    if hidden:
        raise CccError(
            error(
                "CCC098",
                f"`{hidden[0]}` contains annotations, but is named in an options file",
                why="ccc-nvcc passes nvcc another file in its place, which it cannot do for a name inside"
                " an options file",
                help="name it on the command line, or compile with --ccc=off",
            )
        )
    result = list(arguments)
    for n in options.ptx_inputs(arguments):
        if _is_marked(arguments[n]):
            result[n] = _rewritten(arguments[n], settings, n)
    return result


def conclude(status: int, arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Write the report that was asked for, or help with a failure; returns the exit status of the command."""
    words = environment[options.OPTIONS].splitlines()
    reports = read_reports(environment[options.REPORTS])
    file = options.value_of("--ccc-report", words)
    if status == 0:
        path = Path(file) / f"{secrets.token_hex(8)}.json" if file.endswith(os.sep) else Path(file)
        write_text(path, json.dumps(wrap_reports(reports), indent=2) + "\n")
        return 0
    _hint_at_spelling(arguments)
    _hint_at_launcher(arguments)
    # With several threads (-t) nvcc has a status of its own for a tool that failed.
    return 1 if was_refused(reports) else status


def _is_marked(word: str) -> bool:
    if not Path(word).is_file():
        return False
    text = read_text(Path(word))
    return any(marker in text for marker in _MARKERS)


def _rewritten(word: str, settings: Settings, number: int) -> str:
    # These imports take 0.15 s, which reports and failures need not wait for.
    from cccopt.ccc.profitability.decisions import read
    from cccopt.driver import transform

    done = transform(
        read_text(Path(word)),
        ccc=settings.mode,
        keep_going=settings.keep_going,
        name=word,
        profile=settings.profile or None,
        resident=settings.resident or None,
        form=settings.form,
        only=settings.only,
        stacks=settings.stacks,
        decisions=read(settings.decisions) if settings.decisions else None,
    )
    (unit,) = done.report["units"]
    for remark in diagnostics_of(unit["remarks"]):
        if settings.verbose or remark.severity is Severity.WARNING:
            print(render(remark), file=sys.stderr)
    folder = Path(settings.reports) / str(number)
    folder.mkdir()
    write_text(folder / Path(word).name, done.ptx)
    write_text(Path(settings.reports) / f"{number}.json", json.dumps(unit))
    return str(folder / Path(word).name)


def _hint_at_spelling(arguments: Sequence[str]) -> None:
    """nvcc has rejected the program: annotations in the thesis' spelling are a likely cause."""
    for source in (Path(argument) for argument in arguments if argument.endswith((".cu", ".cuh"))):
        for diagnostic in thesis_annotations(read_text(source), str(source)) if source.is_file() else ():
            print(render(diagnostic), file=sys.stderr)


def _hint_at_launcher(arguments: Sequence[str]) -> None:
    """nvcc was given a program as its first word: ccc-nvcc was put before the wrong command."""
    word = arguments[0] if arguments else ""
    if word.startswith("-") or Path(word).suffix or shutil.which(word) is None:
        return
    wrong = error(
        "CCC081",
        f"`{word}` is not an nvcc",
        why="a program given as the first argument is taken as the compiler to run, and ccc-nvcc can run only nvcc",
        help=f"if `{word}` is a launcher, put it in front: `{word} ccc-nvcc ...`; otherwise, leave it out",
    )
    print(render(wrong), file=sys.stderr)
