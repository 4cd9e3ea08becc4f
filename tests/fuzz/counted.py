"""Counts random CUDA kernels: `python -m tests.fuzz.counted FIRST LAST`. Counted copies, of the marked and of the plain
kernels, must leave the memory that the kernels do, and count what the emulator counts.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cccopt.diagnostic import CccError
from cccopt.driver.counted_copies import with_counted_copies
from cccopt.emulator import Profile, Program
from cccopt.passes.instrument import COUNTED
from cccopt.passes.pipeline import asks_for_loops, prepared
from cccopt.profiling.counts import counts_of, notes_of
from cccopt.ptx.ir import Module
from cccopt.ptx.verifier import verify
from tests.fuzz.cuda_kernels import Kernel, kernels, plain_name
from tests.fuzz.cuda_memory import arguments
from tests.fuzz.hunt import compiled
from tests.fuzz.trial import differences, only
from tests.kernels.running import Launch
from tests.passes.instrumenting import HOW, Both, counts_in, differing

MAX_STEPS = 3_000_000
KERNELS = 20
"""In a file."""


def wrong(kernel: Kernel, module: Module, draw: random.Random) -> Iterator[str]:
    """What is wrong with the counted copies of a kernel in ``module``, which holds its plain version, too."""
    launch = kernel.launch(draw, "odd")
    for name in (kernel.name, plain_name(kernel.name)):
        function = only(module, name)
        # What has a loop of its own where a mark asks for one is counted with that.
        function = prepared(function) if asks_for_loops(function) else function
        way, how = draw.choice(list(HOW.items()))
        new, layout = with_counted_copies(function, how)
        verify(new)
        before, plain = _run(Program(function), name, launch)
        program = Program(new)
        after, counted = _run(program, name + COUNTED, launch)
        if found := differences(before, after):
            yield f"{name}, {way}, {launch}: {found}"
        raw = counts_in(program, layout)
        counts = counts_of(layout, raw)
        both = Both(function, layout, plain, counted, counts, raw)
        exact = layout.every == 1 or all(each.squares == each.warps for each in counts if each.layout.kernel)
        # How often a compare-and-swap is tried again is a matter of time.
        exact = exact and not any(call in kernel.text for call in ("cas_add(&", "locked_add(&"))
        if exact and (other := differing(both)):
            yield f"{name}, {way}, {launch}: {other[:3]}"
        if said := notes_of(replace(layout, crowded="", recursive=()), counts):
            yield f"{name}, {way}, {launch}: {said}"


def _run(program: Program, name: str, launch: Launch) -> tuple[list[bytes], Profile]:
    own = arguments(launch)
    profile = program.launch(name, launch.grid, launch.block, own, max_steps=MAX_STEPS)
    return [a.tobytes() for a in own if isinstance(a, np.ndarray)], profile


def hunt(seed: int, count: int) -> tuple[int, list[str]]:
    """How many kernels of a file were judged, and what is wrong with them. A kernel that the emulator does not take to
    its end says nothing.
    """
    made = kernels(seed, count)
    module = compiled(made, "sm_90", ())
    draw = random.Random(seed)
    judged, found = 0, []
    for kernel in made:
        try:
            found += wrong(kernel, module, draw)
            judged += 1
        except CccError as problem:
            if problem.diagnostics[0].code not in ("CCC073", "CCC074", "CCC075"):
                found.append(f"{kernel.name}: {problem}")
    return judged, found


def main() -> None:
    """Print what is found, by seed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.counted", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    given = parser.parse_args()
    total = 0
    for seed in range(given.first, given.last):
        judged, found = hunt(seed, KERNELS)
        total += judged
        for line in found:
            print(f"{seed}: {line}", flush=True)
    print(f"{total} of {KERNELS * (given.last - given.first)} kernels judged, each with marks and without")


if __name__ == "__main__":
    main()
