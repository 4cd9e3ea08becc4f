"""Run builds of a workload once on a GPU, for tools that watch: ``python -m cccopt.harness.once NAME [BUILD ...]``.

With ``--input INPUT``, NAME is a workload of ``bench/cte``; with ``--graph GRAPH``, it is an algorithm of
``bench/graphs``, whose builds are its forms. Without a BUILD, all builds are run, except those of NVIDIA's libraries.

compute-sanitizer and Nsight Compute start it; the latter looks at the launches that are timed elsewhere. Results are
checked. The exit status is 1 for a wrong result or an error, and 2 if a build does not exist (a refusal, no peer).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

from cccopt.device.gpu import Gpu, open_gpu
from cccopt.diagnostic import CccError, render
from cccopt.harness import builds
from cccopt.harness.builds import ALL_BUILDS, Build, NoBuild, assembled, cubin_file
from cccopt.harness.cte import workload as cte_workload
from cccopt.harness.graphs import workload as graphs_workload
from cccopt.harness.on_gpu import Bench, LoadedBuild
from cccopt.harness.workload import Instance, Sample, load
from cccopt.text import quantity

WRONG, ABSENT = 1, 2

Make: TypeAlias = "Callable[[str, str], Build | NoBuild]"
"""Makes a build, given its name and an architecture."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is run: a workload, the names of its builds, what makes them, and the runs that make up an instance.

    What follows an ``@`` in a name (headers or a policy) is looked up when the build is made.
    """

    sample: Sample
    builds: Sequence[str]
    make: Make
    runs: Callable[[Instance], Iterable[Instance]] = lambda instance: (instance,)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the builds and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m cccopt.harness.once")
    parser.add_argument("name")
    parser.add_argument("builds", nargs="*", metavar="BUILD")
    parser.add_argument("--input", help="of a workload of `bench/cte`")
    parser.add_argument("--graph", help="of an algorithm of `bench/graphs`: a name or a file")
    parser.add_argument("--sources", type=int, default=0, help="as `cccopt bench graphs` takes it")
    parser.add_argument("--size", default="small")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--cubins",
        type=Path,
        required=True,
        help="the folder of the builds; missing ones are made and kept there",
    )
    parser.add_argument(
        "--order",
        type=Path,
        help="the file for the launches that a profiler was shown, as JSON lines",
    )
    parser.add_argument("--unchecked", action="store_true", help="do not check the results")
    args = parser.parse_args(argv)
    try:
        subject = _subject(args)
        unknown = [name for name in args.builds if name.partition("@")[0] not in subject.builds]
        if unknown:
            parser.error(f"no build `{unknown[0]}`: choose from {', '.join(subject.builds)}")
        with open_gpu() as gpu:
            return _run(gpu, subject, args)
    except CccError as problem:
        for diagnostic in problem.diagnostics:
            print(render(diagnostic), file=sys.stderr)
        return WRONG


def _subject(args: argparse.Namespace) -> Subject:
    if args.graph is not None:
        return _of_graphs(args)
    if args.input is None:
        sample = load(args.name)
        return Subject(sample, ALL_BUILDS, partial(builds.build, sample))
    workload = cte_workload.load(args.name)
    ours = [build for build in workload.builds if workload.kind(build) != cte_workload.BuildKind.VENDOR]
    return Subject(workload.sample(args.input), ours, partial(cte_workload.build, workload))


def _of_graphs(args: argparse.Namespace) -> Subject:
    algorithm = graphs_workload.load(args.name)
    policies = graphs_workload.policies_of(args.builds)

    @cache
    def code(arch: str) -> graphs_workload.Code:
        return graphs_workload.compiled(algorithm, arch, policies)

    def make(form: str, arch: str) -> Build | NoBuild:
        text = code(arch).of(form)
        return assembled(form, text, arch) if isinstance(text, str) else text

    def runs(instance: Instance) -> Iterable[Instance]:
        return graphs_workload.searches(algorithm, instance, args.sources, args.seed).values()

    return Subject(algorithm.sample(args.graph), algorithm.module.FORMS, make, runs)


def _run(gpu: Gpu, subject: Subject, args: argparse.Namespace) -> int:
    sample, codes = subject.sample, {}
    wanted = args.builds or subject.builds
    for name in dict.fromkeys((sample.plain, *wanted)):
        code = cubin(sample, name, gpu.arch, args.cubins, subject.make)
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
    found = [name for name in wanted if name in codes]
    runs = list(subject.runs(sample.instance(args.size, args.seed)))
    if len(runs) == 1:
        return _run_on(gpu, runs[0], found, codes, args, args.order)
    # A build's launches are those of all runs: the list of a run that dies is useless for all of them.
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        order = None if args.order is None else Path(folder, "order")
        status = max(_run_on(gpu, run, found, codes, args, order) for run in runs)
        if order is not None:
            shutil.copyfile(order, args.order)
    return status


def _run_on(
    gpu: Gpu,
    instance: Instance,
    wanted: Iterable[str],
    codes: Mapping[str, bytes],
    args: argparse.Namespace,
    order: Path | None,
) -> int:
    """One run of each of the ``wanted`` builds; ``order`` takes their launches."""
    sample, status = instance.sample, 0
    bench = Bench(gpu, instance, codes[sample.plain])
    for name in wanted:
        loaded = LoadedBuild(name, gpu.load(codes[name]))
        launches = bench.run(loaded, check=not args.unchecked, profile=order is not None)
        verdict = loaded.wrong or ("unchecked" if args.unchecked else "right")
        print(f"{sample.name} {name}: {verdict}, {quantity(len(launches), 'launch', 'launches')}", flush=True)
        status = WRONG if loaded.wrong else status
        if order is not None:
            with order.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps([name, launch.kernel]) + "\n" for launch in launches)
    return status


def cubin(sample: Sample, name: str, arch: str, folder: Path, make: Make) -> bytes | NoBuild:
    """The machine code of a build from ``folder``; if it is missing, it is made and left there."""
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
