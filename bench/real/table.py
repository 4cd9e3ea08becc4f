"""The table of the gallery: what became of each kernel, and what that does to its time and to the compiler's.

`python -m bench.real.table RESULTS.json` prints the table of `docs/gallery.md`.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ABSENT = "-"
IN_LANE = "in lane"
"""The form in which nothing is collected: each lane runs its own instructions, in another interleaving."""
MEASURED = ("always", "auto", "collected")
TITLES = (
    "program",
    "kernel",
    "annotations (--ccc=always)",
    *(f"plain/{each}" for each in MEASURED),
    "compile time",
)


def _annotations(kernel: dict[str, Any]) -> str:
    """`for split; 2 x while refused CCC034`, one after the other."""
    words = [" ".join(filter(None, (a["pragma"].split()[0], _state(a)))) for a in kernel["annotations"]]
    runs = [(word, len([*equal])) for word, equal in groupby(words)]
    return "; ".join(word if times == 1 else f"{times} x {word}" for word, times in runs)


def _state(annotation: dict[str, Any]) -> str:
    state, detail = annotation["state"], annotation["detail"]
    return detail if state == "rewritten" else f"{state} {detail}".strip()


def speedups(result: dict[str, Any], variant: str) -> dict[str, float]:
    """How many times as fast as the plain build, for each time printed; nothing where results are wrong."""
    runs = result["runs"]
    if variant not in runs or runs[variant]["wrong"] or runs["plain"]["wrong"]:
        return {}
    plain, ours = runs["plain"]["times"], runs[variant]["times"]
    return {name: plain[name] / ours[name] for name in plain if ours.get(name)}


def slowdown(result: dict[str, Any], variant: str) -> float | None:
    """How many times as long as plain nvcc the compiler takes."""
    builds = result["builds"]
    if not builds["plain"]["succeeded"] or not builds.get(variant, {}).get("succeeded"):
        return None
    return float(builds[variant]["seconds"] / builds["plain"]["seconds"])


def _gain(result: dict[str, Any], variant: str, kernel: str) -> str:
    wrong = {each: run["wrong"] for each, run in result["runs"].items() if run["wrong"]}
    if "plain" in wrong:
        return f"plain: {wrong['plain']}"
    if variant in wrong:
        return f"WRONG: {wrong[variant]}"
    gains = speedups(result, variant)
    if kernel in gains:
        return f"{gains[kernel]:.2f}"
    if not gains:
        return ABSENT
    return f"{statistics.geometric_mean(gains.values()):.2f} ({', '.join(gains)})"


def _rows(result: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    slower = slowdown(result, "always")
    if not result["builds"]["plain"]["succeeded"]:
        yield result["program"], ABSENT, "plain nvcc does not build it", *(ABSENT for _ in TITLES[3:])
        return
    # Builds of one variant alone may have been asked for.
    for kernel in next(iter(result["kernels"].values()), ()):
        yield (
            result["program"],
            kernel["kernel"],
            _annotations(kernel),
            *(_gain(result, each, kernel["kernel"]) for each in MEASURED),
            ABSENT if slower is None else f"{slower:.2f}",
        )


def _collected(kernels: list[dict[str, Any]]) -> int:
    return sum(not any(IN_LANE in each["detail"] for each in kernel["annotations"]) for kernel in kernels)


def summary(results: list[dict[str, Any]]) -> str:
    """How many kernels are accepted, and the means of what was measured."""
    kernels = [kernel for each in results for kernel in each["kernels"].get("always", ())]
    accepted = [kernel for kernel in kernels if kernel["accepted"]]
    parts = [f"{len(accepted)} of {len(kernels)} kernels accepted, {_collected(accepted)} of them collected"]
    legal = [
        kernel for each in results for kernel in each["kernels"].get("collected", ()) if kernel["accepted"]
    ]
    if legal:
        parts.append(f"{_collected(legal)} are collected where that is asked for")
    for variant in MEASURED:
        gains = [gain for each in results for gain in speedups(each, variant).values()]
        if gains:
            parts.append(
                f"{variant}: {statistics.geometric_mean(gains):.3f} times the speed of plain"
                f" (geometric mean of {len(gains)})"
            )
    slower = [ratio for each in results if (ratio := slowdown(each, "always")) is not None]
    if slower:
        parts.append(
            f"compile time: median {statistics.median(slower):.2f} times nvcc's, at most {max(slower):.2f}"
        )
    return "; ".join(parts)


def show(results: list[dict[str, Any]], console: Console) -> None:
    """Print the table and a summary."""
    table = Table(title="Other people's programs")
    for title in TITLES:
        table.add_column(title)
    for result in results:
        for row in _rows(result):
            table.add_row(*row)
    console.print(table)
    console.print(summary(results))


def markdown(results: list[dict[str, Any]]) -> str:
    """The table and the summary as Markdown; without columns for times where nothing has run."""
    lines = [TITLES, ("---",) * len(TITLES), *(row for result in results for row in _rows(result))]
    if not any(result["runs"] for result in results):
        lines = [(*line[:3], line[-1]) for line in lines]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{table}\n\n{summary(results)}.\n"


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text())), end="")
