"""Hunts for wrong rewrites: `python -m tests.fuzz.hunt FIRST LAST` judges one file of random kernels a seed.

Prints each find as it comes, and a table last: kernels accepted, refused (by code) and declined, and how many accepted
ones were judged for each pragma and clause in each form. ``--keep`` writes the text of each find, ``--seconds`` ends in
time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from cccopt.ptx.ir import Function, Module, Variable
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.source.annotate import annotate
from tests.fuzz.cuda_kernels import HEAD, Kernel, kernels
from tests.fuzz.judge import ptx_of, ptxas
from tests.fuzz.table import Tally
from tests.fuzz.trial import Outcome, attempt

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


def compiled(made: Sequence[Kernel], arch: str, options: Sequence[str]) -> Module:
    """All kernels with marks, and the same without pragmas, in one module: nvcc starts once."""
    both = annotate(text_of(made), "kernels.cu").text + "\n".join(kernel.plain for kernel in made)
    return parse(ptx_of(both, arch, ("-fmad=false", *options)))


def hunt(
    seed: int, count: int, *, emulate: bool = True, targets: Sequence[tuple[str, tuple[str, ...]]] = TARGETS
) -> File:
    """Judges the ``count`` kernels of file ``seed``."""
    began = _cpu()
    draw = random.Random(seed)
    arch, options = draw.choice(targets)
    made = kernels(seed, count)
    found = File(seed, " ".join((arch, *options)), text_of(made))
    try:
        module = compiled(made, arch, options)
        for kernel in made:
            thorough = draw.random() < 0.08
            found.outcomes.append(
                attempt(module, kernel, draw.randrange(1 << 30), emulate=emulate, thorough=thorough)
            )
        _assemble(found, arch, draw)
    except Exception as problem:  # nvcc does not take the file, or annotations are refused: the hunt goes on
        found.failure = repr(problem)[:600]
    found.seconds = _cpu() - began
    return found


def merged(modules: Sequence[Module]) -> Module:
    """One module of all their functions and variables, each name once."""
    items: dict[object, object] = {}
    for module in modules:
        for item in module.items:
            declared = isinstance(item, Function) and item.body is None
            key = (item.name, declared) if isinstance(item, Function | Variable) else repr(item)
            items.setdefault(key, item)
    return Module(tuple(items.values()))  # type: ignore[arg-type]


def _assemble(found: File, arch: str, draw: random.Random) -> None:
    """Lets ptxas see one variant of each kernel, of some files all."""
    good = [outcome for outcome in found.outcomes if outcome.variants]
    most = max((len(outcome.variants) for outcome in good), default=0)
    for number in range(most) if draw.random() < 0.2 else [draw.randrange(most)] if most else []:
        some = [(o, o.variants[number % len(o.variants)]) for o in good]
        if not ptxas(print_module(merged([variant.module for _, variant in some])), arch):
            continue
        for outcome, variant in some:
            said = ptxas(print_module(variant.module), arch)
            if said:
                outcome.verdict, outcome.detail = "PTXAS", f"{variant.label}: {said[:300]}"


def _cpu() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _slim(seed: int, count: int) -> File:
    """`hunt` without what is only needed in the process that hunts."""
    found = hunt(seed, count)
    for outcome in found.outcomes:
        outcome.variants, outcome.plain = [], None
    return found


def report(found: File, tally: Tally, keep: Path | None) -> None:
    """Counts a file and prints its finds."""
    tally.add(found)
    if found.failure:
        print(f"{found.seed} INVALID {found.target}: {found.failure}", flush=True)
    for outcome in found.outcomes:
        if not outcome.find:
            continue
        print(
            f"{found.seed} {outcome.kernel.mode.value} {found.target} {outcome.verdict}: {outcome.detail}",
            flush=True,
        )
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            comment = f"// seed {found.seed}, {found.target}: {outcome.detail}\n".replace("\\", "")
            path = keep / f"{outcome.verdict.lower()}_{found.seed}_{outcome.kernel.name}.cu"
            path.write_text(comment.replace("\n", " ").rstrip() + "\n" + HEAD + outcome.kernel.text)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.hunt", description=__doc__)
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("last", type=int, help="the seed after the last one")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count(), help="processes")
    parser.add_argument("--seconds", type=float, help="begin no file after this time")
    parser.add_argument("--kernels", type=int, default=24, help="kernels in a file")
    parser.add_argument("--keep", type=Path, help="folder for the texts of finds")
    parser.add_argument("--json", type=Path, help="file for the table's numbers")
    chosen = parser.parse_args(arguments)
    began, tally = time.monotonic(), Tally()
    seeds = iter(range(chosen.first, chosen.last))

    def in_time() -> range:
        for seed in seeds:
            if chosen.seconds is not None and time.monotonic() - began > chosen.seconds:
                return
            yield seed

    work = partial(_slim, count=chosen.kernels)
    if chosen.jobs == 1:
        for seed in in_time():
            report(work(seed), tally, chosen.keep)
    else:
        _in_processes(work, in_time(), chosen.jobs, tally, chosen.keep)
    tally.print(time.monotonic() - began)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(tally.data(), indent=1))
    return 1 if tally.finds else 0


def _in_processes(work, seeds, jobs: int, tally: Tally, keep: Path | None) -> None:
    """Gives each of ``jobs`` processes a file at a time: a deadline then waits for one file each at most."""
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=20) as pool:
        running = []
        for seed in seeds:
            running.append(pool.apply_async(work, (seed,)))
            while len(running) >= jobs:
                done = [r for r in running if r.ready()]
                running = [r for r in running if not r.ready()]
                for one in done:
                    report(one.get(), tally, keep)
                if not done:
                    time.sleep(0.02)
        for one in running:
            report(one.get(), tally, keep)


if __name__ == "__main__":
    sys.exit(main())
