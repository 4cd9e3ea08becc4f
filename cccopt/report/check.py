"""What a check found, for terminals: conflicts as diagnostics, benign races as a table."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cccopt.checking import Checked, Finding, counted
from cccopt.diagnostic import render
from cccopt.text import Place


def print_checked(subject: str, checked: Checked, console: Console, most: int) -> None:
    """Print the conflicts of ``subject``, at most ``most`` of them, the verdict, and the benign races."""
    conflicts, meetings = checked.conflicts, checked.meetings
    for conflict in conflicts[:most]:
        console.print(Text(f"{render(conflict.diagnostic())}\n"), soft_wrap=True)
    ran = f"{counted(checked.launches, 'launch', 'es')}, {counted(checked.iterations, 'iteration')} of marked loops"
    verdict = counted(len(conflicts), "conflict") if conflicts else "no conflict"
    left = f", {len(conflicts) - most} of them not shown" if len(conflicts) > most else ""
    style = "bold red" if conflicts else "bold"
    console.print(Text(f"{subject}: {verdict}{left} in {ran}", style=style), soft_wrap=True)
    if meetings:
        console.print(_table(meetings))
    console.print()


def _table(meetings: tuple[Finding, ...]) -> Table:
    table = Table(title="benign races", title_justify="left", box=None, header_style="bold")
    for name in ("loop", "lines", "how", "example"):
        table.add_column(name, overflow="fold")
    table.add_column("places", justify="right", no_wrap=True)
    for meeting in meetings:
        lines = dict.fromkeys(_line(access.place) for access in (meeting.first, meeting.second))
        loop = f"{_line(meeting.loop.place)}, {meeting.loop.pragma}"
        table.add_row(loop, ", ".join(lines), meeting.kind, meeting.where, f"{meeting.places:,}")
    return table


def _line(place: Place | None) -> str:
    return "?" if place is None else f"{Path(place.file).name}:{place.position.line}"
