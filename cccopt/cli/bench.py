"""``cccopt bench``: workloads before and after CCC, on the emulator or on a GPU; ``bench ccc`` compares all builds,
``bench cte`` all policies of CTE, ``bench graphs`` all forms of graph algorithms.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cccopt.cli.arguments import bad_argument
from cccopt.cli.common import add_mode, add_workers, console, open_shown, warn_of_nvcc, workers_for
from cccopt.diagnostic import CccError
from cccopt.files import require_writable, write_text
from cccopt.harness import suite, sweep, workload
from cccopt.harness.bench import MeasureOptions, measure_named
from cccopt.harness.choices import Platform
from cccopt.harness.csr.files import watch
from cccopt.harness.cte import run as cte_run
from cccopt.harness.cte import workload as cte_workload
from cccopt.harness.cte.plan import EMULATED_INPUTS, CtePlan
from cccopt.harness.graphs import run as graphs_run
from cccopt.harness.graphs import workload as graphs_workload
from cccopt.harness.graphs.plan import GraphPlan
from cccopt.harness.result import Measurement, as_json, json_of
from cccopt.harness.table import Table
from cccopt.report.cte import print_cte
from cccopt.report.cte_figures import draw_cte
from cccopt.report.figures import draw, require_drawing
from cccopt.report.graph_figures import draw_graphs
from cccopt.report.graphs import print_graphs
from cccopt.report.suite import print_suite
from cccopt.report.sweep import print_sweep
from cccopt.report.tables import print_measurement
from cccopt.toolchain.options import FORMS
from cccopt.workers.queue import HERE, Item, Worker, WorkerEnded, answers

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_DEFAULT_SIZE = {Platform.EMULATOR: "demo", Platform.GPU: workload.FULL}
_DEMO = ("bfs", "sensitivity")
_CCC, _CTE, _GRAPHS = "ccc", "cte", "graphs"
_WIDTH, _CTE_WIDTH = 132, 190


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = subparsers.add_parser(
        "bench",
        help="measure workloads before and after CCC",
        description="Compile workloads with and without CCC, run them, check their results and compare. "
        "The exit status is 1 if a result is wrong. `bench ccc [WORKLOAD ...]` prints a table of all builds"
        " (plain nvcc, "
        "annotated with the pass off, both modes of the pass, and handwritten peers) of CCC's own workloads "
        "or those named; `bench sensitivity` sweeps the length of a path and the number of lanes that take it."
        " `bench cte "
        "[WORKLOAD ...]` compares the policies of CTE, its kernel-level forms and NVIDIA's libraries on"
        " irregular "
        f"inputs: {', '.join(cte_workload.names())}, or a folder. `bench graphs [ALGORITHM ...]` runs the forms of "
        f"{', '.join(graphs_workload.names())}: plain loops, the same with CCC, and traversals by CTE.",
    )
    parser.add_argument(
        "workloads",
        nargs="*",
        metavar="WORKLOAD",
        help=f"{', '.join(workload.names())}, or a folder (default: all); put `{_CCC}` first to compare all "
        f"builds, `{_CTE}` to name workloads of CTE, `{_GRAPHS}` to name graph algorithms",
    )
    parser.add_argument(
        "--on",
        choices=[machine.value for machine in Platform],
        default=Platform.EMULATOR.value,
        help="where to run: on the emulator, which counts instructions, or on a GPU, where runs are timed"
        " (default: %(default)s)",
    )
    parser.add_argument(
        "--size",
        help="one of the workload's sizes (default: demo on the emulator, full on a GPU; "
        "on the emulator `small` for `ccc`, `cte` and `graphs`, `sweep` for `sensitivity`)",
    )
    parser.add_argument("--seed", type=_seed, default=1, help="seed of the inputs (default: %(default)s)")
    parser.add_argument("--arch", help="such as sm_90 (default: the GPU's; sm_90 on the emulator)")
    add_workers(
        parser,
        "measure N workloads at a time, each on a GPU of its own, or in N processes on the emulator (default: 1; "
        f"for the emulator's counts of `{_CCC}`, `{_CTE}` and `{sweep.SAMPLE}`, as many as there are cores)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the measurements to FILE")
    parser.add_argument(
        "--figures",
        type=Path,
        metavar="FOLDER",
        help="`sensitivity`, `cte` and `graphs`: also draw figures (matplotlib)",
    )
    _add_cte(parser)
    parser.add_argument(
        "--demo",
        action="store_true",
        help=f"run {' and '.join(_DEMO)} at size `demo` on the emulator, without the build that is annotated"
        " but not rewritten",
    )
    add_mode(parser, default="always")
    parser.add_argument(
        "--ccc-form",
        choices=tuple(FORMS),
        default="auto",
        metavar="FORM",
        help=f"the form that rewritten loops must take: {', '.join(FORMS)} (default: the one that fits)",
    )
    parser.set_defaults(run=run, listed="workloads")


def _add_cte(parser: argparse.ArgumentParser) -> None:
    """The options that only `bench cte` and `bench graphs` take."""
    parser.add_argument(
        "--input",
        action="append",
        metavar="NAME|FILE",
        help="`cte` and `graphs`: the name of an input, or a file that holds a matrix or graph; may be repeated"
        " (default: all on a GPU, the first "
        f"{EMULATED_INPUTS} of each workload on the emulator)",
    )
    parser.add_argument(
        "--form",
        action="append",
        help="`graphs` only: a form of the algorithms; may be repeated (default: all); "
        f"{graphs_workload.PLAIN} always runs",
    )
    parser.add_argument(
        "--policy",
        action="append",
        help="`cte`: a policy, kernel-level form or library, `sub_warp` for all widths; may be repeated "
        f"(default: all); {cte_workload.ONE_PER_LANE} always runs. `graphs`: run the forms that use CTE with this "
        "policy as well as with their own, `sub_warp` for all widths; may be repeated",
    )
    parser.add_argument(
        "--sources",
        type=_sources,
        default=0,
        metavar="N",
        help="`graphs` only: search from N vertices chosen at random (see --seed), and report sums over the searches"
        " (default: search once, from the vertex with the most neighbors)",
    )
    parser.add_argument(
        "--counters",
        action="store_true",
        help="`graphs` only: on a GPU, after all timing, also count instructions and memory traffic with Nsight Compute"
        " (slow); the emulator always counts",
    )
    parser.add_argument(
        "--headers",
        action="append",
        metavar="NAME=FOLDER",
        help="`cte` only: also build the policies and forms with the headers in FOLDER, listed as POLICY@NAME; may be"
        " repeated",
    )
    parser.add_argument(
        "--no-profile", action="store_true", help="`cte` only: do not count with Nsight Compute"
    )


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"`{text}` is not a seed: it must be a whole number, 0 or more")
    return int(text)


def _sources(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(
            f"`{text}` is not a number of sources: it must be a whole number, 1 or more"
        )
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return the exit status. Raises `CccError`."""
    require_writable(args.json)
    if args.figures is not None:
        if not _draws(args):
            takers = f"`bench {sweep.SAMPLE}`, `bench {_CTE}` and `bench {_GRAPHS}`"
            raise bad_argument("--figures", f"only {takers} draw figures", "omit it, or name one of these")
        require_drawing(args.figures)
    warn_of_nvcc()
    kind = args.workloads[0] if args.workloads else ""
    for option, commands in _TAKERS.items():
        if getattr(args, option) and kind not in commands:
            name, write = f"--{option.replace('_', '-')}", f"write `cccopt bench {commands[0]} ...`"
            only, takes = (
                " and ".join(f"`bench {one}`" for one in commands),
                "take" if commands[1:] else "takes",
            )
            raise bad_argument(name, f"only {only} {takes} it", write)
    if kind in _COMMANDS:
        return _COMMANDS[kind](args)
    return _sweep(args) if _sweeps(args) else _measure(args)


