"""``cccopt emulate``: run one kernel of a PTX file on the emulator, without a host program."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from cccopt.cli.arguments import Array, add_launch, bad_argument, npy, parse_argument, parse_shape
from cccopt.cli.common import console
from cccopt.emulator import Profile, Program
from cccopt.files import encoded, read_text, require_writable, write_all
from cccopt.profiling.emulated import of_launch
from cccopt.profiling.merging import merged
from cccopt.profiling.run_file import RunFile, as_text, read
from cccopt.profiling.sources import Source, files_of, on_disk, with_sources
from cccopt.region_profiles import program_of
from cccopt.text import quantity

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_parser(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command's arguments."""
    parser = commands.add_parser("emulate", help="run a kernel on the emulator", description=__doc__)
    parser.add_argument("input", type=Path, metavar="FILE.ptx")
    parser.add_argument("kernel", metavar="KERNEL", help="its PTX name, or the demangled one if unique")
    add_launch(parser)
    parser.add_argument(
        "--save",
        action="append",
        default=[],
        metavar="N=FILE.npy",
        help="after the run, write the buffer that is argument N (counted from 0) to FILE.npy",
    )
    parser.add_argument(
        "--profile",
        type=Path,
        metavar="FILE.json",
        help="add counts by line, branch and loop to FILE; for marked PTX, also those that `--ccc-profile` reads",
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
        counted = _counted(name, text, program, profile)
        made[arguments.profile] = encoded(as_text(merged([counted] if before is None else [before, counted])))
    write_all(made)
    console().print(_counters(profile))
    return 0


def _counted(name: str, text: str, program: Program, profile: Profile) -> RunFile:
    """What the launch counted; without line information, by the lines of the PTX, whose text is included."""
    plain = of_launch(program, profile, name, {})
    return with_sources(plain, {**on_disk(files_of(plain.functions)), name: Source(text)})


def _output(text: str, values: list[Array | np.generic]) -> tuple[Path, Array]:
    number, _, name = text.partition("=")
    if not (number.isdecimal() and name):
        raise bad_argument(text, "it does not name an argument and a file", "write `--save 2=levels.npy`")
    if int(number) >= len(values):
        raise bad_argument(
            text, f"the kernel is given {quantity(len(values), 'argument')}", "arguments are numbered from 0"
        )
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
