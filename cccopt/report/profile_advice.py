"""What is worth annotating, on the page of a run: shown with each kernel, and at the lines that pragmas go above."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cccopt.report.html import Child, Markup, element, markup, table
from cccopt.report.profile_view import SourceView


@dataclass(frozen=True, slots=True)
class SuggestedPragma:
    """A ``#pragma ccc`` line, to be written above ``line`` of ``file``; ``promise`` is what the user vouches for by
    writing it (empty: nothing), and ``known`` what is known about that.
    """

    text: str
    file: str
    line: int
    promise: str = ""
    known: str = ""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What to write for a ``kernel`` (its PTX name): ``gain`` is the prediction in words, ``pays`` says whether it is
    worth annotating, and ``may_pay`` whether it is worth measuring. Without pragmas, ``refusals`` say why.
    """

    kernel: str
    gain: str
    pays: bool
    pragmas: tuple[SuggestedPragma, ...] = ()
    refusals: tuple[str, ...] = ()
    may_pay: bool = False


def advice(suggestions: Sequence[Suggestion], kernel: str) -> Markup | None:
    """What is suggested for a kernel; None if it was not examined."""
    return markup([_shown(each) for each in suggestions if each.kernel == kernel]) or None


def _shown(suggestion: Suggestion) -> list[Child]:
    if not suggestion.pragmas:
        refused = [element("li", reason) for reason in suggestion.refusals]
        if not refused:
            return [element("p", "It has no divergent loop or branch to collect.")]
        return [element("p", "Nothing in it can be rewritten:"), element("ul", refused)]
    left = "Worth measuring" if suggestion.may_pay else "Better left alone"
    verdict = "Worth annotating" if suggestion.pays else left
    rows = [
        element(
            "tr",
            element("td", f"{os.path.basename(pragma.file)}:{pragma.line}", class_="text"),
            element("td", element("span", pragma.text, class_="code"), class_="wrap"),
            element("td", pragma.promise or "nothing", class_="wrap"),
            element("td", pragma.known, class_="wrap"),
        )
        for pragma in suggestion.pragmas
    ]
    heads = ("above line", "pragma", "you vouch that", "status")
    return [
        element("p", element("b", f"{verdict}: "), f"{suggestion.gain}."),
        table(heads, rows, texts=heads),
    ]


def by_place(
    suggestions: Sequence[Suggestion], kernel: str, view: SourceView
) -> Mapping[tuple[str, int], Sequence[str]]:
    """The pragmas that pay for a kernel, by file, as the run names it, and by line, as numbered in the source now."""
    names = {os.path.realpath(file): file for file in view.names}
    found: dict[tuple[str, int], list[str]] = defaultdict(list)
    for suggestion in suggestions:
        for pragma in suggestion.pragmas if suggestion.pays and suggestion.kernel == kernel else ():
            if (file := names.get(os.path.realpath(pragma.file))) is not None:
                found[file, pragma.line].append(f"write above: {pragma.text}")
    return found
