"""Build and run the programs of the gallery: `python -m bench.real CHECKOUT... --recipes FOLDER`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.real import result
from bench.real.build import PLAIN, VARIANTS, build
from bench.real.measure import LIMIT, Measured
from bench.real.program import Program, read_programs
from bench.real.recipe import OURS, read_recipe
from bench.real.running import RECIPE, run_program
from bench.real.table import show
from cccopt.cli.common import add_workers, workers_for
from cccopt.workers.queue import HERE, Item, WorkerEnded, answers


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(prog="python -m bench.real", description=(__doc__ or "").strip())
    options.add_argument(
        "checkouts", nargs="*", type=Path, help="folders with the checkouts, or the checkouts themselves"
    )
    options.add_argument(
        "--recipes",
        type=Path,
        default=OURS,
        help="the folder with NAME.toml: how each program is built and run (default: ours)",
    )
    options.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="this program alone; may be repeated"
    )
    options.add_argument(
        "--out", type=Path, default=Path("gallery"), help="where the builds go (default: %(default)s)"
    )
    options.add_argument(
        "--variant", action="append", choices=VARIANTS, help="this build alone, beside plain"
    )
    options.add_argument(
        "--build-only", action="store_true", help="build, and report what became of the annotations"
    )
    options.add_argument(
        "--run", type=Path, metavar="FOLDER", help="run the builds of an earlier --build-only --out FOLDER"
    )
    options.add_argument(
        "--jobs", type=int, default=1, help="programs built at a time (default: %(default)s)"
    )
    add_workers(options, "run N programs at a time, each on a GPU of its own (default: 1)")
    options.add_argument("--rounds", type=int, default=5, help="runs of each build (default: %(default)s)")
    options.add_argument(
        "--limit", type=float, default=LIMIT, help="seconds for one run (default: %(default)s)"
    )
    options.add_argument("--nvcc", default="nvcc", help="the plain compiler (default: %(default)s)")
    options.add_argument("--ccc-nvcc", default="ccc-nvcc", help="ours (default: %(default)s)")
    options.add_argument("--json", type=Path, metavar="FILE", help="write all results there")
    return options


def build_program(program: Program, given: argparse.Namespace) -> dict[str, Any] | None:
    """Build a program in all variants; nothing where there is no recipe for it."""
    path = given.recipes / f"{program.name}.toml"
    if not path.exists():
        return None
    recipe = read_recipe(path)
    variants = [each for each in VARIANTS if not given.variant or each in (PLAIN, *given.variant)]
    commands = {PLAIN: given.nvcc, "ccc": given.ccc_nvcc}
    place = given.out / program.name
    builds = [
        build(program, recipe, given.checkouts, place / each, VARIANTS[each], commands) for each in variants
    ]
    found = result.built(program, builds)
    shutil.copy(path, given.out / program.name / RECIPE)
    result.write(found, given.out)
    return found


def run_programs(
    built: Sequence[dict[str, Any]], given: argparse.Namespace, out: Path
) -> list[dict[str, Any]]:
    """Run the programs, as many at a time as there are workers, and say of each what is known as soon as it is."""
    workers = workers_for(given.workers, on_gpus=True) or HERE
    items = [
        Item(f"`{each['program']}`", run_program, (each, out, given.rounds, given.limit)) for each in built
    ]
    results = []
    with answers(items, workers) as found:
        for each, answer in zip(built, found, strict=True):
            try:
                ran = answer.result()
            except WorkerEnded as problem:
                print(problem, file=sys.stderr)
                ran = result.with_runs(each, {PLAIN: Measured({}, problem.diagnostics[0].message)})
                result.write(ran, out)
            wrong = {name: run["wrong"] for name, run in ran["runs"].items() if run["wrong"]}
            print(f"{each['program']}: {wrong or 'right'}", file=sys.stderr, flush=True)
            results.append(ran)
    return results


def main() -> int:
    """Build, run, print; returns the exit status, 1 where a result is wrong."""
    given = parser().parse_args()
    console = Console(width=None if sys.stdout.isatty() else 180)
    out = given.run or given.out
    if given.run:
        there = sorted(path.parent.name for path in out.glob(f"*/{result.FILE}"))
        if lacking := set(given.only).difference(there):
            parser().error(f"{out} has no build of {', '.join(sorted(lacking))}")
        names = given.only or there
        results = [result.read(out / name) for name in names]
    else:
        if not given.checkouts:
            parser().error("folders with checkouts are needed to build")
        with ThreadPoolExecutor(given.jobs) as pool:
            built = pool.map(lambda program: build_program(program, given), read_programs(tuple(given.only)))
            results = [each for each in built if each is not None]
    if not given.build_only:
        results = run_programs(results, given, out)
    show(results, console)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n")
    return int(any(run["wrong"] for each in results for run in each["runs"].values()))


if __name__ == "__main__":
    sys.exit(main())
