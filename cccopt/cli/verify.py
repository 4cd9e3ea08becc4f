"""``cccopt verify``: run the same kernel from two PTX files on the same inputs and compare what they leave in
memory.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cccopt.cli.arguments import Array, add_launch, parse_argument, parse_shape
from cccopt.emulator import Program
from cccopt.files import read_text
from cccopt.text import quantity

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_parser(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command's arguments."""
    parser = commands.add_parser(
        "verify",
        help="compare a kernel before and after the rewrite",
        description=f"{__doc__} The exit status is 1 if they differ; the first difference is named.",
    )
    parser.add_argument("before", type=Path, metavar="BEFORE.ptx")
    parser.add_argument("after", type=Path, metavar="AFTER.ptx")
    parser.add_argument("kernel", metavar="KERNEL", help="its PTX name, or the demangled one if unique")
    add_launch(parser)
    parser.add_argument(
        "--rtol",
        type=_tolerance,
        default=0.0,
        metavar="R",
        help="allowed relative error of floating-point results (default: none, every bit counts)",
    )
    parser.set_defaults(run=run)


def _tolerance(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < np.inf:
        raise argparse.ArgumentTypeError(f"`{text}` is not a relative error: it must be a number, 0 or more")
    return number


def run(arguments: argparse.Namespace) -> int:
    """Run both and compare every buffer, bit by bit or within ``--rtol``."""
    before, after = (_results(path, arguments) for path in (arguments.before, arguments.after))
    for number in before:
        different = first_difference(before[number], after[number], arguments.rtol)
        if different is not None:
            index, old, new = different
            place = f"[{', '.join(map(str, index))}]"
            print(f"different: argument {number}{place} is {old} before and {new} after")
            return 1
    print(f"same: {quantity(len(before), 'buffer')} of `{arguments.kernel}` after both runs")
    return 0


def first_difference(
    before: Array, after: Array, rtol: float = 0.0
) -> tuple[tuple[int, ...], np.generic, np.generic] | None:
    """The index and both values of the first element that differs, or None.

    Without ``rtol`` every bit counts (a zero's sign, a NaN's payload); with it, floating-point elements may
    differ by ``rtol`` times the larger magnitude, and two NaNs are the same.
    """
    if rtol > 0 and np.issubdtype(before.dtype, np.floating):
        different = ~np.isclose(after, before, rtol=rtol, atol=0.0, equal_nan=True)
    else:
        bits = f"V{before.dtype.itemsize}"
        different = before.view(bits) != after.view(bits)
    if not different.any():
        return None
    index = tuple(int(i) for i in np.argwhere(different)[0])
    return index, before[index], after[index]


def _results(path: Path, arguments: argparse.Namespace) -> dict[int, Array]:
    values = [parse_argument(text) for text in arguments.arg]
    Program(read_text(path), str(path)).launch(
        arguments.kernel,
        parse_shape(arguments.grid),
        parse_shape(arguments.block),
        values,
        shared_bytes=arguments.shared,
        shuffle=arguments.shuffle,
    )
    return {number: value for number, value in enumerate(values) if isinstance(value, np.ndarray)}
