"""Builds of a workload run once on a GPU, for tools that look on: ``python -m cccopt.harness.once NAME [BUILD ...]``.
With ``--input INPUT`` it is a workload of ``bench/cte``; without builds it is then run in all of its own.

compute-sanitizer and Nsight Compute start it; the latter looks at the launches that are timed elsewhere. Results are
checked. Exit status 1 for a wrong result or an error, 2 where there is no such build (a refusal, no peer).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from cccopt.device.gpu import Gpu, open_gpu
from cccopt.diagnostic import CccError, render
from cccopt.harness import builds
from cccopt.harness.builds import ALL_BUILDS, Build, NoBuild, cubin_file
from cccopt.harness.cte import workload as cte_workload
from cccopt.harness.on_gpu import Bench, LoadedBuild
from cccopt.harness.workload import Sample, load

WRONG, ABSENT = 1, 2

Make: TypeAlias = "Callable[[str, str], Build | NoBuild]"
"""Makes a build, given its name and an architecture."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the builds and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m cccopt.harness.once")
    parser.add_argument("name")
    parser.add_argument("builds", nargs="*", metavar="BUILD")
    parser.add_argument("--input")
    parser.add_argument("--size", default="small")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--cubins", type=Path, required=True, help="a folder that has the builds or takes them"
    )
    parser.add_argument(
        "--order", type=Path, help="takes the launches that a profiler was shown, as JSON lines"
    )
    parser.add_argument("--unchecked", action="store_true", help="leave the results as they are")
    args = parser.parse_args(argv)
    try:
        sample, known, make = _subject(args.name, args.input)
        unknown = [name for name in args.builds if cte_workload.with_ours(name) not in known]
        if unknown:
            parser.error(f"no build `{unknown[0]}`: choose from {', '.join(known)}")
        with open_gpu() as gpu:
            return _run(gpu, sample, args.builds or known, make, args)
    except CccError as problem:
        for diagnostic in problem.diagnostics:
            print(render(diagnostic), file=sys.stderr)
        return WRONG


def _subject(name: str, input: str | None) -> tuple[Sample, tuple[str, ...], Make]:
    """The workload, its builds, and what makes them."""
    if input is None:
        sample = load(name)
        return sample, ALL_BUILDS, partial(builds.build, sample)
    workload = cte_workload.load(name)
    ours = tuple(build for build in workload.builds if workload.kind(build) != cte_workload.BuildKind.VENDOR)
    return workload.sample(input), ours, partial(cte_workload.build, workload)


def _run(gpu: Gpu, sample: Sample, wanted: Sequence[str], make: Make, args: argparse.Namespace) -> int:
    codes = {}
    for name in dict.fromkeys((sample.plain, *wanted)):
        code = cubin(sample, name, gpu.arch, args.cubins, make)
        if isinstance(code, bytes):
            codes[name] = code
            continue
        why = f"refused: {code.why}" if code.by_headers else code.why
        if args.builds:
            print(f"{sample.name} {name}: no such build: {why}")
            return ABSENT
        if not code.by_headers:
            print(f"{sample.name} {name}: {why}")
            return WRONG
        print(f"{sample.name} {name}: left out: {why}")
    bench = Bench(gpu, sample.instance(args.size, args.seed), codes[sample.plain])
    status = 0
    for name in filter(codes.__contains__, wanted):
        loaded = LoadedBuild(name, gpu.load(codes[name]))
        launches = bench.run(loaded, check=not args.unchecked, profile=args.order is not None)
        verdict = loaded.wrong or ("unchecked" if args.unchecked else "right")
        print(f"{sample.name} {name}: {verdict}, {len(launches)} launches", flush=True)
        status = WRONG if loaded.wrong else status
        if args.order is not None:
            with args.order.open("a", encoding="utf-8") as order:
                order.writelines(json.dumps([name, launch.kernel]) + "\n" for launch in launches)
    return status


def cubin(sample: Sample, name: str, arch: str, folder: Path, make: Make) -> bytes | NoBuild:
    """The machine code of a build from ``folder``; made and left there where it is missing."""
    path = cubin_file(folder, sample.name, name)
    if not path.is_file():
        made = make(name, arch)
        if isinstance(made, NoBuild):
            return made
        # Several of these programs may make it at the same time.
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{os.getpid()}.unfinished"
        unfinished.write_bytes(made.cubin)
        unfinished.replace(path)
    return path.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
