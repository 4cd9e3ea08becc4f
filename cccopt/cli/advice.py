"""What `cccopt advise` says of its suggestions: on a terminal, as JSON, as remarks, and on a page."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from cccopt.advising.judgement_words import as_data, in_words, lines_of, notes_of
from cccopt.advising.pragmas import Pragma
from cccopt.advising.suggestions import Advice, promises_of
from cccopt.ccc.legality.independence import State
from cccopt.ccc.outcome.choices import spelled
from cccopt.ccc.profitability.model import IN_LANE_GAIN, LEAST_GAIN, SAFE_GAIN
from cccopt.diagnostic import Diagnostic, Severity, render
from cccopt.report.profile_advice import SuggestedPragma, Suggestion
from cccopt.version import __version__

SCHEMA = 1
"""The version of the JSON's layout."""

_UNTOLD = "only a run can tell"

_MEASURE = (
    f"Worth measuring: `auto` rewrites it only if at least {SAFE_GAIN}x is predicted ({LEAST_GAIN}x if it is expanded,"
    f" {IN_LANE_GAIN}x in the in-lane form), or if `cccopt tune` has measured a gain."
)
_MEASURE_ALL = (
    "Worth measuring: with these counts, `auto` leaves at least part of it as it is (`cccopt explain` says why), unless"
    " `cccopt tune` has measured a gain."
)

COUNT = (
    "build with `ccc-nvcc --ccc-candidates --ccc-instrument`, then run `cccopt profile -o RUN.json -- PROGRAM`"
    " and `cccopt advise RUN.json`"
)
"""How to count the candidates of a program."""


def suggestion_of(advice: Advice) -> Suggestion:
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


def print_all(found: Sequence[Advice], arguments: argparse.Namespace, out: Console, counted: bool) -> None:
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
        out.print(Text(f"To see what the kernels marked `{_UNTOLD}` would gain, {COUNT}."), soft_wrap=True)


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
        out.print(Text(f"   You vouch that {promise} ({pragma.place})."), soft_wrap=True)
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
        out.print(Text(f"   Form: {spelled(loop.form)}{task}."), soft_wrap=True)
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
            out.print(Text(f"     You vouch that {promise} ({pragma.place})."), soft_wrap=True)
    for pragma, judgement in advice.judgements:
        if judgement.state is State.CONTRADICTED:
            for line in lines_of(judgement, pragma.place):
                out.print(Text(f"     {line}"), soft_wrap=True)


def as_remark(advice: Advice) -> Diagnostic:
    """A suggestion whose promises are not contradicted, at the line of its first pragma."""
    first, *others = advice.pragmas
    vouched = [f"{promise} ({pragma.place})" for pragma, promise in promises_of(advice)]
    known = [
        f"independence of the iterations at {pragma.place} is {in_words(judgement)}"
        for pragma, judgement in advice.judgements
    ]
    return Diagnostic(
        "CCC120",
        Severity.REMARK,
        f"`{advice.shown}` is worth annotating: {_gain(advice)}",
        first.place,
        why="; ".join((f"you vouch that {'; '.join(vouched)}", *known)) if vouched else "",
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
    within = f" ({advice.gain_range[0]:.2f}x to {advice.gain_range[1]:.2f}x)" if advice.gain_range else ""
    return f"predicted {advice.gain:.2f}x{within}{time}{assumed}"


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


def data_of(found: Iterable[Advice]) -> dict[str, Any]:
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
        "gain_range": advice.gain_range,
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
