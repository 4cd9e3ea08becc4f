"""How the time of the passes grows with the code: ``python -m bench.growth [WORD...] [--size N]``, in the checkout.

Takes the modules of ``tests/passes/growth/shapes.py`` whose names hold one of the words (all without), each at N, 2 N
and 4 N statements, blocks or annotations of its dimension, and prints the processor time of reading, rewriting and
printing them, the best of three, with the exponent of what the last doubling adds to the one before. About 1 is
right; the modules of ``LIMITS`` in ``tests/passes/growth/test_growth.py`` are known to grow faster.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from math import log2

from rich.console import Console
from rich.table import Table

from cccopt.passes.pipeline import Options, run
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from tests.passes.growth.shapes import SHAPES

RUNS = 3


def seconds(text: str) -> float:
    """What a module takes, in seconds of processor time."""
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        print_module(run(parse(text), Options("always", keep_going=True)).module)
        times.append(time.process_time() - start)
    return min(times)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="*", help="parts of names")
    parser.add_argument("--size", type=int, default=16, help="the smallest of three sizes")
    options = parser.parse_args(arguments)
    sizes = [options.size, 2 * options.size, 4 * options.size]
    table = Table(
        "what grows", *(f"{size}, ms" for size in sizes), "lines", "exponent", box=None, padding=(0, 2)
    )
    for column in table.columns[1:]:
        column.justify = "right"
    parse("")
    for name, shape in SHAPES.items():
        if options.words and not any(word in name for word in options.words):
            continue
        texts = [shape(size) for size in sizes]
        times = [seconds(text) for text in texts]
        added = times[1] - times[0], times[2] - times[1]
        exponent = f"{log2(added[1] / added[0]):.1f}" if min(added) > 0 else "-"
        table.add_row(name, *(f"{t * 1e3:.0f}" for t in times), f"{texts[-1].count(chr(10)):,}", exponent)
    Console(width=None if sys.stdout.isatty() else 110).print(table)


if __name__ == "__main__":
    main()
