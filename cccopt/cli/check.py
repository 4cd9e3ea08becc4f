"""``cccopt check``: run annotated kernels as they are, on real inputs, and report where iterations that are said to be
independent are not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cccopt.checking import Checked, Checker
from cccopt.cli.arguments import add_shape, bad_argument, parse_argument, parse_shape
from cccopt.cli.common import console
from cccopt.diagnostic import CccError
from cccopt.driver import marked_ptx
from cccopt.files import read_text, write_text
from cccopt.harness import workload
from cccopt.harness.check import check_sample
from cccopt.harness.result import json_of
from cccopt.report.check import print_checked
from cccopt.version import __version__

if TYPE_CHECKING:
    from argparse import _SubParsersAction

SCHEMA = 1
"""The version of the JSON's layout."""

_SIZE, _ARCH = "demo", "sm_90"

_OF_FILES = ("grid", "block", "arg", "shared", "nvcc")
_OF_WORKLOADS = ("size", "seed")
_UNSET: dict[str, Any] = {"arg": [], "nvcc": [], "shared": 0}


def add_parser(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command's arguments."""
    parser = commands.add_parser(
        "check",
        help="test whether iterations of marked loops are independent",
        description=f"{__doc__} The exit status is 1 if they are not.",
    )
    parser.add_argument(
        "subjects",
        nargs="+",
        metavar="WORKLOAD|FILE",
        help=f"workloads: {', '.join(workload.names())}, or folders; or one annotated .cu file, or marked .ptx, and "
        "the kernel to launch",
    )
    add_shape(parser, required=False)
    parser.add_argument("--size", help="one of the workloads' sizes (default: demo)")
    parser.add_argument("--seed", type=int, help="seed of the workloads' inputs (default: 1)")
    parser.add_argument("--arch", help="the target of CUDA sources (default: sm_90)")
    parser.add_argument(
        "--nvcc",
        action="append",
        default=[],
        metavar="OPTION",
        help="an nvcc option for a .cu file, such as --nvcc=-Iinclude; may be repeated",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write what was found to FILE")
    parser.add_argument(
        "--most",
        type=_number,
        default=10,
        metavar="N",
        help="number of conflicts to print in full (default: %(default)s)",
    )
    parser.set_defaults(run=run, listed="subjects")


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of conflicts")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Check, print, and return the exit status: 1 for a conflict or a check that failed."""
    of_file = arguments.subjects[0].endswith((".cu", ".ptx"))
    for option in _OF_WORKLOADS if of_file else _OF_FILES:
        if getattr(arguments, option) != _UNSET.get(option):
            what = "a workload" if of_file else "a file"
            raise bad_argument(
                f"--{option}", f"it applies only to the check of {what}", "see `cccopt check --help`"
            )
    found: dict[str, Checked] = {}
    failed = False
    out = console()
    for subject in arguments.subjects[:1] if of_file else arguments.subjects:
        try:
            title, checked = _file(arguments) if of_file else _workload(subject, arguments)
        except CccError as problem:
            # The failure of the first may concern all: no nvcc.
            if not found:
                raise
            print(problem, file=sys.stderr)
            failed = True
            continue
        print_checked(title, checked, out, arguments.most)
        found[subject] = checked
    if arguments.json is not None:
        write_text(arguments.json, json.dumps(_data(found), indent=2) + "\n")
    return int(failed or any(checked.conflicts for checked in found.values()))


def _workload(name: str, arguments: argparse.Namespace) -> tuple[str, Checked]:
    sample = workload.load(name)
    size, seed = arguments.size or _SIZE, 1 if arguments.seed is None else arguments.seed
    return f"{sample.name} ({size})", check_sample(sample, size, seed=seed, arch=arguments.arch or _ARCH)


def _file(arguments: argparse.Namespace) -> tuple[str, Checked]:
    file, *kernel = arguments.subjects
    if len(kernel) != 1:
        raise bad_argument(
            " ".join(arguments.subjects),
            "a file needs the name of one kernel to launch",
            "write `cccopt check FILE KERNEL ...`",
        )
    for option in ("grid", "block"):
        if getattr(arguments, option) is None:
            raise bad_argument(
                file, f"its kernel needs --{option}", "write for example `--grid 16 --block 256`"
            )
    grid, block = parse_shape(arguments.grid), parse_shape(arguments.block)
    values = [parse_argument(text) for text in arguments.arg]
    checker = Checker(_marked(file, arguments), file)
    names = [text if text.endswith(".npy") else "" for text in arguments.arg]
    checker.launch(kernel[0], grid, block, values, shared_bytes=arguments.shared, names=names)
    return f"`{kernel[0]}` of {file}", checker.result()


def _marked(file: str, arguments: argparse.Namespace) -> str:
    if file.endswith(".cu"):
        options = (*arguments.nvcc, "-lineinfo")
        return marked_ptx(file, arch=arguments.arch or _ARCH, nvcc_options=options)
    for option in ("nvcc", "arch"):
        if getattr(arguments, option):
            raise bad_argument(f"--{option}", "PTX is already compiled", "give the .cu file instead")
    return read_text(Path(file))


def _data(found: Mapping[str, Checked]) -> dict[str, Any]:
    checks = [
        {
            "subject": subject,
            "launches": checked.launches,
            "iterations": checked.iterations,
            "conflicts": json_of(checked.conflicts),
            "meetings": json_of(checked.meetings),
        }
        for subject, checked in found.items()
    ]
    return {"schema": SCHEMA, "cccopt": __version__, "checks": checks}
