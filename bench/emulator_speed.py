"""How fast the emulator is: ``python bench/emulator_speed.py [SIZE]``.

Runs the demo's breadth-first search from plain nvcc's PTX and from the rewritten one, counters, bounds checks and
hazard mode on, and prints active lanes x PTX instructions / wall time over all launches.
"""

from __future__ import annotations

import sys
import time

import cccopt
from cccopt.emulator import Profile, Program
from cccopt.harness.workload import fresh_state, load


def main(size: str) -> None:
    """Measure both builds of the sample on inputs of ``size``."""
    sample = load("bfs")
    compiled = cccopt.compile(sample.source, ccc="always")
    inputs = sample.workload.inputs(size, 1)
    expected = sample.workload.reference(inputs)
    for name, ptx in (("plain", compiled.original_ptx), ("ccc", compiled.ptx)):
        program = Program(ptx)
        state = fresh_state(inputs)
        total = Profile()
        start = time.perf_counter()
        for launch in sample.workload.launches(state):
            total += program.launch(launch.kernel, launch.grid, launch.block, launch.arguments)
        seconds = time.perf_counter() - start
        wrong = sample.workload.check(state, expected)
        if wrong:
            raise SystemExit(f"{name}: {wrong}")
        rate = total.thread_instructions / seconds / 1e6
        print(
            f"{name:6} {total.launches} launches  {total.thread_instructions:,} thread instructions  {seconds:.2f} s"
            f"  {rate:.1f} million a second  ({total.steps:,} steps of {1e6 * seconds / total.steps:.0f} us)"
        )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "demo")
