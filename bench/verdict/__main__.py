"""What `auto` decides, held against what is fastest: `python -m bench.verdict build|profile|decide|run|tune|show`.

The programs are the samples that are programs, and with `--recipes` those of the gallery (`bench/real/README.md`). The
steps leave what they know in `--out` and go on from there, so each can be interrupted and run again:

    build     build the programs plain, counted, and by `auto` without a profile   (needs nvcc)
    profile   run what is counted                                                  (needs a GPU)
    decide    build by `auto` and by `always` with the profiles                    (needs nvcc)
    run       run the builds, taking turns                                         (needs a GPU)
    tune      let `cccopt tune` build and choose                                   (needs nvcc and a GPU)
    show      print the tables
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from rich.console import Console

from bench.profile.programs import Commands, add_options
from bench.verdict import measuring, table
from bench.verdict.programs import Task, build_all, make_inputs, tasks
from bench.verdict.tuning import tune


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(
        prog="python -m bench.verdict",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("what", choices=("build", "profile", "decide", "run", "tune", "show"))
    add_options(options, out="verdict", rounds=5)
    options.add_argument("--markdown", action="store_true", help="show: print Markdown")
    return options


def main() -> int:
    """One step for all programs; the exit status is 1 where a program has a fault."""
    given = parser().parse_intermixed_args()
    begun = time.monotonic()
    programs = tasks(given.recipes, given.only, given.out)
    if given.what == "show":
        table.show(programs, Console(width=None if sys.stdout.isatty() else 150), markdown=given.markdown)
        return 0
    if given.what in ("build", "decide"):
        if given.what == "decide":
            for task in programs:
                measuring.make_profile(task)
        commands = Commands(given.nvcc, given.ccc_nvcc)
        said = build_all(programs, given.checkouts, commands, given.jobs, profiled=given.what == "decide")
        print("\n".join(said), file=sys.stderr)
        return int(bool(said))
    if given.what == "tune":
        gpu = Lock()
        return _each(
            programs,
            lambda task: tune(task, given.checkouts, given.ccc_nvcc, given.rounds, given.limit, gpu),
            begun + given.budget,
            given.jobs,
        )
    step = measuring.take_profile if given.what == "profile" else measuring.take_times
    return _each(programs, lambda task: step(task, given.rounds, given.limit), begun + given.budget)


def _each(given: Sequence[Task], step: Callable[[Task], str], end: float, jobs: int = 1) -> int:
    """Do a step for all programs, ``jobs`` at a time, and begin none after ``end``; 1 where one has a fault."""

    def done(task: Task) -> bool:
        if time.monotonic() > end:
            print(f"{task.program.name}: not begun, for want of time", file=sys.stderr, flush=True)
            return True
        said = make_inputs(task) or step(task)
        print(f"{task.program.name}: {said or 'done'}", file=sys.stderr, flush=True)
        return not said

    with ThreadPoolExecutor(jobs) as pool:
        return int(not all(list(pool.map(done, given))))


if __name__ == "__main__":
    sys.exit(main())
