"""Hunts for wrong rewrites: `python -m tests.fuzz.hunt FIRST LAST` judges one file of random kernels a seed.

Prints each find as it comes, and a table last: kernels accepted, refused (by code) and declined, and how many accepted
ones were judged for each pragma and clause in each form. ``--keep`` writes the text of each find, ``--seconds`` ends in
time.
``--gpu`` runs the same pairs on a GPU, too, and ``--dump`` writes some of them for compute-sanitizer.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.pool import AsyncResult
from pathlib import Path

from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.source.annotate import annotate
from tests.fuzz import natural_kernels
from tests.fuzz.assembling import AssemblyError, cubin, merged
from tests.fuzz.cuda_kernels import Kernel, kernels
from tests.fuzz.dump import Dump
from tests.fuzz.gpu import Gpu, NoGpuError, chosen_backend, job_of
from tests.fuzz.gpu_jobs import Job
from tests.fuzz.gpu_runner import BACKENDS
from tests.fuzz.judge import ptx_of
from tests.fuzz.natural_kernels import HEAD, IDEAS
from tests.fuzz.table import Tally
from tests.fuzz.trial import Outcome, Variant, attempt

TARGETS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("sm_90", ()),
    ("sm_90", ()),
    ("sm_90", ("-Xcicc", "-O1")),
    ("sm_90", ("-Xcicc", "-O2")),
    ("sm_80", ()),
    ("sm_75", ()),
    ("sm_100", ()),
    ("sm_100", ("-lineinfo",)),
)


NATURAL = "short kernels of these ideas, or of any, in place of mixtures"


@dataclass
class File:
    """What a file of kernels came to: outcomes, how it was compiled, and the CPU seconds that it took."""

    seed: int
    target: str
    source: str
    outcomes: list[Outcome] = field(default_factory=list)
    failure: str = ""
    seconds: float = 0.0


def text_of(made: Sequence[Kernel]) -> str:
    """The kernels and what they call, with their pragmas."""
    return HEAD + "\n".join(kernel.text for kernel in made)


def compiled(made: Sequence[Kernel], arch: str, options: Sequence[str], *, alone: bool = False) -> Module:
    """All kernels with marks, the same without pragmas and, if asked for, with marks of outer loops ``alone``, in one
    module: nvcc starts once.
    """
    others = [kernel.plain for kernel in made] + [kernel.alone for kernel in made if alone]
    text = annotate(text_of(made), "kernels.cu").text + "\n".join(others)
    return parse(ptx_of(text, arch, ("-fmad=false", *options)))


def hunt(
    seed: int,
    count: int,
    *,
    emulate: bool = True,
    targets: Sequence[tuple[str, tuple[str, ...]]] = TARGETS,
    ideas: Sequence[str] | None = None,
) -> File:
    """Judges the ``count`` kernels of file ``seed``: natural ones, if there are ``ideas`` for them."""
    began = _cpu()
    draw = random.Random(seed)
    arch, options = draw.choice(targets)
    made = kernels(seed, count) if ideas is None else natural_kernels.kernels(seed, count, ideas)
    found = File(seed, " ".join((arch, *options)), text_of(made))
    try:
        for kernel, module in _modules(made, arch, options, alone=seed % 3 == 0):
            thorough, number = draw.random() < 0.08, draw.randrange(1 << 30)
            if isinstance(module, str):
                found.outcomes.append(Outcome(kernel, "COMPILE", f"{kernel.name}: {module}"))
            else:
                found.outcomes.append(attempt(module, kernel, number, emulate=emulate, thorough=thorough))
        _assemble(found, arch, draw)
    except Exception as problem:  # nvcc does not take the file, or annotations are refused: the hunt goes on
        found.failure = repr(problem)[:600]
    found.seconds = _cpu() - began
    return found


def _modules(
    made: Sequence[Kernel], arch: str, options: Sequence[str], *, alone: bool
) -> Iterator[tuple[Kernel, Module | str]]:
    """Each kernel with a module that holds it; with what nvcc says where it does not take the kernel."""
    try:
        module = compiled(made, arch, options, alone=alone)
    except AssertionError as problem:
        if len(made) == 1:
            lines = [line for line in str(problem).splitlines() if "error" in line]
            yield made[0], " ".join(lines)[:300]
            return
        middle = len(made) // 2
        yield from _modules(made[:middle], arch, options, alone=alone)
        yield from _modules(made[middle:], arch, options, alone=alone)
        return
    for kernel in made:
        yield kernel, module


def _assemble(found: File, arch: str, draw: random.Random) -> None:
    """Lets ptxas see one variant of each kernel, of some files all."""
    good = [outcome for outcome in found.outcomes if outcome.variants]
    most = max((len(outcome.variants) for outcome in good), default=0)
    for number in range(most) if draw.random() < 0.2 else [draw.randrange(most)] if most else []:
        some = [(o, o.variants[number % len(o.variants)]) for o in good]
        try:
            cubin(print_module(merged([variant.module for _, variant in some])), arch)
        except AssemblyError:
            for outcome, variant in some:
                _assemble_alone(outcome, variant, arch)


def _assemble_alone(outcome: Outcome, variant: Variant, arch: str) -> None:
    try:
        cubin(print_module(variant.module), arch)
    except AssemblyError as problem:
        outcome.verdict, outcome.detail = "PTXAS", f"{outcome.kernel.name}, {variant.label}: {problem}"[:400]
        outcome.cells, outcome.variants = set(), []


def _cpu() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _work(
    seed: int, count: int, emulate: bool, arch: str | None, ideas: Sequence[str] | None
) -> tuple[File, Job | None]:
    """`hunt`, and what a GPU of ``arch`` has to do; in a process of its own, so without what is needed here alone."""
    found = hunt(
        seed, count, emulate=emulate, targets=TARGETS if arch is None else targets_of(arch), ideas=ideas
    )
    job = None
    try:
        job = job_of(seed, found.outcomes, arch) if arch is not None else None
    except AssemblyError as problem:
        found.failure = f"ptxas: {problem}"[:600]
    for outcome in found.outcomes:
        outcome.variants, outcome.plain = [], None
    return found, job


def targets_of(arch: str) -> Sequence[tuple[str, tuple[str, ...]]]:
    """Targets whose PTX a GPU of ``arch`` runs."""
    return [(target, options) for target, options in TARGETS if int(target[3:]) <= int(arch[3:])]


@dataclass
class Hunt:
    """A hunt under way: what is counted, kept, dumped and run on a GPU."""

    keep: Path | None = None
    gpu: Gpu | None = None
    dump: Dump | None = None
    tally: Tally = field(default_factory=Tally)

    def take(self, found: File, job: Job | None) -> None:
        """Counts a file, prints its finds, runs its job."""
        self.tally.add(found)
        if found.failure:
            print(f"{found.seed} INVALID {found.target}: {found.failure}", flush=True)
        for outcome in found.outcomes:
            if outcome.find:
                what = f"{found.seed} {outcome.kernel.mode.value} {found.target} {outcome.detail}"
                print(what if outcome.verdict in outcome.detail else f"{outcome.verdict}: {what}", flush=True)
                self._keep(found, outcome.kernel, outcome.verdict, outcome.detail)
        if job is not None and self.dump is not None and self.dump.left:
            self.dump.add(job)
        if job is not None and self.gpu is not None:
            for line in self.gpu.run(job):
                print(line, flush=True)
                kernel = next((o.kernel for o in found.outcomes if f" {o.kernel.name}," in line), None)
                if kernel is not None:
                    self._keep(found, kernel, "gpu", line)

    def _keep(self, found: File, kernel: Kernel, verdict: str, detail: str) -> None:
        if self.keep is None:
            return
        self.keep.mkdir(parents=True, exist_ok=True)
        comment = f"// seed {found.seed}, {found.target}: {' '.join(detail.split())}"
        text = f"{comment}\n{HEAD}{kernel.text}"
        (self.keep / f"{verdict.lower()}_{found.seed}_{kernel.name}.cu").write_text(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if there is a find, 2 where a GPU is asked for and there is none."""
    chosen = _parser().parse_args(arguments)
    chosen.natural = tuple(IDEAS) if chosen.natural == [] else chosen.natural
    hunting = Hunt(chosen.keep, dump=Dump(chosen.dump, chosen.count) if chosen.dump else None)
    began, arch = time.monotonic(), chosen.arch if chosen.dump else None
    if chosen.gpu is not None:
        try:
            hunting.gpu = Gpu(chosen_backend(chosen.gpu))
            hunting.gpu.start()
        except NoGpuError as problem:
            print(f"error: {problem}", file=sys.stderr)
            return 2
        arch = hunting.gpu.ready.arch
        print(f"on {hunting.gpu.ready.gpu} ({arch})", flush=True)

    def seeds() -> Iterator[int]:
        for seed in range(chosen.first, chosen.last):
            over = chosen.seconds is not None and time.monotonic() - began > chosen.seconds
            if over or (chosen.dump and not chosen.gpu and not hunting.dump.left):
                return
            yield seed

    work = partial(
        _work, count=chosen.kernels, emulate=not chosen.no_emulator, arch=arch, ideas=chosen.natural
    )
    try:
        for found, job in (
            map(work, seeds()) if chosen.jobs == 1 else _in_processes(work, seeds(), chosen.jobs)
        ):
            hunting.take(found, job)
    finally:
        if hunting.gpu is not None:
            hunting.gpu.close()
    hunting.tally.print(time.monotonic() - began, hunting.gpu)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(hunting.tally.data(hunting.gpu), indent=1))
    return 1 if hunting.tally.finds or (hunting.gpu and hunting.gpu.outcomes) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.hunt", description=__doc__)
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("last", type=int, help="the seed after the last one")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count(), help="processes")
    parser.add_argument("--seconds", type=float, help="begin no file after this time")
    parser.add_argument("--kernels", type=int, default=24, help="kernels in a file")
    parser.add_argument("--natural", nargs="*", choices=tuple(IDEAS), help=NATURAL)
    parser.add_argument("--keep", type=Path, help="folder for the texts of finds")
    parser.add_argument("--json", type=Path, help="file for the table's numbers")
    parser.add_argument(
        "--gpu",
        nargs="?",
        const="auto",
        choices=("auto", *BACKENDS),
        help="also run on a GPU, through CuPy or PyCUDA (`emulator` is a stand-in for tests)",
    )
    parser.add_argument("--no-emulator", action="store_true", help="run on the GPU alone")
    parser.add_argument(
        "--dump", type=Path, help="folder for rewritten kernels with a program that launches them"
    )
    parser.add_argument("--count", type=int, default=100, help="kernels to dump")
    parser.add_argument("--arch", default="sm_90", help="the architecture to dump for, without `--gpu`")
    return parser


Work = Callable[[int], tuple[File, "Job | None"]]


def _in_processes(work: Work, seeds: Iterator[int], jobs: int) -> Iterator[tuple[File, Job | None]]:
    """Gives each of ``jobs`` processes a file at a time, a few more in the queue: a deadline waits for these."""
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=20) as pool:
        running: list[AsyncResult[tuple[File, Job | None]]] = []
        more = True
        while more or running:
            while more and len(running) < jobs + jobs // 2 + 1:
                seed = next(seeds, None)
                more = seed is not None
                if seed is not None:
                    running.append(pool.apply_async(work, (seed,)))
            done = [result for result in running if result.ready()]
            running = [result for result in running if result not in done]
            for result in done:
                yield result.get()
            if not done:
                time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
