"""Tries rewrites of one random kernel: plain nvcc's PTX against each form of the rewritten, on the emulator.

A launch in the default order shows what changes order within an iteration. Hazard mode, always on, shows accesses to
shared memory that no barrier orders. Shuffled orders show what depends on the order of lanes.
"""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from types import FrameType
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from cccopt.ccc.function.calls import called
from cccopt.ccc.function.view import View
from cccopt.ccc.outcome.choices import Form, StackMemory
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.outcome.report import RegionReport
from cccopt.ccc.plan.in_lane import InLanePlan, make_in_lane_plan
from cccopt.ccc.regions.marked_loops import Region
from cccopt.diagnostic import CccError
from cccopt.emulator import Program
from cccopt.passes import in_lane_form
from cccopt.passes.pipeline import Options, Result
from cccopt.passes.pipeline import run as rewrite_module
from cccopt.ptx.ir import Function, Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from tests.fuzz.cuda_kernels import Kernel, alone_name, plain_name
from tests.fuzz.cuda_memory import BUFFERS, PARTS, REORDERED, arguments
from tests.kernels.running import MOST_SHUFFLED, Arguments, Launch, phases

SECONDS = 60
"""CPU time that rewriting one kernel may take: a pass that does not end is a find. Emulation ends by its steps."""

CLAUSES = ("reduce", "chunk", "collect", "hoist", "nohoist", "independent", "block", "always")
_WAITING = {Form.IN_LANE: 300_000, Form.CARRIED: 2_000_000}
"""Steps of all threads of a launch up to which lanes that wait for each other are shuffled: one at a time they vote for
each other some hundred times as often, where tasks move some twenty times.
"""


class StuckError(Exception):
    """A kernel took longer than `SECONDS`."""


@dataclass(frozen=True)
class Variant:
    """One form of the rewritten kernel; ``label`` names how it was asked for."""

    label: str
    module: Module
    result: Result


@dataclass
class Outcome:
    """What became of a kernel: ``accepted``, ``declined``, a refusal's code, or what is wrong with it.

    ``cells`` are the (row, column) of the hunt's table in which it counts; ``variants`` are kept for a GPU.
    """

    kernel: Kernel
    verdict: str
    detail: str = ""
    cells: set[tuple[str, str]] = field(default_factory=set)
    variants: list[Variant] = field(default_factory=list)
    plain: Module | None = None

    @property
    def find(self) -> bool:
        """Whether this is something that must not be."""
        return self.verdict.isupper() and not self.verdict.startswith("CCC")


class DifferenceError(Exception):
    """Two runs that must agree do not."""


def only(module: Module, name: str) -> Module:
    """One kernel with the functions that it may call: a refusal of any other says nothing of it."""
    names = called(module, [name])
    items = (item for item in module.items if not isinstance(item, Function) or item.name in names)
    return Module(tuple(items))


def attempt(
    module: Module, kernel: Kernel, seed: int, *, emulate: bool = True, thorough: bool = False
) -> Outcome:
    """Rewrites ``kernel`` in ``module``, which holds its plain version too, in each form, and judges what comes out."""
    draw = random.Random(seed)
    outcome = Outcome(kernel, "accepted")
    try:
        with _limit(SECONDS):
            marked = only(module, kernel.name)
            outcome.plain = only(module, plain_name(kernel.name))
            found = (*variants(marked, kernel, draw), *_in_place(module, kernel))
            outcome.variants = [variant for variant in found if variant.result.regions]
            if not any(r.outcome == "rewritten" for v in outcome.variants for r in v.result.regions):
                outcome.verdict, outcome.variants = "declined", []
                return outcome
        for variant in outcome.variants:
            outcome.cells |= cells(kernel, variant)
        if emulate:
            _Emulation(outcome, draw, thorough=thorough).run()
    except Refusal as problem:
        outcome.verdict, outcome.detail = problem.diagnostics[0].code, problem.diagnostics[0].message
    except CccError as problem:
        outcome.verdict, outcome.detail = (
            "ERROR",
            f"{problem.diagnostics[0].code} {problem.diagnostics[0].message}",
        )
    except DifferenceError as problem:
        outcome.verdict, outcome.detail = str(problem).split(":", 1)[0], str(problem)
    except StuckError as problem:
        outcome.verdict, outcome.detail = "STUCK", str(problem)
    except Exception as problem:  # a hunt goes on: whatever a pass may raise is a find
        outcome.verdict, outcome.detail = "CRASH", repr(problem)[:400]
    if outcome.find or outcome.verdict.startswith("CCC"):
        outcome.cells, outcome.variants = set(), []
    return outcome


