"""What `ccc-nvcc --ccc-find` makes of the gallery without our pragmas: `python -m bench.real.found CHECKOUTS`.

Each program is built by nvcc and with its candidates counted, and run; the counts are the profile of `--ccc-find`.
Where that rewrites a kernel, the program is built with and without it once more, with `-fmad=false`: results must then
be equal bit by bit if all runs of the plain program agree. Times are those of the kernels' launches; the builds take
turns.

OUT/NAME/plain, found              the builds that are timed
OUT/NAME/plain-exact, found-exact  those with `-fmad=false`
OUT/NAME/run.json                  the counts
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.real.build import PLAIN
from bench.real.counted import COUNTS, built, count_candidates, fresh
from bench.real.measure import Run, fault, prepare, results, run, short_name
from bench.real.program import Program, read_programs
from bench.real.recipe import OURS, Recipe, read_recipe

FOUND, PLAIN_EXACT, FOUND_EXACT = "found", "plain-exact", "found-exact"
FILE = "found.json"
EXACT = "-fmad=false"


def make(program: Program, recipe: Recipe, checkouts: Sequence[Path], out: Path) -> dict[str, Any]:
    """Build a program in all ways; the kernels that were rewritten, and what went wrong, if anything did."""
    place = (out / program.name).absolute()
    place.mkdir(parents=True, exist_ok=True)
    kernels: list[str] = []
    wrong = prepare(recipe, place / "inputs") if recipe.prepare else ""
    (place / "inputs").mkdir(exist_ok=True)
    wrong = wrong or _build(program, recipe, checkouts, place / PLAIN, "nvcc")
    wrong = wrong or count_candidates(program, recipe, checkouts, place)
    find = f"ccc-nvcc --ccc-find --ccc-profile={place / COUNTS}"
    if not wrong:
        reports = place / FOUND / "reports"
        wrong = _build(program, recipe, checkouts, place / FOUND, f'{find} --ccc-report="{reports}/$$.json"')
        kernels = _rewritten(reports)
    if kernels and not wrong:
        wrong = _build(program, recipe, checkouts, place / PLAIN_EXACT, f"nvcc {EXACT}")
        wrong = wrong or _build(program, recipe, checkouts, place / FOUND_EXACT, f"{find} {EXACT}")
    return {"program": program.name, "kernels": kernels, "wrong": wrong}


def _build(program: Program, recipe: Recipe, checkouts: Sequence[Path], place: Path, command: str) -> str:
    (place / "reports").mkdir(parents=True, exist_ok=True)
    folder = fresh(program, recipe, checkouts, place)
    return "" if built(recipe, folder, place, f'exec {command} "$@"') else f"`{place.name}` is not built"


def _rewritten(reports: Path) -> list[str]:
    """The kernels with rewritten loops, in alphabetical order."""
    regions = [
        region
        for path in reports.glob("*.json")
        for unit in json.loads(path.read_text())["units"]
        for region in unit["regions"]
    ]
    return sorted({short_name(r["kernel"]) for r in regions if r["outcome"] == "rewritten"})


def measured(
    made: dict[str, Any], program: Program, recipe: Recipe, out: Path, given: argparse.Namespace
) -> dict[str, Any]:
    """The same with the times of the runs and what became of the results."""
    place = (out / program.name).absolute()

    def once(variant: str) -> Run:
        folder = place / variant / "tree" / program.folder
        return run(recipe, folder, place / "inputs", given.limit)

    runs: dict[str, list[Run]] = {PLAIN: [], FOUND: []}
    for _ in range(given.rounds):
        for variant, some in runs.items():
            some.append(once(variant))
    plain = runs[PLAIN][0]
    wrong = next((why for one in runs[FOUND] if (why := fault(recipe, one, plain))), "")
    exact = [results(recipe, once(PLAIN_EXACT)) for _ in range(given.plain_runs)]
    same = "not compared"
    if recipe.same and all(one == exact[0] for one in exact):
        same = "equal" if results(recipe, once(FOUND_EXACT)) == exact[0] else "not equal"
    elif recipe.same:
        same = "plain runs differ"
    return {
        **made,
        "wrong": (fault(recipe, plain, plain) and f"plain: {fault(recipe, plain, plain)}") or wrong,
        "exact": same,
        "speedups": {name: _speedup(runs, [name]) for name in made["kernels"]},
        "all": _speedup(runs, sorted({name for one in runs[PLAIN] for name in one.launches})),
        "ms": statistics.median(sum(one.launches.values()) for one in runs[PLAIN]) / 1e6,
    }


def _speedup(runs: dict[str, list[Run]], kernels: Sequence[str]) -> float:
    """Plain time / the other, of some kernels; NaN if one of them was not timed."""
    plain, found = (
        statistics.median(sum(one.launches.get(name, math.nan) for name in kernels) for one in runs[variant])
        for variant in (PLAIN, FOUND)
    )
    return plain / found if found else math.nan


def show(found: Sequence[dict[str, Any]], console: Console) -> None:
    """Print a line for each rewritten kernel, and the summary."""
    table = Table(box=None, pad_edge=False)
    for title in ("program", "kernel", "plain/found", "all kernels", "ms", "-fmad=false", "wrong"):
        table.add_column(title, justify="right" if title in ("plain/found", "all kernels", "ms") else "left")
    for each in found:
        for name, speedup in each.get("speedups", {}).items():
            row = (f"{speedup:.2f}", f"{each['all']:.2f}", f"{each['ms']:.2f}", each["exact"])
            table.add_row(each["program"], name, *row, each["wrong"])
    console.print(table)
    nothing = [each["program"] for each in found if not each["kernels"] and not each["wrong"]]
    console.print(f"{len(nothing)} programs with nothing to rewrite: {' '.join(nothing)}", soft_wrap=True)
    for each in found:
        if each["wrong"]:
            console.print(f"{each['program']}: {each['wrong']}", soft_wrap=True, markup=False)
        elif each["kernels"] and "all" not in each:
            console.print(f"{each['program']}: not run: {' '.join(each['kernels'])}", soft_wrap=True)


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(
        prog="python -m bench.real.found", description=(__doc__ or "").partition(":")[0]
    )
    options.add_argument("checkouts", nargs="+", type=Path, help="folders with the checkouts")
    options.add_argument(
        "--recipes", type=Path, default=OURS, help="the folder with NAME.toml (default: ours)"
    )
    options.add_argument("--only", action="append", default=[], metavar="NAME", help="this program alone")
    options.add_argument("--out", type=Path, default=Path("gallery"), help="where the builds go")
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="programs built at a time")
    options.add_argument("--rounds", type=int, default=5, help="timed runs of each build")
    options.add_argument(
        "--plain-runs", type=int, default=10, help="runs of the plain program that must agree"
    )
    options.add_argument("--limit", type=float, default=60, help="seconds for one run")
    options.add_argument("--budget", type=float, default=math.inf, help="seconds after which none is begun")
    options.add_argument("--built", action="store_true", help="run what an earlier call has built in --out")
    options.add_argument("--json", type=Path, metavar="FILE", help="write all results there")
    return options


def main() -> int:
    """Build, run, print; returns the exit status, 1 where a result is wrong."""
    given = parser().parse_args()
    start = time.monotonic()
    chosen = [
        (program, read_recipe(given.recipes / f"{program.name}.toml"))
        for program in read_programs(tuple(given.only))
        if (given.recipes / f"{program.name}.toml").exists()
    ]

    def made(task: tuple[Program, Recipe]) -> dict[str, Any]:
        program, recipe = task
        file = given.out / program.name / FILE
        if given.built:
            return dict(json.loads(file.read_text())) if file.exists() else {}
        if time.monotonic() - start > given.budget:
            return {}
        said = make(program, recipe, given.checkouts, given.out)
        file.write_text(json.dumps(said, indent=1) + "\n")
        print(f"{program.name}: {said['wrong'] or said['kernels']}", file=sys.stderr, flush=True)
        return said

    with ThreadPoolExecutor(given.jobs) as pool:
        found = list(pool.map(made, chosen))
    for index, (program, recipe) in enumerate(chosen):
        said = found[index]
        if said.get("kernels") and not said["wrong"] and "all" not in said:
            if time.monotonic() - start > given.budget:
                continue
            found[index] = measured(said, program, recipe, given.out, given)
            (given.out / program.name / FILE).write_text(json.dumps(found[index], indent=1) + "\n")
    found = [said for said in found if said]
    show(found, Console(width=None if sys.stdout.isatty() else 160))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return int(any(said["wrong"] or said.get("exact") == "not equal" for said in found))


if __name__ == "__main__":
    sys.exit(main())