def _sweeps(args: argparse.Namespace) -> bool:
    return bool(args.workloads == [sweep.SAMPLE] and not args.demo)


def _draws(args: argparse.Namespace) -> bool:
    return bool(_sweeps(args) or args.workloads[:1] in ([_CTE], [_GRAPHS]))


def _measure(args: argparse.Namespace) -> int:
    on = Platform.EMULATOR if args.demo else Platform(args.on)
    size = "demo" if args.demo else args.size or _DEFAULT_SIZE[on]
    options = MeasureOptions(on, size, args.seed, args.arch, args.ccc, args.ccc_form, marked=not args.demo)
    out = console()
    measurements: list[Measurement] = []
    failed = False
    names = args.workloads or (_DEMO if args.demo else workload.names())
    items = [Item(f"`{name}`", measure_named, (name, options)) for name in names]
    with answers(items, _workers(args, on) or HERE) as found:
        for answer in found:
            try:
                measurement = answer.result()
            except CccError as problem:
                # The failure of the first may concern all: no GPU, no nvcc.
                if not measurements and not isinstance(problem, WorkerEnded):
                    raise
                print(problem, file=sys.stderr)
                failed = True
                continue
            print_measurement(measurement, out)
            measurements.append(measurement)
    _write(args.json, as_json(measurements))
    return int(failed or not all(measurement.right for measurement in measurements))


