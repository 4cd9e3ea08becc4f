"""``cccopt advise``: the annotations that pay off, found by trying all that could be written."""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from cccopt.advising.applying import apply, patch, with_pragmas
from cccopt.advising.judgement_words import as_data, in_words, lines_of, notes_of
from cccopt.advising.pragmas import Pragma
from cccopt.advising.suggestions import Advice, advise_on_run, advise_on_source, promises_of, ranked
from cccopt.advising.transferring import profile_of
from cccopt.ccc.legality.independence import State
from cccopt.ccc.profitability.model import IN_LANE_GAIN, SAFE_GAIN
from cccopt.ccc.profitability.profile import as_bad_profile
from cccopt.ccc.profitability.profile import write as write_profile
from cccopt.cli.arguments import bad_argument
from cccopt.cli.common import console, warn_of_nvcc
from cccopt.diagnostic import Diagnostic, Severity, render
from cccopt.files import read_text, require_writable, write_text
from cccopt.profiling.merging import merged
from cccopt.profiling.run_file import read
from cccopt.profiling.sources import files_of, on_disk
from cccopt.report.profile_advice import SuggestedPragma, Suggestion
from cccopt.report.profile_page import page
from cccopt.report.sarif import as_sarif
from cccopt.version import __version__

if TYPE_CHECKING:
    from argparse import _SubParsersAction

SCHEMA = 1
"""The version of the JSON's layout."""

_Numbered = tuple[int, int]
"""The number of a suggestion, and of the alternative to it: 1 is the suggestion itself."""

_OBJECTS = 200_000
"""The number of new objects after which Python looks for garbage; its default is 700."""

_UNTOLD = "only a run can tell"

_MEASURE = (
    f"Worth measuring: `auto` rewrites it only if at least {SAFE_GAIN}x is predicted ({IN_LANE_GAIN}x in the in-lane"
    " form), or if `cccopt tune` has measured a gain."
)
_MEASURE_ALL = (
    "Worth measuring: with these counts, `auto` leaves at least part of it as it is (`cccopt explain` says why), unless"
    " `cccopt tune` has measured a gain."
)

_COUNT = (
    "build with `ccc-nvcc --ccc-candidates --ccc-instrument`, then run `cccopt profile -o RUN.json -- PROGRAM`"
    " and `cccopt advise RUN.json`"
)


