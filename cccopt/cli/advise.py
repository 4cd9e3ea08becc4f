"""``cccopt advise``: find the annotations that pay off, by trying all that could be written."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from cccopt.advising.applying import apply, patch, with_pragmas
from cccopt.advising.garbage import seldom_collected
from cccopt.advising.suggestions import Advice, advise_on_run, advise_on_source, ranked
from cccopt.advising.transferring import profile_of
from cccopt.ccc.profitability.profile import as_bad_profile
from cccopt.ccc.profitability.profile import write as write_profile
from cccopt.cli.advice import COUNT, as_remark, data_of, print_all, suggestion_of
from cccopt.cli.arguments import bad_argument
from cccopt.cli.common import console, warn_of_nvcc
from cccopt.diagnostic import CccError
from cccopt.driver import compile
from cccopt.files import read_text, require_writable, write_text
from cccopt.profiling.merging import merged
from cccopt.profiling.run_file import read
from cccopt.profiling.sources import files_of, on_disk
from cccopt.report.profile_page import page
from cccopt.report.sarif import as_sarif

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_Numbered = tuple[int, int]
"""The number of a suggestion, and of the alternative to it: 1 is the suggestion itself."""


def add_parser(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command's arguments."""
    parser = commands.add_parser(
        "advise",
        help="find the loops and branches that are worth annotating",
        description=f"{__doc__} For sources, the command predicts gains from assumed counts where `auto` needs no"
        " profile, and lists what needs a run.",
    )
    parser.add_argument(
        "subjects",
        nargs="+",
        metavar="RUN.json|FILE.cu",
        help="runs of programs built with `--ccc-candidates --ccc-instrument`, from `cccopt profile`; or CUDA sources",
    )
    parser.add_argument("--arch", default="sm_90", help="target of sources (default: %(default)s)")
    parser.add_argument(
        "--nvcc",
        action="append",
        default=[],
        metavar="OPTION",
        help="an nvcc option for sources, such as --nvcc=-Iinclude; may be repeated",
    )
    parser.add_argument(
        "--top", type=_number, default=10, metavar="N", help="number of suggestions to print (default: 10)"
    )
    parser.add_argument("--all", action="store_true", help="also print kernels that are better left alone")
    parser.add_argument(
        "--only",
        type=_numbers,
        metavar="N,...",
        help="the suggestions for --diff and --apply, such as 1 or the alternative 1.2 (default: all that pay off and"
        " are not contradicted)",
    )
    parser.add_argument("--diff", action="store_true", help="print the pragmas as a patch, and nothing else")
    parser.add_argument("--apply", action="store_true", help="write the pragmas into the sources")
    parser.add_argument(
        "--check",
        action="store_true",
        help="with --apply: compile the result (--arch, --nvcc), and undo everything if a pragma is refused",
    )
    parser.add_argument(
        "--save-profile",
        type=Path,
        metavar="FILE.json",
        help="with --apply: also write the counts as a profile of the annotated sources, for `ccc-nvcc --ccc-profile`;"
        " they are compiled with --arch and --nvcc",
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="for runs: also write an HTML page, with the suggestions"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write everything that was found to FILE"
    )
    parser.add_argument(
        "--sarif",
        type=Path,
        metavar="FILE",
        help="also write what pays off and is not contradicted to FILE, for editors and code reviews",
    )
    parser.set_defaults(run=run, listed="subjects")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of suggestions")
    return int(text)


def _numbers(text: str) -> tuple[_Numbered, ...]:
    return tuple(map(_numbered, text.split(",")))


def _numbered(text: str) -> _Numbered:
    """A suggestion, such as ``1``, or an alternative to it, such as ``1.2``."""
    number, point, alternative = text.partition(".")
    return _number(number), _number(alternative) if point else 1


