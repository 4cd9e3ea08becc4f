"""Hold `cccopt profile` against plain programs and Nsight Compute: `python -m bench.profile cost|accuracy|sample`.

The programs are the samples and, with `--recipes`, those of the gallery; `accuracy` also has CTE's workloads, for which
it needs PyCUDA. An NVIDIA GPU is needed, but for `build`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.counted_workloads import CTE
from bench.profile import accuracy, cost, cte, sample
from bench.profile.ncu import Ncu
from bench.profile.programs import SAMPLE, Built, Commands, add_options, build_all, chosen

FEW = (
    *(
        "bfs",
        "collatz",
        "contract",
        "cooling",
        "feynman-kac",
        "geodesic",
        "interval",
        "jaccard",
        "mandelbrot",
    ),
    *(
        "md",
        "murmurhash3",
        "nms",
        "nqueen",
        "perplexity",
        "pnpoly",
        "rainflow",
        "remap",
        "s8n",
        "snake",
        "surfel",
    ),
)
"""The programs of the gallery that `accuracy` compares by default: those whose runs can be cut to few launches."""


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(prog="python -m bench.profile", description=(__doc__ or "").strip())
    options.add_argument("what", choices=("build", "cost", "accuracy", "sample"))
    add_options(options, out="profiled", rounds=3)
    options.add_argument(
        "--built", action="store_true", help="reuse what `build` left in --out; build nothing"
    )
    options.add_argument(
        "--launches", type=int, default=4, help="accuracy: launches of each kernel that ncu profiles; 0: all"
    )
    options.add_argument("--ncu", default="ncu", help="Nsight Compute (default: %(default)s)")
    options.add_argument("--json", type=Path, metavar="FILE", help="write all results there")
    return options


def main() -> int:
    """Build, run, print."""
    given = parser().parse_intermixed_args()
    begun = time.monotonic()
    few = FEW if given.what in ("accuracy", "sample") else ()
    programs = [
        each
        for each in chosen(given.recipes, given.only)
        if given.only or not few or each[0].name in few or each[0].name.startswith(SAMPLE)
    ]
    commands = None if given.built else Commands(given.nvcc, given.ccc_nvcc)
    built = build_all(programs, given.checkouts, given.out, commands, jobs=given.jobs)
    print(f"built {len(built)} programs in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    for each in built:
        if each.why:
            print(f"{each.name}: {each.why}", file=sys.stderr, flush=True)
    if given.what == "build":
        return int(any(each.why for each in built))
    return measure_all([each for each in built if not each.why], given, begun)


def measure_all(built: list[Built], given: argparse.Namespace, begun: float) -> int:
    """Run what is built, print what it gave."""
    found: list[dict[str, Any]] = []
    left: list[str] = []
    for name, measure in tasks(built, given):
        if time.monotonic() - begun > given.budget:
            left.append(name)
        else:
            start = time.monotonic()
            found.append(measure())
            print(f"{name}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
            # A run of all takes long: what is known is kept.
            if given.json:
                given.json.write_text(json.dumps(found, indent=1) + "\n")
    console = Console(width=None if sys.stdout.isatty() else 150)
    {"cost": cost.show, "accuracy": accuracy.show, "sample": sample.show}[given.what](found, console)
    if left:
        print(f"not run, for want of time: {', '.join(left)}")
    return 0


def tasks(
    built: Sequence[Built], given: argparse.Namespace
) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """What there is to measure, by name."""
    if given.what == "cost":
        for each in built:
            yield each.name, partial(cost.measured, each, given.rounds, given.limit)
        return
    program = shutil.which(given.ncu)
    if program is None:
        parser().error(f"there is no `{given.ncu}`")
    ncu = Ncu(str(program))
    for each in built:
        if given.what == "sample":
            yield each.name, partial(sample.compared, each, ncu.program, given.limit)
        else:
            yield each.name, partial(accuracy.compared, each, ncu, given.launches, given.limit)
    if given.what == "accuracy":
        names = [name for name in CTE if not given.only or name in given.only]
        for workload in cte.build_all(names, given.out, given.jobs):
            yield workload.name, partial(cte.compared, workload, ncu, given.limit)


if __name__ == "__main__":
    sys.exit(main())
