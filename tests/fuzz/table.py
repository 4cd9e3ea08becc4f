"""The table at the end of a hunt."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from tests.fuzz.gpu import Gpu
    from tests.fuzz.hunt import File

_COLUMNS = (
    "split",
    "idle lanes",
    "carried",
    "in lane",
    "stack",
    "global stack",
    "in place",
    "expanded",
    "sorted",
    "ran push",
    "ran take",
    "ran drain",
    "ran expand",
    "ran whole",
    "ran serve",
)
_ROWS = ("for", "grid", "if", "else", "switch", "for variable", "while", "recursive")


class Tally:
    """Counts files of judged kernels."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.modes: Counter[tuple[str, str]] = Counter()
        self.cells: Counter[tuple[str, str]] = Counter()
        self.seconds = 0.0
        self.files = 0
        self.invalid = 0

    def add(self, found: File) -> None:
        self.files += 1
        self.invalid += bool(found.failure)
        self.seconds += found.seconds
        for outcome in found.outcomes:
            self.outcomes[outcome.verdict] += 1
            what = outcome.verdict if outcome.verdict in ("accepted", "declined") else "refused"
            self.modes[outcome.kernel.mode.value, "FOUND" if outcome.find else what] += 1
            self.cells.update(outcome.cells)

    @property
    def kernels(self) -> int:
        return self.outcomes.total()

    @property
    def finds(self) -> int:
        """Kernels with which something is wrong."""
        return sum(
            n for verdict, n in self.outcomes.items() if verdict.isupper() and not verdict.startswith("CCC")
        )

    def data(self, gpu: Gpu | None) -> dict[str, Any]:
        """All counts as JSON data."""
        return {
            "gpu": gpu
            and {
                "device": gpu.ready.gpu,
                "kernels": gpu.kernels,
                "runs": gpu.runs,
                "finds": dict(gpu.outcomes),
            },
            "files": self.files,
            "files not compiled": self.invalid,
            "kernels": self.kernels,
            "cpu seconds": round(self.seconds, 1),
            "outcomes": dict(self.outcomes.most_common()),
            "modes": {f"{mode}, {what}": n for (mode, what), n in sorted(self.modes.items())},
            "accepted by pragma or clause, and form": {
                row: {column: n for (r, column), n in sorted(self.cells.items()) if r == row}
                for row in dict.fromkeys(r for r, _ in sorted(self.cells))
            },
        }

    def print(self, seconds: float, gpu: Gpu | None) -> None:
        """The table, for people."""
        console = Console(width=160)
        each = self.seconds / max(self.kernels, 1)
        console.print(
            f"{self.kernels} kernels in {self.files} files, {seconds:.0f} s, {each:.2f} CPU seconds a kernel;"
            f" {self.invalid} files did not compile"
        )
        for verdict, number in self.outcomes.most_common():
            console.print(f"  {verdict:10} {number:7} {100 * number / max(self.kernels, 1):5.1f} %")
        for (mode, what), number in sorted(self.modes.items()):
            console.print(f"  {mode:10} {what:10} {number:7}")
        if gpu is not None:
            finds = ", ".join(f"{n} {what}" for what, n in gpu.outcomes.items()) or "no finds"
            console.print(f"{gpu.kernels} kernels, {gpu.runs} runs on {gpu.ready.gpu}: {finds}")
        table = Table("accepted, by form", *_COLUMNS)
        rows = [*_ROWS, *sorted({row for row, _ in self.cells} - {*_ROWS})]
        for row in rows:
            table.add_row(row, *(str(self.cells[row, column] or "") for column in _COLUMNS))
        console.print(table)