def variants(marked: Module, kernel: Kernel, draw: random.Random) -> Iterator[Variant]:
    """Each form that may be forced, one of them with stacks in global memory too, and now and then what `auto` chooses;
    each distinct text once.
    """
    forms = [("split", True), ("idle lanes", True), ("carried", True), ("in lane", True)]
    if "ccc for variable" in kernel.text:
        forms += [("split", False), ("idle lanes", False)]
    drawn = draw.choice(forms)
    if draw.random() < 0.15:
        forms.append(("auto", True))
    wanted = [(*form, StackMemory.AUTO) for form in forms] + [(*drawn, StackMemory.GLOBAL)]
    seen = set()
    resident = draw.randrange(1, 4)
    in_step = draw.random() < 0.5
    refused: Refusal | None = None
    for form, expand, stacks in wanted:
        options = Options(mode="always", form=form, expand=expand, resident=resident, stacks=stacks)
        try:
            with patch.object(in_lane_form, "make_in_lane_plan", together if in_step else make_in_lane_plan):
                result = rewrite_module(marked, options)
        except Refusal as problem:
            refused = refused or problem
            continue
        text = print_module(result.module)
        if text not in seen:
            seen.add(text)
            label = f"{form}{'' if expand else ', not expanded'}"
            label += "" if stacks is StackMemory.AUTO else ", stacks in global memory"
            yield Variant(label, result.module, result)
    if not seen and refused is not None:
        raise refused


def _in_place(module: Module, kernel: Kernel) -> Iterator[Variant]:
    """The kernel with marks of its outer loops alone, if it is in ``module`` so, rewritten: in this form lanes run all
    that is marked in place.
    """
    name = alone_name(kernel.name)
    if any(function.name == name for function in module.functions()):
        text = re.sub(r"\ba(\d+)", r"k\1", print_module(only(module, name)))
        with suppress(Refusal):
            result = rewrite_module(parse(text), Options(mode="always"))
            yield Variant("in place", result.module, result)


def together(view: View, region: Region, *, flattened: bool | None = None) -> InLanePlan:
    """A plan by which lanes begin their iterations together, which else is chosen by cost alone."""
    return make_in_lane_plan(view, region, flattened=False)


def cells(kernel: Kernel, variant: Variant) -> set[tuple[str, str]]:
    """Where an accepted kernel counts: pragmas and clauses by the forms that they took in one variant."""
    done = [region for region in variant.result.regions if region.outcome == "rewritten"]
    loops = {region.form for region in done if region.kind in ("for", "grid")}
    found = {(region.kind, form) for region in done for form in _forms(region, done, variant) | loops}
    text = " ".join(re.findall(r"#pragma ccc (.*)", kernel.text))
    found |= {(clause, form) for clause in CLAUSES if re.search(rf"\b{clause}\b", text) for form in loops}
    return found


def _forms(region: RegionReport, done: Sequence[RegionReport], variant: Variant) -> set[str]:
    """What became of a region beside the form of its loop."""
    if region.kind in ("for", "grid"):
        return set()
    memory = {"global stack"} if region.global_bytes else set()
    if region.form in ("expanded", "carried", "in lane"):
        return {region.form} | memory
    names = {phase for phase, _ in region.labels}
    if region.kind in ("for variable", "while", "recursive"):
        return memory | ({"stack"} if "push" in names else {"in place"})
    return memory | ({"stack"} if "push" in names else {"sorted"} if "drain" in names else {"in place"})


# --- running ---


