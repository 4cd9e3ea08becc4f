"""The source of a kernel with heat beside each line: the files in which it ran, those with the most instructions first.

The counted lines of a file are shown, with a few around them, and those with suggestions. Colors come in five steps and
repeat what the figures beside them say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cccopt.profiling.run_file import LANES, BranchCount, FunctionRun, LineCount, LoopCount
from cccopt.report.html import Markup, element, markup
from cccopt.report.profile_view import (
    SAID,
    SourceView,
    by_line,
    each,
    each_or_none,
    efficiency,
    efficiency_text,
    iterations,
    line_heads,
    number,
    percent,
    sectors,
    share,
    worst_lines,
)
from cccopt.text import quantity, shortened

AROUND = 4
"""Lines that are shown before and after one that was counted."""

MOST_RANKED = 30
"""The most lines of a kernel that the keys step through."""

_LONGEST = 400
_STEPS = (0.001, 0.01, 0.05, 0.1, 0.2)
_MINOR = 0.01


@dataclass(frozen=True)
class SourceTables:
    """The tables of one function; the names of its rows begin with ``anchor``. ``suggested`` is what to write at a line
    of a file, as numbered in the source now.
    """

    function: FunctionRun
    view: SourceView
    anchor: str
    suggested: Mapping[tuple[str, int], Sequence[str]] = field(default_factory=dict)

    @cached_property
    def ranks(self) -> Mapping[tuple[str, int], int]:
        """The ranks, from 1, of the lines that leave the most lane slots idle."""
        worst = worst_lines(self.function, MOST_RANKED)
        return {(line.file, line.line): rank for rank, line in enumerate(worst, 1)}

    def row_name(self, file: str, line: int) -> str:
        """The name of a line's row, for links."""
        return f"{self.anchor}-{list(self.view.names).index(file) + 1}-{self.view.line(file, line)}"

    def markup(self) -> Iterator[Markup]:
        """A table for each file, those with the most instructions first."""
        files: dict[str, list[LineCount]] = defaultdict(list)
        for line in by_line(self.function):
            files[line.file].append(line)
        for file in sorted(files, key=lambda name: (-sum(x.warps for x in files[name]), name)):
            yield self._file(file, files[file])

    def _file(self, file: str, lines: Sequence[LineCount]) -> Markup:
        issued = share(sum(line.warps for line in lines), self.function.warps)
        head = f"{self.view.names[file]}: {percent(issued)} of the kernel's instructions"
        columns = (
            element("th", "line", scope="col"),
            element("th", "idle", scope="col"),
            element("th", "instructions", scope="col"),
            element("th", "efficiency", scope="col"),
            *(element("th", head, scope="col") for head in line_heads(self.function)),
            element("th", "source", scope="col", class_="text"),
        )
        table = element(
            "table",
            element("caption", f"Counts by line of {file}", class_="unseen"),
            element("thead", element("tr", columns)),
            element("tbody", list(self._rows(file, lines))),
            class_="source",
        )
        return element(
            "details",
            element("summary", head),
            element("p", file, class_="soft code"),
            self._notice(file),
            element("div", table, class_="scroll"),
            open=issued >= _MINOR,
        )

    def _notice(self, file: str) -> Markup | None:
        said = SAID.get(self.view.state(file))
        return (
            None if said is None else element("p", element("b", "Note: "), f"{file} {said}.", class_="notice")
        )

    def _rows(self, file: str, lines: Sequence[LineCount]) -> Iterator[Markup]:
        by_number = {self.view.line(file, line.line): line for line in lines}
        last = 0
        for shown in self._shown(file, list(by_number)):
            if shown > last + 1 and last:
                skipped = shown - last - 1
                text = quantity(skipped, "line")
                yield element(
                    "tr",
                    element("td", f"{text} without counts", colspan=5 + len(line_heads(self.function))),
                    class_="gap",
                )
            last = shown
            line = by_number.get(shown)
            yield self._plain(file, shown) if line is None else self._counted(file, shown, line)

    def _shown(self, file: str, counted: Sequence[int]) -> list[int]:
        """The numbers of the lines to show."""
        if file not in self.view.texts:
            return sorted(counted)
        lines = self.view.texts[file].lines
        end = len(lines) if lines[-1] else len(lines) - 1
        around = {n for line in counted for n in range(max(line - AROUND, 1), min(line + AROUND, end) + 1)}
        named = {line for name, line in self.suggested if name == file and line <= end}
        return sorted(around | named | set(counted))

    def _code(self, file: str, shown: int) -> str:
        """The text of a line by its number in the text."""
        if file not in self.view.texts:
            return ""
        lines = self.view.texts[file].lines
        return shortened(lines[shown - 1], _LONGEST) if shown <= len(lines) else ""

    def _plain(self, file: str, shown: int) -> Markup:
        return element(
            "tr",
            element("td", str(shown), class_="number"),
            element("td"),
            element("td"),
            element("td"),
            *(element("td") for _ in line_heads(self.function)),
            element("td", self._code(file, shown), *self._suggestions(file, shown), class_="code"),
        )

    def _counted(self, file: str, shown: int, line: LineCount) -> Markup:
        idle = share(line.idle, LANES * self.function.warps)
        issued = share(line.warps, self.function.warps)
        bar_of = efficiency(line.warps, line.lanes) or 0.0
        rank = self.ranks.get((file, line.line))
        said = f"{self.view.names[file]} line {shown}: {percent(idle)} of the kernel's lane slots idle here"
        amount = f"{number(line.warps)} warp instructions, {number(line.lanes)} thread instructions"
        return element(
            "tr",
            element("td", str(shown), class_="number"),
            element("td", percent(idle), class_=_heat("i", idle)),
            element("td", percent(issued), class_=_heat("w", issued), title=amount),
            element("td", efficiency_text(self.function, line), " ", bar(bar_of, 0.0, small=True)),
            *(
                element("td", each_or_none(sectors(line)), title=f"{number(line.requests)} requests")
                for _ in line_heads(self.function)
            ),
            element(
                "td",
                self._code(file, shown),
                *self._suggestions(file, shown),
                *self._notes(file, line.line),
                class_="code",
            ),
            id=self.row_name(file, line.line),
            tabindex=-1,
            data_rank=rank,
            data_said=said if rank else None,
        )

    def _suggestions(self, file: str, shown: int) -> Iterator[Markup]:
        for text in self.suggested.get((file, shown), ()):
            yield element("div", text, class_="note suggested")

    def _notes(self, file: str, line: int) -> Iterator[Markup]:
        for loop in self.function.loops:
            if (loop.file, loop.line) == (file, line) and loop.warps:
                yield element("div", loop_text(loop), class_="note")
        branches = [b for b in self.function.branches if (b.file, b.line) == (file, line) and b.warps]
        if branches:
            yield element("div", _branches_text(branches), class_="note")


