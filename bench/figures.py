"""Draws the documentation's figures from what a warp of the emulator does: ``python bench/figures.py [FOLDER]``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import cccopt
from cccopt.emulator import Program, Trace
from cccopt.harness.workload import load
from cccopt.report.warp_figure import NARROW, WIDE, Panel, WarpStep, draw, warp_steps

ITERATIONS = 24
TAKEN_BY = 8


def main(folder: Path) -> None:
    """Write ``warp.svg``, and ``warp-narrow.svg`` for phones: one warp of the sensitivity sample, a path of 20
    multiply-adds that 8 of 32 lanes take.
    """
    source = load("sensitivity").source
    program = cccopt.compile(source, ccc="always", nvcc_options=("-lineinfo",))
    path = lines_of_the_path(source.read_text())
    title = (
        f"One warp, {ITERATIONS} trips of a loop, a path of 20 multiply-adds that {TAKEN_BY} of 32 lanes take"
    )
    panels = [
        Panel("before", list(steps(program.original_ptx, "path_20", path))),
        Panel("after", list(steps(program.ptx, "path_20", path))),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for name, layout in (("warp.svg", WIDE), ("warp-narrow.svg", NARROW)):
        (folder / name).write_text(draw(title, panels, layout), encoding="utf-8")


def steps(ptx: str, kernel: str, path: frozenset[int]) -> Iterator[WarpStep]:
    """What the warp issues."""
    program = Program(ptx)
    trace = Trace(warp=0)
    cells = np.zeros(1 << 20, np.float32)
    program.launch(kernel, 1, 32, [np.uint32(32 * ITERATIONS), np.uint32(TAKEN_BY), cells], trace=trace)
    return warp_steps(program.module, trace.steps, path)


def lines_of_the_path(source: str) -> frozenset[int]:
    """The lines of the annotated branch and of the function that it calls."""
    lines = source.split("\n")
    found: set[int] = set()
    for opening in ("    if ((hash32(i) & 31) < k) {", "__device__ __forceinline__ float path(float x) {"):
        begin, depth = lines.index(opening) + 1, 0
        for number, line in enumerate(lines[begin - 1 :], begin):
            depth += line.count("{") - line.count("}")
            if number > begin and depth >= 0:
                found.add(number)
            if depth <= 0:
                break
    return frozenset(found)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/figures"))
