"""``cccopt tune --build COMMAND --run COMMAND``: measure which build of each kernel is fastest on this GPU.

Each build is made in a copy of the current folder; `ccc-nvcc` takes its options from the environment. The builds
run in turn. The fastest is chosen for each annotated kernel, and the choice is measured again. The result is a file for
`ccc-nvcc --ccc-decisions=FILE`.
"""

from __future__ import annotations

import argparse
import ctypes
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from cccopt.ccc.profitability.decisions import BUILDS, write
from cccopt.cli.common import add_workers, console, workers_for
from cccopt.diagnostic import CccError, error
from cccopt.files import require_writable
from cccopt.profiling.names import shown
from cccopt.report.profile_view import duration, printable
from cccopt.text import shortened
from cccopt.tuning.builds import PLAIN
from cccopt.tuning.gains import Gain
from cccopt.tuning.runs import LIMIT, observe
from cccopt.tuning.tree import check_compared, check_work
from cccopt.tuning.tuner import Task, Tuned, Tuner
from cccopt.workers.queue import HERE

if TYPE_CHECKING:
    from argparse import _SubParsersAction

DEFAULT = ("auto", "always", "in-lane")
"""The builds that are tried besides the plain one unless others are named."""
_OTHERS = tuple(name for name in BUILDS if name != PLAIN)


def add_parser(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command's arguments."""
    parser = commands.add_parser(
        "tune", help="measure which build of each annotated kernel is fastest", description=__doc__
    )
    parser.add_argument(
        "--build",
        required=True,
        metavar="COMMAND",
        help="a shell command that builds the program from scratch",
    )
    parser.add_argument(
        "--run", required=True, dest="program_line", metavar="COMMAND", help="a shell command that runs it"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("decisions.json"),
        metavar="FILE",
        help="the file to write (default: %(default)s)",
    )
    parser.add_argument(
        "--try",
        action="append",
        dest="builds",
        choices=_OTHERS,
        metavar="BUILD",
        help=f"a build to try in addition to the plain one: {', '.join(_OTHERS)}; may be repeated"
        f" (default: {', '.join(DEFAULT)})",
    )
    parser.add_argument(
        "--rounds",
        type=_rounds,
        default=7,
        help="number of runs of each build (default: %(default)s, at least 3)",
    )
    parser.add_argument(
        "--limit",
        type=_seconds,
        default=LIMIT,
        metavar="SECONDS",
        help="a run that takes longer is killed, and its build left out (default: %(default).0f)",
    )
    parser.add_argument(
        "--compare",
        action="append",
        default=[],
        metavar="FILE",
        help="an output file of the program that must be the same for every build; may be repeated",
    )
    add_workers(
        parser,
        "make N builds at a time (default: 1); runs are timed on one GPU, one after the other, whatever N is",
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(".ccc-tune"),
        metavar="FOLDER",
        help="the folder for the builds; finished work in it is reused (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError("the limit must be above 0 seconds")
    return seconds


def _rounds(text: str) -> int:
    number = int(text)
    if number < 3:
        raise argparse.ArgumentTypeError("fewer than 3 rounds say little about how much times vary")
    return number


def run(arguments: argparse.Namespace) -> int:
    """Tune, write the decisions and print a table."""
    require_writable(arguments.output)
    source, work = Path.cwd(), arguments.work.absolute()
    check_work(source, work)
    for name in arguments.compare:
        check_compared(source, name)
    task = Task(
        arguments.build,
        arguments.program_line,
        source,
        work,
        tuple(dict.fromkeys(arguments.builds or DEFAULT)),
        arguments.rounds,
        tuple(arguments.compare),
        arguments.output.absolute(),
    )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=console(), transient=True)
    bar = progress.add_task("building", total=task.steps)

    def done(what: str) -> None:
        progress.update(bar, advance=1, description=what)

    workers = workers_for(arguments.workers, on_gpus=False) or HERE
    tuner = Tuner(task, done, partial(observe, limit=arguments.limit), workers)
    try:
        with progress:
            tuned = tuner.tuned()
    except CccError:
        _print_left_out(tuner.left_out)  # they may be why
        raise
    if not tuned.chosen:
        _print_left_out(tuned.left_out)
        raise CccError(
            error(
                "CCC116",
                "there is nothing to tune",
                why="no kernel with annotations ran",
                help="annotate kernels that the command runs, or pass arguments that make it run annotated"
                " ones",
            )
        )
    write(arguments.output, tuned.decisions(_driver()))
    out = console()
    out.print(_table(tuned, task.builds))
    _print_left_out(tuned.left_out)
    print(f"wrote {arguments.output}: build with `ccc-nvcc --ccc-decisions={arguments.output}`")
    return 0


def _print_left_out(left_out: Mapping[str, str]) -> None:
    for build, why in left_out.items():
        note = f"note: `{build}` is left out: {printable(shortened(why, 300))}"
        console().print(Text(note, style="yellow"))


def _table(tuned: Tuned, builds: Sequence[str]) -> Table:
    """One line per kernel: its plain time, the gain of each build, the choice and its gain in fresh runs."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("kernel", overflow="fold", max_width=40)
    table.add_column("plain", justify="right")
    for build in builds:
        table.add_column(build, justify="right")
    table.add_column("chosen")
    table.add_column("gain, fresh runs", justify="right")
    for kernel in tuned.chosen:
        row = [shortened(printable(shown(kernel.kernel)), 80), duration(kernel.nanoseconds)]
        row += [_gain(kernel.tried.get(build)) for build in builds]
        measured = kernel.confirmed
        fresh = (
            ""
            if kernel.build == PLAIN
            else f"{measured.gain:.2f} ({measured.low:.2f} to {measured.high:.2f})"
        )
        table.add_row(*row, kernel.build, fresh)
    return table


def _gain(gain: Gain | None) -> str:
    if gain is None:
        return "as plain"
    return f"{gain.gain:.2f}" if gain.is_gain or gain.is_loss else f"{gain.gain:.2f} ?"


def _driver() -> str:
    """The CUDA version that the driver supports; empty without a driver."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    version = ctypes.c_int()
    if library.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return ""
    return f"{version.value // 1000}.{version.value % 1000 // 10}"