def loop_text(loop: LoopCount) -> str:
    """The iterations of a loop per warp and per lane, in words."""
    found = iterations(loop)
    filled = f"{percent(efficiency(loop.warps, loop.lanes))} of lanes at work"
    if found is None:
        return f"loop: {number(loop.warps)} iterations of warps, {filled}"
    return f"loop: {each(found[0])} iterations per warp, {each(found[1])} per lane, {filled}"


def _branches_text(branches: Sequence[BranchCount]) -> str:
    warps, lanes = sum(b.warps for b in branches), sum(b.lanes for b in branches)
    split = percent(share(sum(b.split for b in branches), warps))
    if len(branches) > 1:
        return f"{len(branches)} branches: {split} of executions split"
    return f"branch: {split} of executions split, {percent(share(branches[0].taken, lanes))} of lanes jump"


def _heat(kind: str, value: float) -> str | None:
    step = sum(value >= bound for bound in _STEPS)
    return f"{kind}{step}" if step else None


def legend() -> Markup:
    """What the colors mean."""
    words = ("0.1", "1", "5", "10", "20")
    return markup(
        [
            element(
                "p",
                f"{name}, from: ",
                [
                    element("span", element("span", class_=f"swatch {kind}{step}"), f"{word} % ")
                    for step, word in enumerate(words, 1)
                ],
                class_="legend soft",
            )
            for name, kind in (("idle lane slots", "i"), ("instructions", "w"))
        ]
    )


def bar(filled: float, empty: float, *, small: bool = False) -> Markup:
    """A bar with a filled and an empty part, each a share of its length; the figures are beside it."""
    return element(
        "svg",
        element("rect", class_="busy", x=0, y=0, width=f"{100 * filled:.2f}", height=10),
        element("rect", class_="idle", x=f"{100 * filled:.2f}", y=0, width=f"{100 * empty:.2f}", height=10)
        if empty
        else None,
        class_="bar small" if small else "bar",
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
