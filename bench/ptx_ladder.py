"""How PTX of all producers fares on the ladder: ``python -m bench.ptx_ladder [FOLDER...]``, in the checkout.

Takes the ``*.ptx`` of each folder, or of every folder of the built corpus (``make corpus``), climbs all rungs of
``tests/corpus/ladder.py`` and prints, by producer, how many files hold on each. Status 1 where one does not.
``--constants`` also counts the functions whose machine code stays as it was, not only the same under other constants,
when constants are written to dead registers; ``--rungs a,b`` climbs some; ``--jobs N`` sets the number of processes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.corpus.build import WORKERS, folder, toolkits
from tests.corpus.ladder import RUNGS, Outcome, climb, unchanged_by_constants


@dataclass(frozen=True, slots=True)
class Climbed:
    """A file with its outcomes; ``unchanged`` counts (of all) sections with constants before writes, everywhere."""

    path: Path
    outcomes: tuple[Outcome, ...]
    unchanged: tuple[int, int, int]
    seconds: float


def climbed(tools: Sequence[str], rungs: Sequence[str], constants: bool, path: Path) -> Climbed:
    """What became of one file."""
    start = time.perf_counter()
    text = path.read_text(encoding="utf-8")
    outcomes = climb(text, tools, rungs)
    unchanged = (0, 0, 0)
    if constants and not any(outcome.problem for outcome in outcomes):
        before, sections = unchanged_by_constants(text, tools, heads=False)
        unchanged = (before, unchanged_by_constants(text, tools, heads=True)[0], sections)
    return Climbed(path, outcomes, unchanged, time.perf_counter() - start)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a file falls off a rung."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--rungs", default=",".join(RUNGS))
    parser.add_argument("--jobs", type=int, default=WORKERS)
    parser.add_argument("--constants", action="store_true")
    options = parser.parse_args(arguments)
    rungs = options.rungs.split(",")
    folders = options.folders or sorted(p for p in folder().glob("*") if p.is_dir())
    console = Console(width=None if sys.stdout.isatty() else 120)
    if not folders:
        console.print(f"nothing in {folder()}: `make corpus` builds it")
        return 1
    tools = [str(nvcc.tool("ptxas")) for nvcc in toolkits()]
    table = Table("producer", "files", "MB", *rungs, "s", title="files that hold on each rung")
    problems: Counter[str] = Counter()
    unchanged = [0, 0, 0]
    with ProcessPoolExecutor(options.jobs) as pool:
        for place in folders:
            paths = sorted(place.glob("*.ptx"))
            done = list(pool.map(partial(climbed, tools, rungs, options.constants), paths))
            held = Counter(o.rung for c in done for o in c.outcomes if not o.problem)
            size = sum(path.stat().st_size for path in paths)
            scores = (f"[{'green' if held[r] == len(paths) else 'red'}]{held[r]}[/]" for r in rungs)
            seconds = sum(c.seconds for c in done)
            table.add_row(place.name, str(len(paths)), f"{size / 1e6:.1f}", *scores, f"{seconds:.0f}")
            unchanged = [a + sum(c.unchanged[i] for c in done) for i, a in enumerate(unchanged)]
            for c in done:
                for outcome in c.outcomes:
                    if outcome.problem:
                        problems[outcome.rung] += 1
                        console.print(
                            f"{place.name}/{c.path.name}: {outcome.rung}: {outcome.problem}", markup=False
                        )
    console.print(table)
    if options.constants:
        console.print(
            f"of {unchanged[2]} functions {unchanged[0]} keep their code with constants ahead of writes, "
            f"{unchanged[1]} with constants at the heads of blocks, too"
        )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
