"""What the tests of rewrites share: marked PTX from annotated CUDA, one kernel of a module, runs before and after."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cccopt.emulator import Profile, Program
from cccopt.passes.pipeline import Options, Result
from cccopt.passes.pipeline import run as rewrite_module
from cccopt.ptx.ir import Function, Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings
from tests import slow

MAX_STEPS = 200_000
"""Far more than any launch here needs: a rewrite that loops for ever fails soon."""

MOST_SHUFFLED = 128
"""Threads of the largest launch that is shuffled where several are run: one lane at a time is slow."""

FORMS = ("auto", "split", "idle lanes")
CUDA = Path(__file__).resolve().parent / "cuda"
PTX = CUDA.with_name("ptx")

Arguments = list[Any]
Size = int | tuple[int, ...]


@dataclass(frozen=True)
class Launch:
    """A grid, a block, and the trips of a lane for which the arguments are made."""

    grid: int
    block: Size
    trips: int = 5

    @property
    def threads(self) -> int:
        """All threads of the launch."""
        return self.grid * int(np.prod(self.block))

    @property
    def uneven(self) -> int:
        """A length for which some lanes make one trip less than others."""
        return max(self.threads * self.trips - 5, 1)


def marked(source: Path, arch: str, *options: str) -> Module:
    """What nvcc's front end makes of an annotated file, marks and all; no rewrite has seen it."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings("always", keep_going=True, keep=folder)
        arguments = ["-ptx", f"-arch={arch}", *options, str(source), "-o", f"{folder}/out.ptx"]
        done = run_nvcc(arguments, settings, capture=True)
        # The text with all marks is the first that the shim gives to cicc.
        first = list(Path(folder).glob("*.1.ptx"))
        assert first, done.errors
        return parse(first[0].read_text(), source.name)


@cache
def compiled(name: str, arch: str) -> Module:
    """The marked PTX of ``cuda/NAME.cu``, compiled once in a run of the tests."""
    return marked(CUDA / f"{name}.cu", arch)


def only(module: Module, kernel: str) -> Module:
    """The module without its other kernels."""
    return Module(
        tuple(
            item
            for item in module.items
            if not (isinstance(item, Function) and item.kind == "entry" and item.name != kernel)
        )
    )


def rewritten(module: Module, form: str = "auto", *, expand: bool = True) -> Result:
    """The module with all its regions rewritten. Raises Refusal."""
    return rewrite_module(module, Options(mode="always", form=form, expand=expand))


def run(
    program: Program, kernel: str, launch: Launch, args: Sequence[Any], shuffle: int | None = None
) -> tuple[list[bytes], Profile]:
    """The bytes of all buffers after a launch, hazards reported, and its counters; ``args`` stay as they are."""
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    profile = program.launch(kernel, launch.grid, launch.block, own, shuffle=shuffle, max_steps=MAX_STEPS)
    return [a.tobytes() for a in own if isinstance(a, np.ndarray)], profile


def compare(
    before: Module,
    kernel: str,
    make: Callable[[Launch], Arguments],
    launches: Iterable[Launch],
    *,
    forms: Sequence[str] = FORMS,
    seeds: Sequence[int] = (1,),
    expand: Sequence[bool] = (True, False),
) -> Mapping[str, Mapping[str, int]]:
    """Runs ``kernel`` before and after its rewrite and asserts bit-equal memory: every form in lock-step, the first
    form also shuffled by ``seeds``, on the first of the launches (if tests are to be quick, the one of the fewest
    iterations); with counted loops expanded, without, or both (shuffled, just the first of these if quick).

    For each form: how often warps ran each phase (``push``, ``take``, ``drain``, ``expand``, ``whole``, ``original``).
    """
    inputs = [(launch, make(launch)) for launch in launches]
    shortest = min(range(len(inputs)), key=lambda i: inputs[i][0].threads * inputs[i][0].trips, default=0)
    original = Program(before)
    expected = [run(original, kernel, launch, args)[0] for launch, args in inputs]

    def checked(result: Result, program: Program, place: int, shuffle: int | None) -> dict[str, int]:
        launch, args = inputs[place]
        got, profile = run(program, kernel, launch, args, shuffle)
        assert got == expected[place], f"{kernel}, {form}, {launch}, shuffle {shuffle}: memory differs"
        return phases(result, profile)

    # Forms often make the same module; it runs in lock-step once.
    known: dict[str, tuple[Program, Counter[str]]] = {}
    ran: dict[str, dict[str, int]] = {}
    for form in forms:
        counts = Counter[str]()
        for number, (text, result) in enumerate(_rewrites(before, form, expand).items()):
            if text not in known:
                program, in_step = Program(result.module), Counter[str]()
                for place in range(len(inputs)):
                    in_step.update(checked(result, program, place, None))
                known[text] = program, in_step
            program, in_step = known[text]
            counts.update(in_step)
            shuffled = form == forms[0] and inputs and not (slow.quick and number)
            for shuffle in seeds if shuffled else ():
                counts.update(checked(result, program, shortest if slow.quick else 0, shuffle))
        ran[form] = dict(counts)
    return ran


def _rewrites(before: Module, form: str, expand: Sequence[bool]) -> dict[str, Result]:
    """The rewrites in a form by their text. Only loops marked ``for variable`` can be expanded."""
    choices = expand if "variable" in print_module(before) else expand[:1]
    results = [rewritten(before, form, expand=choice) for choice in choices]
    return {print_module(result.module): result for result in results}


def phases(result: Result, profile: Profile) -> dict[str, int]:
    """How often warps ran the code of each phase."""
    counts: dict[str, int] = {}
    for region in result.regions:
        for phase, labels in region.labels:
            at = (profile.by_label.get((region.kernel, label)) for label in labels)
            counts[phase] = counts.get(phase, 0) + sum(count.warps for count in at if count is not None)
    return counts
