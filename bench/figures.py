"""Draws the documentation's figures from what a warp of the emulator does: ``python bench/figures.py [FOLDER]``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import cccopt
from cccopt.emulator import Program, Trace
from cccopt.harness.workload import load
from cccopt.ptx.ir import Function, Location, Marker
from cccopt.report.warp_figure import Panel, Part, WarpStep, draw

ITERATIONS = 24
TAKEN_BY = 8


def main(folder: Path) -> None:
    """Write ``warp.svg``: one warp of the sensitivity sample, 20 multiply-adds taken by 8 of 32 lanes."""
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
    (folder / "warp.svg").write_text(draw(title, panels), encoding="utf-8")


def steps(ptx: str, kernel: str, path: frozenset[int]) -> Iterator[WarpStep]:
    """What the warp issues, each instruction with the part of the program that its CUDA line belongs to."""
    program = Program(ptx)
    trace = Trace(warp=0)
    cells = np.zeros(1 << 20, np.float32)
    program.launch(kernel, 1, 32, [np.uint32(32 * ITERATIONS), np.uint32(TAKEN_BY), cells], trace=trace)
    parts = parts_of(next(f for f in program.module.functions() if f.name == kernel), path)
    for _, statement, mask in trace.steps:
        yield WarpStep(parts[statement], mask)


def parts_of(function: Function, path: frozenset[int]) -> list[Part]:
    """The part that each statement belongs to: marked as overhead, on a line of the path, or elsewhere."""
    parts = []
    part, overhead = Part.LOOP, False
    for statement in function.body or ():
        if isinstance(statement, Location):
            part = Part.PATH if statement.line in path else Part.LOOP
        elif isinstance(statement, Marker) and statement.event.startswith("overhead"):
            overhead = statement.event == "overhead.begin"
        parts.append(Part.CCC if overhead else part)
    return parts


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