def run(arguments: argparse.Namespace) -> int:
    """Try, rank, print, and write what was asked for."""
    with seldom_collected():
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    require_writable(arguments.json, arguments.sarif, arguments.save_profile, arguments.html)
    runs = [subject for subject in arguments.subjects if subject.endswith(".json")]
    if arguments.save_profile is not None and not (arguments.apply and runs):
        why = "it turns the counts of a run into a profile of the sources that --apply writes"
        raise bad_argument(
            "--save-profile", why, "write `cccopt advise RUN.json --apply --save-profile FILE.json`"
        )
    if arguments.check and not arguments.apply:
        raise bad_argument("--check", "it compiles what --apply writes", "add --apply")
    if arguments.html is not None and len(runs) < len(arguments.subjects):
        why = "the page can show only runs, and a source was given"
        raise bad_argument("--html", why, "write `cccopt advise RUN.json --html FILE`")
    how: dict[str, Any] = {"arch": arguments.arch, "nvcc_options": arguments.nvcc}
    if len(runs) < len(arguments.subjects):
        warn_of_nvcc()
    found = ranked(
        advice
        for subject in arguments.subjects
        for advice in (_of_run(subject) if subject in runs else _of_source(subject, how))
    )
    if arguments.json is not None:
        write_text(arguments.json, json.dumps(data_of(found), indent=2) + "\n")
    if arguments.sarif is not None:
        notes = [as_remark(advice) for advice in _chosen(found, None)]
        write_text(arguments.sarif, as_sarif(notes, Path.cwd()))
    if arguments.html is not None:
        write_text(arguments.html, _page(runs, found))
    out = console()
    if not arguments.diff:
        print_all(found, arguments, out, counted=bool(runs))
    if arguments.diff or arguments.apply:
        chosen = _chosen(found, arguments.only)
        texts = with_pragmas(pragma for advice in chosen for pragma in advice.pragmas)
        if arguments.diff:
            out.file.write(patch(texts))
        if arguments.apply:
            apply(texts)
            if arguments.check:
                _check(chosen, texts, how)
            if not arguments.diff:
                suggested = any(advice.pragmas for advice in found)
                out.print(Text(_written(texts, suggested=suggested)), soft_wrap=True)
        if arguments.save_profile is not None:
            write_profile(arguments.save_profile, profile_of(chosen, **how))
    return 0


def _check(chosen: Sequence[Advice], texts: Mapping[str, tuple[str, str]], how: Mapping[str, Any]) -> None:
    """Compile the sources, rewriting all that can be rewritten. If that fails, put them back and raise the CccError."""
    try:
        for unit in dict.fromkeys(advice.unit for advice in chosen):
            compile(unit, ccc="always", **how)
    except CccError:
        apply({file: (new, old) for file, (old, new) in texts.items()})
        raise


def _written(texts: Mapping[str, tuple[str, str]], *, suggested: bool) -> str:
    if texts:
        return f"Pragmas were written into {', '.join(texts)}."
    if not suggested:
        return "Nothing was written: there are no suggestions."
    return (
        "Nothing was written: a suggestion is written by default only if it is predicted to pay off and none of its"
        " promises is contradicted. `--only N,...` writes those that you name."
    )


def _of_run(file: str) -> tuple[Advice, ...]:
    run = read(file)
    if not run.candidates:
        raise bad_argument(file, "it contains no counts of candidates", COUNT)
    with as_bad_profile(file):
        return advise_on_run(run, apart=True)


def _of_source(file: str, how: dict[str, Any]) -> tuple[Advice, ...]:
    read_text(file)  # a missing file is not for nvcc to report
    return advise_on_source(file, **how, apart=True)


def _page(files: Sequence[str], found: Sequence[Advice]) -> str:
    """The page of the runs, with the suggestions."""
    run = merged(map(read, files))
    title = Path(files[0]).name.removesuffix(".json").removesuffix(".ccc")
    every = (each for advice in found for each in (advice, *advice.alternatives))
    suggestions = tuple(
        dict.fromkeys(map(suggestion_of, every))
    )  # a file may be compiled for several programs
    return page(run, on_disk(files_of(run.functions)), title=title, suggestions=suggestions)


def _chosen(found: Sequence[Advice], only: Sequence[_Numbered] | None) -> list[Advice]:
    if only is None:
        return [advice for advice in found if advice.pays and not advice.contradicted]
    known = [advice for advice in found if advice.pragmas]
    chosen: dict[int, Advice] = {}
    for number, alternative in only:
        if number > len(known):
            if not known:
                raise bad_argument(str(number), "there are no suggestions", "omit `--only`")
            why = (
                f"suggestions are numbered from 1 to {len(known)}"
                if len(known) > 1
                else "there is only number 1"
            )
            raise bad_argument(str(number), why, "name one that is printed")
        of_kernel = (known[number - 1], *known[number - 1].alternatives)
        if alternative > len(of_kernel):
            why = f"suggestion {number} has no such alternative"
            raise bad_argument(f"{number}.{alternative}", why, "name one that is printed")
        one = of_kernel[alternative - 1]
        if chosen.setdefault(number, one) is not one:
            why = f"it and another one that is named are alternatives for `{one.shown}`"
            raise bad_argument(f"{number}.{alternative}", why, "name one of them")
    return list(chosen.values())