def _workers(args: argparse.Namespace, on: str) -> tuple[Worker, ...] | None:
    return workers_for(args.workers, on_gpus=on == Platform.GPU)


def _ccc(args: argparse.Namespace) -> int:
    plan = suite.SuitePlan(
        "CCC",
        tuple(args.workloads[1:]) or suite.samples_of_ccc(),
        Platform(args.on),
        args.size,
        seed=args.seed,
        arch=args.arch,
        form=args.ccc_form,
    )
    table = suite.run(plan, _workers(args, args.on))
    _write(args.json, json_of(table))
    print_suite(table, console(_WIDTH))
    return _status(table)


def _sweep(args: argparse.Namespace) -> int:
    plan = sweep.plan(Platform(args.on), size=args.size, seed=args.seed, arch=args.arch)
    table = suite.run(replace(plan, form=args.ccc_form), _workers(args, args.on))
    points = sweep.points(table)
    _write(args.json, {**json_of(table), "points": json_of(points)})
    print_sweep(table, points, console(_WIDTH))
    if args.figures is not None:
        for path in draw(points, table.on, args.figures):
            print(path)
    return _status(table)


def _cte(args: argparse.Namespace) -> int:
    plan = CtePlan(
        tuple(args.workloads[1:]),
        tuple(args.input or ()),
        tuple(args.policy or ()),
        Platform(args.on),
        args.size,
        seed=args.seed,
        arch=args.arch,
        profile=not args.no_profile,
        headers=tuple(_named_folder(text) for text in args.headers or ()),
    )
    # A run takes long: the file holds the results so far, in case it is interrupted.
    table = cte_run.run(plan, lambda so_far: _write(args.json, json_of(so_far)), _workers(args, args.on))
    _write(args.json, json_of(table))
    print_cte(table, console(_CTE_WIDTH))
    if args.figures is not None:
        for path in draw_cte(table, args.figures):
            print(path)
    return int(any(row.failed for cell in table.cells for row in cell.rows))


def _graphs(args: argparse.Namespace) -> int:
    watch.set(open_shown)
    plan = GraphPlan(
        tuple(args.workloads[1:]),
        tuple(args.input or ()),
        tuple(args.form or ()),
        tuple(args.policy or ()),
        Platform(args.on),
        args.size,
        seed=args.seed,
        arch=args.arch,
        sources=args.sources,
        counters=args.counters,
    )
    table = graphs_run.run(plan, lambda so_far: _write(args.json, json_of(so_far)), _workers(args, args.on))
    _write(args.json, json_of(table))
    print_graphs(table, console(_CTE_WIDTH if args.counters else _WIDTH))
    if args.figures is not None:
        for path in draw_graphs(table, args.figures):
            print(path)
    return int(any(row.failed for cell in table.cells for row in cell.rows))


def _named_folder(text: str) -> tuple[str, Path]:
    name, _, folder = text.partition("=")
    if not (name.isidentifier() and folder):
        raise bad_argument(
            f"--headers {text}",
            "it is not NAME=FOLDER",
            "write for example `--headers before=../before/cte_templates`",
        )
    return name, Path(folder).absolute()


def _status(table: Table) -> int:
    """1 if an existing build failed with a wrong result or a fault. A refusal is an answer."""
    return int(any(row.failed for sample in table.samples for row in sample.rows))


def _write(path: Path | None, data: Any) -> None:
    if path is not None:
        write_text(path, json.dumps(data, indent=2) + "\n")


_COMMANDS = {_CCC: _ccc, _CTE: _cte, _GRAPHS: _graphs}
_TAKERS = {
    "input": (_CTE, _GRAPHS),
    "form": (_GRAPHS,),
    "policy": (_CTE, _GRAPHS),
    "sources": (_GRAPHS,),
    "counters": (_GRAPHS,),
    "headers": (_CTE,),
    "no_profile": (_CTE,),
}
"""The options that only some commands take."""
