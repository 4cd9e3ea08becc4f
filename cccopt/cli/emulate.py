"""``cccopt emulate``: run one kernel of a PTX file on the emulator, without a host program."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from cccopt.ccc.profitability.profile import RunProfile, as_text, read
from cccopt.cli.arguments import Array, add_launch, bad_argument, npy, parse_argument, parse_shape
from cccopt.cli.common import console
from cccopt.diagnostic import CccError, error
from cccopt.emulator import Profile, Program
from cccopt.files import encoded, read_text, require_writable, write_all
from cccopt.region_profiles import of_run, program_of

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_parser(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command's arguments."""
    parser = commands.add_parser("emulate", help="run a kernel on the emulator", description=__doc__)
    parser.add_argument("input", type=Path, metavar="FILE.ptx")
    parser.add_argument("kernel", metavar="KERNEL", help="its PTX name, or the unmangled one if unique")
    add_launch(parser)
    parser.add_argument(
        "--save",
        action="append",
        default=[],
        metavar="N=FILE.npy",
        help="write the buffer that is argument N (from 0) after the run",
    )
    parser.add_argument(
        "--profile",
        type=Path,
        metavar="FILE.json",
        help="of marked PTX: add how often lanes came to each region to FILE, for `--ccc-profile`",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the kernel, save what was asked for, print the counters."""
    values = [parse_argument(text) for text in arguments.arg]
    outputs = [_output(text, values) for text in arguments.save]
    require_writable(arguments.profile, *(path for path, _ in outputs))
    before = read(arguments.profile) if arguments.profile is not None and arguments.profile.exists() else None
    text = read_text(arguments.input)
    name = str(arguments.input)
    program = Program(text, name) if arguments.profile is None else program_of(text, name)
    profile = program.launch(
        arguments.kernel,
        parse_shape(arguments.grid),
        parse_shape(arguments.block),
        values,
        shared_bytes=arguments.shared,
        shuffle=arguments.shuffle,
    )
    made: dict[str | os.PathLike[str], bytes] = {path: npy(array) for path, array in outputs}
    if arguments.profile is not None:
        regions = (before or RunProfile()) + _regions(arguments, program, profile)
        made[arguments.profile] = encoded(as_text(regions))
    write_all(made)
    console().print(_counters(profile))
    return 0


def _regions(arguments: argparse.Namespace, program: Program, profile: Profile) -> RunProfile:
    found = of_run(program, profile)
    if not found.functions:
        raise CccError(
            error(
                "CCC069",
                f"`{arguments.input}` has no marked loop that ran",
                why="a profile counts how often lanes come to marked regions, and rewritten PTX has none left",
                help="give it the marked PTX: `ccc-nvcc --ccc-keep=DIR` leaves it in `DIR/NAME.ARCH.1.ptx`",
            )
        )
    return found


def _output(text: str, values: list[Array | np.generic]) -> tuple[Path, Array]:
    number, _, name = text.partition("=")
    if not (number.isdecimal() and name):
        raise bad_argument(text, "it names no argument and file", "write `--save 2=levels.npy`")
    if int(number) >= len(values):
        raise bad_argument(text, f"the kernel is given {len(values)} arguments", "arguments count from 0")
    value = values[int(number)]
    if not isinstance(value, np.ndarray):
        raise bad_argument(text, f"argument {number} is a scalar", "only buffers change in a run")
    return Path(name), value


def _counters(profile: Profile) -> Table:
    table = Table("counter", "emulator (PTX)", box=None)
    table.columns[1].justify = "right"
    table.add_row("warp instructions", f"{profile.warp_instructions:,}")
    table.add_row("thread instructions", f"{profile.thread_instructions:,}")
    table.add_row("warp execution efficiency", f"{profile.warp_efficiency:.1%}")
    table.add_row("without predicated-off lanes", f"{profile.warp_efficiency_pred_on:.1%}")
    table.add_row("useful efficiency", f"{profile.useful_efficiency:.1%}")
    return table
