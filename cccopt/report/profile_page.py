"""A run as one self-contained HTML file: kernels by time, then each with its worst lines, branches, loops, marked
regions and source.

The page is complete without its script, which adds keys and sorting. Its content security policy admits only this style
and this script, so no text of a source can load or run anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from string import Template
from typing import Any

from cccopt.ccc.profitability.decisions import Decisions
from cccopt.profiling.run_file import BranchCount, FunctionRun, LineCount, LoopCount, RunFile
from cccopt.profiling.sources import Source
from cccopt.report.html import Child, Markup, cell, element, markup, soft, table
from cccopt.report.profile_advice import Suggestion, advice, by_place
from cccopt.report.profile_regions import measured, region_table
from cccopt.report.profile_source import SourceTables, bar, legend
from cccopt.report.profile_view import (
    SourceView,
    binned,
    duration,
    each,
    each_or_none,
    efficiency,
    efficiency_text,
    idle_time,
    iterations,
    iterations_text,
    launch_facts,
    line_heads,
    number,
    ordered,
    percent,
    resources,
    sectors,
    share,
    share_text,
    summary,
    watched,
    worst_lines,
)
from cccopt.text import quantity, shortened
from cccopt.version import __version__

MOST_KERNELS = 40
"""The most kernels that are shown with their source; the table has all of them."""

_MOST_LINES = 8
_MOST_BRANCHES = 10


def page(
    run: RunFile,
    sources: Mapping[str, Source],
    *,
    title: str = "",
    reports: Sequence[Mapping[str, Any]] = (),
    suggestions: Sequence[Suggestion] = (),
    decisions: Decisions | None = None,
) -> str:
    """Make a page of a run, as ``cccopt profile --html`` does.

    Args:
        run: The run.
        sources: The texts of the files that it names (`cccopt.profiling.sources.on_disk`).
        title: The program's name.
        reports: The reports of ``--ccc-report``, which show what became of marked regions.
        suggestions: What `cccopt advise` found, shown with the kernels that they are for.
        decisions: What `cccopt tune` measured for the kernels.

    Returns:
        One HTML document that loads nothing.
    """
    heading = f"{title}: a counted run" if title else "A counted run"
    content = _Page(run, SourceView(run, sources), reports, suggestions, decisions)
    style, script = _asset("css"), _asset("js")
    return Template(_asset("html")).substitute(
        version=__version__,
        title=markup(heading),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        body=markup([element("header", content.head(heading)), element("main", content.main())]),
    )


def _asset(kind: str) -> str:
    return (files("cccopt.report") / "assets" / f"profile_page.{kind}").read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@dataclass(frozen=True)
class _Page:
    run: RunFile
    view: SourceView
    reports: Sequence[Mapping[str, Any]]
    suggestions: Sequence[Suggestion]
    decisions: Decisions | None

    @cached_property
    def functions(self) -> list[FunctionRun]:
        return ordered(self.run)

    @cached_property
    def shown(self) -> list[FunctionRun]:
        """The functions that have a section of their own."""
        return [f for f in self.functions if f.warps][:MOST_KERNELS]

    @cached_property
    def _has_resources(self) -> bool:
        return any(f.registers is not None or f.shared is not None for f in self.functions)

    def head(self, heading: str) -> Iterator[Child]:
        yield element("h1", heading)
        yield element("p", f"{summary(self.run)}; cccopt {self.run.cccopt}", class_="soft")
        for note in (*self.run.notes, *self.view.remarks()):
            yield element("p", element("b", "Note: "), note, class_="notice")
        if self.run.devices == ("emulator",):
            said = "Counted in PTX by the emulator: no times, and ptxas may turn branches into predicated instructions."
            yield element("p", said, class_="notice")

    def main(self) -> Iterator[Child]:
        yield element("h2", "Kernels", id="kernels", tabindex=-1)
        yield element(
            "p",
            "A warp instruction has 32 lane slots; those in which no lane is active are idle. Idle time is a kernel's "
            "time multiplied by its share of idle slots. Memory-bound kernels may gain less than that.",
            class_="soft",
        )
        yield element("div", self._kernels(), class_="scroll")
        yield element(
            "p",
            element("button", "Keys", type="button", data_opens="keys", hidden=True),
            class_="screen",
        )
        if any(f.warps for f in self.functions):
            yield element("h3", "Colors in the source")
            yield legend()
            said = (
                "Idle is the share of the kernel's lane slots that are idle on this line; instructions is the line's "
                "share of the kernel's warp instructions. "
                "Efficiency is the "
                "share of lanes active in the line's own instructions. A branch splits a warp in which some lanes take "
                "it and others do not. Compilers often invert conditions, so the lanes that take it may be "
                "those for which the condition in the source is false."
            )
            yield element("p", said, class_="soft")
        for index, function in enumerate(self.shown, 1):
            yield self._kernel(function, f"k{index}")
        rest = sum(bool(f.warps) for f in self.functions) - len(self.shown)
        if rest:
            yield element(
                "p",
                f"{rest:,} more {'kernel is' if rest == 1 else 'kernels are'} only in the table.",
                class_="notice",
            )

    # --- the table of kernels ---

    def _kernels(self) -> Markup:
        timed = self.run.time_ns is not None
        names: list[tuple[str, bool]] = [("kernel", True)]
        names += [("time", False), ("share", False)] if timed else [("share", False)]
        names += [
            ("busy and idle", True),
            ("launches", False),
            ("warp instructions", False),
            ("efficiency", False),
        ]
        names += [("idle", False)] + ([("idle time", False)] if timed else [])
        names += [("registers", False), ("shared bytes", False)] if self._has_resources else []
        rows = [(f.time_ns or 0, f.warps, self._row(f)) for f in self.functions]
        rows += [(k.time_ns, 0, self._uncounted(k.name, k.launches, k.time_ns)) for k in self.run.uncounted]
        rows.sort(key=lambda row: (-row[0], -row[1]))
        heads = [element("th", name, scope="col", class_="text" if text else None) for name, text in names]
        return element(
            "table",
            element("caption", "Kernels, the longest first", class_="unseen"),
            element("thead", element("tr", heads)),
            element("tbody", [row for _, _, row in rows]),
            class_="sortable",
        )

    def _row(self, function: FunctionRun) -> Markup:
        shown: Child = shortened(function.shown, 300)
        if function in self.shown:
            shown = element("a", shown, href=f"#k{self.shown.index(function) + 1}")
        name = cell(
            [shown, " ", None if function.kernel else soft("(called by kernels)")], function.shown, "name"
        )
        if not function.counted:
            return self._without_counts(name, function.launches, function.time_ns)
        idle, lost = function.idle_share, idle_time(function)
        part = self._share(function)
        filled = part * (1 - (idle or 0.0))
        cells = [
            *self._times(function.time_ns, part),
            cell(bar(filled, part - filled), part, "text"),
            cell(number(function.launches), function.launches),
            cell(number(function.warps), function.warps),
            cell(efficiency_text(function), None if idle is None else 1 - idle),
            cell(percent(idle), idle),
        ]
        if self.run.time_ns is not None:
            cells.append(cell(duration(lost), lost))
        if self._has_resources:
            cells.append(cell(resources(function.registers, function.registers_counted), function.registers))
            cells.append(cell(resources(function.shared, function.shared_counted), function.shared))
        return element("tr", name, cells)

    def _share(self, function: FunctionRun) -> float:
        """A function's share of the time, or of the instructions if no times are known."""
        if self.run.time_ns is not None:
            return share(function.time_ns or 0, self.run.time_ns)
        return share(function.warps, sum(f.warps for f in self.functions))

    def _times(self, time: int | None, part: float) -> list[Markup]:
        share_cell = cell(percent(part), part)
        return [share_cell] if self.run.time_ns is None else [cell(duration(time), time), share_cell]

    def _uncounted(self, name: str, launches: int, time: int) -> Markup:
        return self._without_counts(cell(shortened(name, 300), name, "name"), launches, time)

    def _without_counts(self, name: Markup, launches: int | None, time: int | None) -> Markup:
        part = share(time or 0, self.run.time_ns or 0)
        row = [
            *self._times(time, part),
            cell(soft("not counted"), None, "text"),
            cell(number(launches), launches),
        ]
        rest = 3 + (self.run.time_ns is not None) + 2 * self._has_resources
        return element("tr", name, row, [element("td")] * rest)

    # --- one kernel ---

    def _kernel(self, function: FunctionRun, anchor: str) -> Markup:
        places = by_place(self.suggestions, function.name, self.view)
        tables = SourceTables(function, self.view, anchor, places)
        facts = [
            f"{number(function.warps)} warp instructions",
            f"{percent(function.idle_share)} of lane slots idle",
        ]
        if function.launches is not None:
            facts.insert(0, quantity(function.launches, "launch", "launches"))
        if function.time_ns is not None:
            facts.insert(0, duration(function.time_ns))
        facts += launch_facts(self.run, function)
        name = element("h2", shortened(function.shown, 300), id=anchor, tabindex=-1, class_="name")
        heading = element("header", name, element("p", ", ".join(facts), class_="soft"))
        called = None
        if not function.kernel:
            called = element(
                "p", "Kernels call this function: the counts cover all its callers.", class_="soft"
            )
        regions = [region_table(self.run, function, self.reports), measured(self.decisions, function)]
        parts = (
            _part("Suggestions", advice(self.suggestions, function.name)),
            _part("Where lanes idle", self._worst(function, tables)),
            _part("Marked regions", markup(regions)),
            _part("Loops", self._loops(function, tables)),
            _part("Branches", self._branches(function, tables)),
        )
        unit = element("p", "Compiled from ", element("span", function.unit, class_="code"), class_="soft")
        return element("section", heading, unit, called, parts, list(tables.markup()), class_="kernel")

    def _link(self, count: LineCount | BranchCount | LoopCount, tables: SourceTables) -> Markup:
        place = self.view.place(count)
        if not any((x.file, x.line) == (count.file, count.line) for x in tables.function.lines):
            return cell(place, place, "text")
        return cell(element("a", place, href=f"#{tables.row_name(count.file, count.line)}"), place, "text")

    def _worst(self, function: FunctionRun, tables: SourceTables) -> Markup | None:
        rows = []
        for line in worst_lines(function, _MOST_LINES):
            text = self.view.text(line.file, line.line)
            code = (
                soft("(no text)")
                if text is None
                else element("span", shortened(text.strip(), 120), class_="code")
            )
            idle, issued = share(line.idle, 32 * function.warps), share(line.warps, function.warps)
            cells = [
                cell(percent(idle), idle),
                cell(percent(issued), issued),
                cell(efficiency_text(function, line), efficiency(line.warps, line.lanes)),
            ]
            if watched(function):
                cells.append(cell(each_or_none(sectors(line)), sectors(line)))
            rows.append(element("tr", self._link(line, tables), cells, element("td", code, class_="wrap")))
        heads = ("line", "idle", "instructions", "efficiency", *line_heads(function), "source")
        return table(heads, rows, texts=("line", "source"))

    def _loops(self, function: FunctionRun, tables: SourceTables) -> Markup | None:
        rows = []
        for loop in sorted(function.loops, key=lambda x: x.lanes - 32 * x.warps):
            found, filled = iterations(loop), efficiency(loop.warps, loop.lanes)
            a_warp, a_lane = found or (None, None)
            cells = (
                cell(number(loop.entries), loop.entries),
                cell(iterations_text(function, loop, "warps", "entries"), a_warp),
                cell(iterations_text(function, loop, "lanes", "entered"), a_lane),
                cell(number(32 * loop.warps), loop.warps),
                cell(number(loop.lanes), loop.lanes),
                cell([efficiency_text(function, loop), " ", bar(filled or 0.0, 0.0, small=True)], filled),
            )
            rows.append(element("tr", self._link(loop, tables), cells))
        names = (
            "loop",
            "entries",
            "iterations per warp",
            "per lane",
            "iterations of all warps x 32",
            "of all lanes",
            "efficiency",
        )
        return table(names, rows, texts=("loop",))

    def _branches(self, function: FunctionRun, tables: SourceTables) -> Markup | None:
        rows = []
        ran = sorted((b for b in function.branches if b.warps), key=lambda b: -b.split)
        known = any(branch.histogram is not None for branch in ran)
        for branch in ran[:_MOST_BRANCHES]:
            split, taken = share(branch.split, branch.warps), share(branch.taken, branch.lanes)
            cells = [
                cell(number(branch.warps), branch.warps),
                cell(share_text(function, branch, "split", "warps"), split),
                cell(share_text(function, branch, "taken", "lanes"), taken),
                cell(each(branch.lanes / branch.warps), branch.lanes / branch.warps),
            ]
            if known:
                cells.append(element("td", _histogram(branch), class_="wrap"))
            rows.append(element("tr", self._link(branch, tables), cells))
        names = ["branch", "executions", "split", "lanes that take it", "lanes active"]
        names += ["executions by the number of lanes that take it"] if known else []
        shown = table(names, rows, texts=("branch", names[-1] if known else ""))
        left = len(ran) - _MOST_BRANCHES
        return markup(
            [
                shown,
                soft(f"Left out: {quantity(left, 'branch', 'branches')}, split less often.")
                if left > 0
                else None,
            ]
        )


def _histogram(branch: BranchCount) -> list[Child]:
    if branch.histogram is None:
        return [soft("not counted")]
    highest = max(branch.histogram) or 1
    bars = [
        element(
            "rect",
            x=3 * k + 0.3,
            y=f"{100 - 100 * n / highest:.2f}",
            width=2.4,
            height=f"{100 * n / highest:.2f}",
        )
        for k, n in enumerate(branch.histogram)
        if n
    ]
    text = ", ".join(f"{lanes}: {number(n)}" for lanes, n in binned(branch.histogram) if n)
    drawn = element(
        "svg",
        bars,
        element("line", x1=0, x2=99, y1=100, y2=100),
        class_="histogram",
        viewBox="0 0 99 100",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
    return [drawn, element("div", text, class_="note")]


def _part(heading: str, content: Markup | None) -> list[Markup]:
    if not content:
        return []
    return [element("h3", heading), element("div", content, class_="scroll")]