class _Emulation:
    """The runs of one kernel."""

    def __init__(self, outcome: Outcome, draw: random.Random, *, thorough: bool) -> None:
        self.outcome, self.draw, self.thorough = outcome, draw, thorough
        self.kernel = outcome.kernel

    def run(self) -> None:
        """Raises DifferenceError where the rewritten kernel does anything else than the plain one."""
        assert self.outcome.plain is not None
        plain = Program(self.outcome.plain)
        name = plain_name(self.kernel.name)
        sizes = ("small", "odd", "odd") if self.thorough else ("small", "odd")
        expected = []
        for size in sizes:
            launch = self.kernel.launch(self.draw, size)
            given = arguments(launch)
            try:
                memory, steps = _run(plain, name, launch, given, None, 3_000_000)[:2]
                shuffle = self.thorough and launch.threads <= MOST_SHUFFLED
                most = 100 * steps + 100_000
                if shuffle and differences(memory, _run(plain, name, launch, given, 5, most)[0]):
                    raise DifferenceError(f"INVALID: {name} depends on the order of lanes, {launch}")
            except CccError as problem:
                raise DifferenceError(
                    f"INVALID: {name}, {launch}: {problem.diagnostics[0].message}"
                ) from problem
            expected.append((launch, given, memory, steps))
        shuffled = self.draw.randrange(len(self.outcome.variants))
        for number, variant in enumerate(self.outcome.variants):
            program = Program(variant.module)
            for place, case in enumerate(expected):
                seeds: list[int | None] = [None]
                # One lane at a time is slow: only small launches are shuffled.
                if case[0].threads <= MOST_SHUFFLED and (
                    self.thorough or (place == 0 and number == shuffled)
                ):
                    seeds += [self.draw.randrange(99) for _ in range(2 if self.thorough else 1)]
                most = min(_WAITING.get(region.form, inf) for region in variant.result.regions)
                steps = 0
                for seed in seeds:
                    if seed is None or steps * case[0].threads <= most:
                        steps = self._compare(variant, program, case, seed)

    def _compare(
        self,
        variant: Variant,
        program: Program,
        case: tuple[Launch, Arguments, list[bytes], int],
        seed: int | None,
    ) -> int:
        """The steps that the run took; DifferenceError where it came to something else than ``case``."""
        launch, given, memory, steps = case
        order = "default order" if seed is None else f"shuffle {seed}"
        where = f"{self.kernel.name}, {variant.label}, {order}, {launch}"
        points = sum(region.form == "carried" for region in variant.result.regions) + 1
        # Lanes that wait for each other, one at a time, look for one another in between.
        waiting = 64 if any(region.form == "in lane" for region in variant.result.regions) else 1
        most = waiting * points * (100 * steps + 20_000 if seed is None else 1000 * steps + 100_000)
        try:
            got, taken, profile = _run(program, self.kernel.name, launch, given, seed, most)
        except CccError as problem:
            first = problem.diagnostics[0]
            what = {"CCC073": "HAZARD", "CCC074": "HANG", "CCC075": "HANG"}.get(first.code, "FAULT")
            raise DifferenceError(f"{what}: {where}: {first.message}") from problem
        wrong = differences(memory, got)
        if wrong:
            raise DifferenceError(f"WRONG: {where}: {wrong}")
        ran = {phase for phase, times in phases(variant.result, profile).items() if times}
        kinds = {region.kind for region in variant.result.regions if region.outcome == "rewritten"}
        self.outcome.cells |= {("any pragma", f"ran {phase}") for phase in ran}
        for kind in kinds:
            own = tuple(r for r in variant.result.regions if r.kind == kind)
            counts = phases(Result(variant.module, (), own), profile)
            self.outcome.cells |= {(kind, f"ran {phase}") for phase, times in counts.items() if times}
        return taken


def _run(
    program: Program, name: str, launch: Launch, given: Arguments, seed: int | None, most: int
) -> tuple[list[bytes], int, object]:
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in given]
    profile = program.launch(name, launch.grid, launch.block, own, shuffle=seed, max_steps=most)
    return [a.tobytes() for a in own if isinstance(a, np.ndarray)], profile.steps, profile


def differences(expected: Sequence[bytes], got: Sequence[bytes]) -> str:
    """In which buffers two runs differ, sums that may be reordered by more than their tolerance; empty if in none."""
    found = []
    for (type, name), before, after in zip(BUFFERS, expected, got, strict=True):
        if before == after:
            continue
        kind = {"double*": np.float64, "float*": np.float32, "unsigned long long*": np.uint64}.get(
            type, np.uint32
        )
        left, right = np.frombuffer(before, kind), np.frombuffer(after, kind)
        if name == "queue" and _alike(left, right):
            continue
        if name in REORDERED and np.allclose(left, right, REORDERED[name], REORDERED[name], equal_nan=True):
            continue
        places = np.flatnonzero(left.view(f"u{left.itemsize}") != right.view(f"u{left.itemsize}"))
        first = int(places[0])
        found.append(
            f"{name}[{first}] is {right[first]}, not {left[first]} ({places.size} of {left.size} differ)"
        )
    return "; ".join(found)


def _alike(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> bool:
    """Whether queues have the same items, in whatever order."""
    return all(
        np.array_equal(np.sort(a), np.sort(b))
        for a, b in zip(np.split(left, PARTS), np.split(right, PARTS), strict=True)
    )


@contextmanager
def _limit(seconds: int) -> Iterator[None]:
    """Raises StuckError in the block when that takes more CPU time."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise StuckError(f"takes more than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
