"""What counting costs on a GPU: kernels of the samples and of CTE's workloads, plain and counted in several ways, as a
table of times.

    python -m bench.counting_cost make FOLDER       cubins for sm_90, on a machine with nvcc
    python -m bench.counting_cost run FOLDER        on a machine with a GPU and PyCUDA; without nvcc

A row is a sample, or a workload of CTE by the policy `automatic`: milliseconds of its plain build (the median of some
runs of all its launches), then each way's time in plain ones. The results of all builds are checked, and that no
block's counts are lost.
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from bench.counted_workloads import CTE, SAMPLES, CountedCode, counts_in, loaded, plain_ptx, sample_of
from cccopt.device.gpu import LoadedModule, open_gpu
from cccopt.harness.on_gpu import Bench
from cccopt.passes.counting.layout import Layout
from cccopt.passes.instrument import ALL, COUNTED, DETAILED, SAMPLED, Counting, instrumented
from cccopt.profiling.counts import notes_of
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.toolchain.ptxas import assemble

WAYS = {
    **{f"r{n}": Counting(registers=n) for n in (6, 24, 48, 96)},
    "all": ALL,
    "sampled": SAMPLED,
    "1 in 16": replace(SAMPLED, every=16),
    "detailed": DETAILED,
}
GLOBAL = "global"
"""The way of kernels with dynamic shared memory."""
RUNS = 7


@dataclass
class Made:
    """A way of one sample: its code and what its counters count; registers of its kernels, the most."""

    cubin: bytes
    layout: Layout | None
    registers: int


def make(folder: Path, only: Sequence[str]) -> None:
    """Write the cubins of samples and workloads."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in only:
        text = plain_ptx(name)
        made = {"plain": _made(text, None)}
        for way, how in WAYS.items():
            if how.every > 1:
                found = assemble(text, "sm_90").resources
                how = replace(how, limits={k: max(-(-r.registers // 8) * 8, 32) for k, r in found.items()})
            module, layout = instrumented(parse(text), how)
            made[way] = _made(print_module(module), layout)
        # A variable of dynamic shared memory that each kernel names.
        dynamic = text.replace(
            ".address_size 64\n", ".address_size 64\n.extern .shared .align 4 .b8 room[];\n"
        )
        module, layout = instrumented(parse(_naming(dynamic)))
        made[GLOBAL] = _made(print_module(module), layout)
        (folder / f"{name}.made").write_bytes(pickle.dumps(made))
        print(name, {way: m.registers for way, m in made.items()}, flush=True)


def _naming(text: str) -> str:
    """The text with kernels that name the dynamic variable, in code that does nothing."""
    out = []
    for line in text.split("\n"):
        out.append(line)
        if line.startswith("{") and any("entry" in earlier for earlier in out[-14:]):
            out.append(".reg .b32 %room; mov.u32 %room, room;")
    return "\n".join(out)


def _made(text: str, layout: Layout | None) -> Made:
    found = assemble(text, "sm_90")
    counted = [
        r.registers for name, r in found.resources.items() if name.endswith(COUNTED) == (layout is not None)
    ]
    return Made(found.cubin, layout, max(counted))


def run(folder: Path, size: str, only: Sequence[str]) -> None:
    """Print the table."""
    ways = [*WAYS, GLOBAL]
    ratios: dict[str, list[float]] = {way: [] for way in ways}
    with open_gpu() as gpu:
        print(gpu.name)
        print(
            f"{'':16}{'plain ms':>10}"
            + "".join(f"{way:>9}" for way in ways)
            + "   registers plain, r48; notes"
        )
        for name in only:
            made: dict[str, Made] = pickle.loads((folder / f"{name}.made").read_bytes())
            sample = sample_of(name)
            bench = Bench(gpu, sample.instance(size, 1), made["plain"].cubin)
            times: dict[str, float] = {}
            notes: list[str] = []
            for way in ("plain", *ways):
                module = gpu.load(made[way].cubin)
                code: Any = module if way == "plain" else CountedCode(module)
                build = loaded(name, code)
                for repeat in range(RUNS):
                    bench.run(build, check=repeat == 0)
                notes += [f"{way}: {build.wrong}"] if build.wrong else []
                times[way] = median(sum(launches) for launches in build.milliseconds[1:])
                if way != "plain":
                    notes += _notes(module, made[way].layout)
                    ratios[way].append(times[way] / times["plain"])
            row = "".join(f"{times[way] / times['plain']:9.2f}" for way in ways)
            registers = f"{made['plain'].registers}, {made['r48'].registers}"
            print(f"{name:16}{times['plain']:10.3f}{row}   {registers}; {'; '.join(notes)}", flush=True)
    print(f"{'median':26}" + "".join(f"{median(ratios[way]):9.2f}" for way in ways))
    print(f"{'most':26}" + "".join(f"{max(ratios[way]):9.2f}" for way in ways))


def _notes(module: LoadedModule, layout: Layout | None) -> list[str]:
    """What the counters say is wrong."""
    assert layout is not None
    counts = counts_in(module, layout)
    wrong = [
        f.layout.name for f in counts if any(u.lanes > 32 * u.warps or u.lanes < u.warps for u in f.units)
    ]
    return [*notes_of(layout, counts), *(f"counts of `{name}` do not fit" for name in wrong)]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["make", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", default="full")
    parser.add_argument("--only", nargs="*", default=[*SAMPLES, *CTE], metavar="NAME")
    given = parser.parse_args()
    if given.what == "make":
        make(given.folder, given.only)
    else:
        run(given.folder, given.size, given.only)


if __name__ == "__main__":
    main()