def add_parser(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command's arguments."""
    parser = commands.add_parser(
        "advise",
        help="find the loops and branches that are worth annotating",
        description=f"{__doc__} For sources, it predicts gains from assumed counts where `auto` needs no profile, and"
        " lists what needs a run.",
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
        "--top", type=_number, default=10, metavar="N", help="suggestions to print (default: 10)"
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
    with _seldom_collected():
        return _run(arguments)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Search for garbage rarely: the objects of code live on, hold no cycles, and are many for a large file."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _run(arguments: argparse.Namespace) -> int:
    require_writable(arguments.json, arguments.sarif, arguments.save_profile, arguments.html)
    runs = [subject for subject in arguments.subjects if subject.endswith(".json")]
    if arguments.save_profile is not None and not (arguments.apply and runs):
        why = "it turns the counts of a run into a profile of the sources that --apply writes"
        raise bad_argument(
            "--save-profile", why, "write `cccopt advise RUN.json --apply --save-profile FILE.json`"
        )
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
        write_text(arguments.json, json.dumps(_data(found), indent=2) + "\n")
    if arguments.sarif is not None:
        notes = [_as_remark(advice) for advice in _chosen(found, None)]
        write_text(arguments.sarif, as_sarif(notes, Path.cwd()))
    if arguments.html is not None:
        write_text(arguments.html, _page(runs, found))
    out = console()
    if not arguments.diff:
        _print(found, arguments, out, counted=bool(runs))
    if arguments.diff or arguments.apply:
        chosen = _chosen(found, arguments.only)
        texts = with_pragmas(pragma for advice in chosen for pragma in advice.pragmas)
        if arguments.diff:
            out.file.write(patch(texts))
        if arguments.apply:
            apply(texts)
            if not arguments.diff:
                suggested = any(advice.pragmas for advice in found)
                out.print(Text(_written(texts, suggested=suggested)), soft_wrap=True)
        if arguments.save_profile is not None:
            write_profile(arguments.save_profile, profile_of(chosen, **how))
    return 0


def _written(texts: Mapping[str, tuple[str, str]], *, suggested: bool) -> str:
    if texts:
        return f"Pragmas were written into {', '.join(texts)}."
    if not suggested:
        return "Nothing was written: there are no suggestions."
    return (
        "Nothing was written: a suggestion is written by default only if it is predicted to pay and none of its"
        " promises is contradicted. `--only N,...` writes those that you name."
    )


def _of_run(file: str) -> tuple[Advice, ...]:
    run = read(file)
    if not run.candidates:
        raise bad_argument(file, "it contains no counts of candidates", _COUNT)
    with as_bad_profile(file):
        return advise_on_run(run)


def _of_source(file: str, how: dict[str, Any]) -> tuple[Advice, ...]:
    read_text(file)  # a missing file is not for nvcc to report
    return advise_on_source(file, **how)


def _page(files: Sequence[str], found: Sequence[Advice]) -> str:
    """The page of the runs, with the suggestions."""
    run = merged(map(read, files))
    title = Path(files[0]).name.removesuffix(".json").removesuffix(".ccc")
    every = (each for advice in found for each in (advice, *advice.alternatives))
    suggestions = tuple(dict.fromkeys(map(_suggestion, every)))  # a file may be compiled for several programs
    return page(run, on_disk(files_of(run.functions)), title=title, suggestions=suggestions)


def _suggestion(advice: Advice) -> Suggestion:
    promises = promises_of(advice)
    pragmas = [
        SuggestedPragma(
            pragma.text,
            pragma.place.file,
            pragma.place.position.line,
            "; ".join(promise for one, promise in promises if one == pragma),
            "; ".join(in_words(judgement) for one, judgement in advice.judgements if one == pragma),
        )
        for pragma in advice.pragmas
    ]
    refusals = tuple(f"{d.code}: {d.message}" for d in advice.refusals)
    return Suggestion(advice.kernel, _gain(advice), advice.pays, tuple(pragmas), refusals, advice.may_pay)


def _chosen(found: Sequence[Advice], only: Sequence[_Numbered] | None) -> list[Advice]:
    if only is None:
        return [advice for advice in found if advice.pays and not advice.contradicted]
    known = [advice for advice in found if advice.pragmas]
    chosen: dict[int, Advice] = {}
    for number, alternative in only:
        if number > len(known):
            raise bad_argument(
                str(number), f"suggestions are numbered from 1 to {len(known)}", "`--all` shows them"
            )
        of_kernel = (known[number - 1], *known[number - 1].alternatives)
        if alternative > len(of_kernel):
            why = f"suggestion {number} has no such alternative"
            raise bad_argument(f"{number}.{alternative}", why, "name one that is printed")
        one = of_kernel[alternative - 1]
        if chosen.setdefault(number, one) is not one:
            why = f"it and another one that is named are alternatives for `{one.shown}`"
            raise bad_argument(f"{number}.{alternative}", why, "name one of them")
    return list(chosen.values())


def _print(found: Sequence[Advice], arguments: argparse.Namespace, out: Console, counted: bool) -> None:
    if not found:
        out.print("no kernel here has a loop or branch left to annotate")
        return
    known = list(enumerate((advice for advice in found if advice.pragmas), 1))
    left = [advice for _, advice in known if advice.gain is not None and not (advice.pays or advice.may_pay)]
    did_not_run = [advice for _, advice in known if counted and advice.gain is None]
    listed = known if arguments.all else [(n, a) for n, a in known if a not in (*left, *did_not_run)]
    alike: dict[tuple[Pragma, ...], list[str]] = {}
    for _, advice in listed:
        alike.setdefault(advice.pragmas, []).append(advice.shown)
    listed = [(n, a) for n, a in listed if alike[a.pragmas][0] == a.shown]
    for number, advice in listed[: arguments.top]:
        _print_advice(number, advice, alike[advice.pragmas][1:], out)
    if len(listed) > arguments.top:
        out.print(f"{len(listed) - arguments.top} more (--top)\n")
    if not arguments.all:
        _print_names("Better left alone (--all shows what was tried):", left, out)
        _print_names("Not run in the profile:", did_not_run, out)
    for advice in found:
        if not advice.pragmas:
            _print_refusals(advice, out)
    if not counted and any(advice.gain is None for _, advice in known):
        out.print(Text(f"To see what the kernels marked `{_UNTOLD}` would gain, {_COUNT}."), soft_wrap=True)


def _print_names(title: str, found: Sequence[Advice], out: Console) -> None:
    if not found:
        return
    out.print(Text(title, style="bold"))
    for advice in found:
        out.print(Text(f"  {advice.shown}: {_gain(advice)}"), soft_wrap=True)
    out.print()


def _print_advice(number: int, advice: Advice, others: Sequence[str], out: Console) -> None:
    """Print a suggestion; ``others`` are kernels that get the same pragmas, mostly instances of one template."""
    out.print(Text(f"{number}. {advice.shown}: {_gain(advice)}", style="bold"), soft_wrap=True)
    for pragma in advice.pragmas:
        out.print(Text(f"   {pragma.place}"), soft_wrap=True)
        out.print(Text(f"     {pragma.text}"), soft_wrap=True)
        out.print(Text(f"     {pragma.place.line_text.strip()}"), soft_wrap=True)
    if others:
        out.print(Text(f"   The same pragmas apply to {', '.join(others)}."), soft_wrap=True)
    for pragma, promise in promises_of(advice):
        out.print(Text(f"   You vouch for {pragma.place}: {promise}."), soft_wrap=True)
    if any(pragma.block for pragma in advice.pragmas):
        out.print(
            "   No block was larger in the run than `block` says; launches with a larger one will fail."
        )
    for pragma, judgement in advice.judgements:
        for line in lines_of(judgement, pragma.place if len(advice.judgements) > 1 else None):
            out.print(Text(f"   {line}"), soft_wrap=True)
    if advice.best is not None and advice.best.profile and not promises_of(advice):
        found = ": `ccc-nvcc --ccc-find` rewrites it without pragmas" if advice.pays else ""
        out.print(f"   Nothing to vouch for{found}.", soft_wrap=True)
    if advice.may_pay:
        out.print(f"   {_MEASURE_ALL if advice.gains_enough else _MEASURE}", soft_wrap=True)
    loop = advice.best.loop if advice.best is not None else None
    if loop is not None:
        context = max(report.context_bytes for report in advice.best.reports)  # type: ignore[union-attr]
        task = f", {context} bytes of context per task" if context else ""
        out.print(Text(f"   Form: {loop.form}{task}."), soft_wrap=True)
    if advice.engagement:
        out.print(Text(f"   Or CTE, for blocks of BLOCK threads: {advice.engagement}"), soft_wrap=True)
    for place, alternative in enumerate(advice.alternatives, 2):
        _print_alternative(f"{number}.{place}", alternative, promises_of(advice), out)
    out.print()


def _print_alternative(
    number: str, advice: Advice, vouched: Sequence[tuple[Pragma, str]], out: Console
) -> None:
    """Print an alternative, with those promises that are not among what is ``vouched`` for anyway."""
    out.print(
        Text(f"   {number}. Alternative, worth measuring: predicted {advice.gain:.2f}x"), soft_wrap=True
    )
    for pragma in advice.pragmas:
        out.print(Text(f"     {pragma.place}: {pragma.text}"), soft_wrap=True)
    for pragma, promise in promises_of(advice):
        if (pragma, promise) not in vouched:
            out.print(Text(f"     You vouch for {pragma.place}: {promise}."), soft_wrap=True)
    for pragma, judgement in advice.judgements:
        if judgement.state is State.CONTRADICTED:
            for line in lines_of(judgement, pragma.place):
                out.print(Text(f"     {line}"), soft_wrap=True)


def _as_remark(advice: Advice) -> Diagnostic:
    """A suggestion whose promises are not contradicted, at the line of its first pragma."""
    first, *others = advice.pragmas
    vouched = [f"{pragma.place}: {promise}" for pragma, promise in promises_of(advice)]
    known = [
        f"independence of the iterations at {pragma.place} is {in_words(judgement)}"
        for pragma, judgement in advice.judgements
    ]
    return Diagnostic(
        "CCC120",
        Severity.REMARK,
        f"`{advice.shown}` is worth annotating: {_gain(advice)}",
        first.place,
        why="; ".join((f"you vouch for {'; '.join(vouched)}", *known)) if vouched else "",
        help=f"write `{first.text}` above this line",
        notes=(
            *((f"and `{pragma.text}` above this one", pragma.place) for pragma in others),
            *(note for _, judgement in advice.judgements for note in notes_of(judgement)),
        ),
    )


def _gain(advice: Advice) -> str:
    if advice.gain is None:
        return _UNTOLD
    assumed = "" if advice.best is None or not advice.best.sure else ", from assumed counts"
    saved = advice.saved_ns
    time = f", saves {saved / 1e6:,.3f} of {(advice.time_ns or 0) / 1e6:,.3f} ms" if saved is not None else ""
    return f"predicted {advice.gain:.2f}x{time}{assumed}"


def _print_refusals(advice: Advice, out: Console) -> None:
    why = (
        "nothing in it can be rewritten"
        if advice.refusals
        else "it has no divergent loop or branch to collect"
    )
    out.print(Text(f"{advice.shown}: {why}", style="bold"), soft_wrap=True)
    for diagnostic in advice.refusals[:3]:
        out.print(Text(render(diagnostic)), soft_wrap=True)
    out.print()


def _data(found: Iterable[Advice]) -> dict[str, Any]:
    return {"schema": SCHEMA, "cccopt": __version__, "kernels": [_kernel(advice) for advice in found]}


def _kernel(advice: Advice) -> dict[str, Any]:
    return {
        "file": advice.unit,
        "kernel": advice.kernel,
        "shown": advice.shown,
        "time_ns": advice.time_ns,
        "pays": advice.pays,
        "may_pay": advice.may_pay,
        **_annotations(advice),
        "alternatives": [_annotations(alternative) for alternative in advice.alternatives],
        "tried": len(advice.tried),
        "refusals": [{"code": d.code, "message": d.message, "help": d.help} for d in advice.refusals],
    }


def _annotations(advice: Advice) -> dict[str, Any]:
    """The pragmas of a suggestion or of an alternative, and what is known about them."""
    return {
        "gain": advice.gain,
        "pragmas": [
            {
                "pragma": pragma.text,
                "file": pragma.place.file,
                "line": pragma.place.position.line,
                "column": pragma.place.position.column,
            }
            for pragma in advice.pragmas
        ],
        "vouched": [
            {"line": pragma.place.position.line, "for": text} for pragma, text in promises_of(advice)
        ],
        "independence": [
            {"line": pragma.place.position.line, **as_data(judgement)}
            for pragma, judgement in advice.judgements
        ],
        "cte": advice.engagement,
        "form": advice.best.loop.form if advice.best is not None and advice.best.loop is not None else "",
    }
