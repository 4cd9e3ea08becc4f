"""``cccopt bench``: workloads before and after CCC, on the emulator or on a GPU."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from cccopt.cli.common import add_mode, console
from cccopt.files import write_text
from cccopt.harness import workload
from cccopt.harness.bench import EMULATOR, GPU, Options, measure
from cccopt.harness.result import Measurement, as_json
from cccopt.report.tables import print_measurement

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_DEFAULT_SIZE = {EMULATOR: "demo", GPU: "full"}


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = subparsers.add_parser(
        "bench",
        help="measure workloads before and after CCC",
        description="Compile workloads with and without CCC, run them, check their results and compare. "
        "Exit status 1 where a result is wrong.",
    )
    parser.add_argument(
        "workloads",
        nargs="*",
        metavar="WORKLOAD",
        help=f"{', '.join(workload.names())}, or a folder (default: all)",
    )
    parser.add_argument("--on", choices=(EMULATOR, GPU), default=EMULATOR, help="default: %(default)s")
    parser.add_argument(
        "--size", help="one of the workload's sizes (default: demo on the emulator, full on a GPU)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the inputs (default: %(default)s)")
    parser.add_argument("--arch", help="such as sm_90 (default: the GPU's; sm_90 on the emulator)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the measurements to FILE")
    parser.add_argument(
        "--demo",
        action="store_true",
        help="all workloads at size demo on the emulator, without the marked build",
    )
    add_mode(parser, default="always")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return the exit status. Raises `CccError`."""
    on = EMULATOR if args.demo else args.on
    size = "demo" if args.demo else args.size or _DEFAULT_SIZE[on]
    options = Options(on, size, args.seed, args.arch, args.ccc, marked=not args.demo)
    out = console()
    measurements: list[Measurement] = []
    for name in args.workloads or workload.names():
        measurement = measure(workload.load(name), options)
        print_measurement(measurement, out)
        measurements.append(measurement)
    if args.json is not None:
        write_text(args.json, json.dumps(as_json(measurements), indent=2) + "\n")
    return 0 if all(measurement.right for measurement in measurements) else 1
