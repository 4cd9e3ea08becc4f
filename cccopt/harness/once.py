"""Builds of a workload run once on a GPU, for tools that look on: ``python -m cccopt.harness.once NAME [BUILD ...]``.

compute-sanitizer and Nsight Compute start it; the latter looks at the launches that are timed elsewhere. Results are
checked. Exit status 1 for a wrong result or an error, 2 where there is no such build (a refusal, no peer).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cccopt.device.gpu import Gpu, open_gpu
from cccopt.diagnostic import CccError, render
from cccopt.harness.builds import ALL, NoBuild, build
from cccopt.harness.on_gpu import Bench, Loaded
from cccopt.harness.result import PLAIN
from cccopt.harness.workload import Sample, load

WRONG, ABSENT = 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the builds and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m cccopt.harness.once")
    parser.add_argument("name")
    parser.add_argument("builds", nargs="+", choices=ALL, metavar="BUILD")
    parser.add_argument("--size", default="small")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--cubins", type=Path, required=True, help="a folder that has the builds or takes them"
    )
    parser.add_argument(
        "--order", type=Path, help="takes the launches that a profiler was shown, as JSON lines"
    )
    args = parser.parse_args(argv)
    try:
        sample = load(args.name)
        with open_gpu() as gpu:
            return _run(gpu, sample, args)
    except CccError as problem:
        for diagnostic in problem.diagnostics:
            print(render(diagnostic), file=sys.stderr)
        return WRONG


def _run(gpu: Gpu, sample: Sample, args: argparse.Namespace) -> int:
    codes = {}
    for name in dict.fromkeys((PLAIN, *args.builds)):
        code = cubin(sample, name, gpu.arch, args.cubins)
        if isinstance(code, NoBuild):
            print(f"{sample.name} {name}: no such build: {code.why}")
            return ABSENT
        codes[name] = code
    bench = Bench(gpu, sample, sample.inputs(args.size, args.seed), args.size, codes[PLAIN])
    status = 0
    for name in args.builds:
        loaded = Loaded(name, gpu.load(codes[name]))
        launches = bench.run(loaded, check=True, profile=args.order is not None)
        print(f"{sample.name} {name}: {loaded.wrong or 'right'}, {len(launches)} launches", flush=True)
        status = WRONG if loaded.wrong else status
        if args.order is not None:
            with args.order.open("a", encoding="utf-8") as order:
                order.writelines(json.dumps([name, launch.kernel]) + "\n" for launch in launches)
    return status


def cubin(sample: Sample, name: str, arch: str, folder: Path) -> bytes | NoBuild:
    """The machine code of a build from ``folder``; made and left there where it is missing."""
    path = file_of(folder, sample.name, name)
    if not path.is_file():
        made = build(sample, name, arch)
        if isinstance(made, NoBuild):
            return made
        # Several of these programs may make it at the same time.
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{os.getpid()}.unfinished"
        unfinished.write_bytes(made.cubin)
        unfinished.replace(path)
    return path.read_bytes()


def file_of(folder: Path, sample: str, build: str) -> Path:
    """Where the machine code of a build lies."""
    return folder / f"{sample}.{build}.cubin"


if __name__ == "__main__":
    sys.exit(main())
