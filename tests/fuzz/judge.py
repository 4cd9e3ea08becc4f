"""Judges rewrites of annotated CUDA kernels: plain nvcc's PTX against the rewritten, byte for byte, on the emulator."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np

from cccopt.emulator import Profile, Program
from cccopt.passes.pipeline import Options
from cccopt.passes.pipeline import run as rewrite_module
from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.source.annotate import annotate
from cccopt.source.strip import strip
from cccopt.toolchain.discovery import find_nvcc
from tests import slow
from tests.fuzz.assembling import AssemblyError, cubin
from tests.fuzz.trial import only
from tests.kernels.running import FORMS, MOST_SHUFFLED, Arguments, Launch, phases

MAX_STEPS = 5_000_000
"""Lanes that run one at a time through loops of random lengths take many steps."""

ALWAYS = Options(mode="always")

Make = Callable[[Launch], Arguments]


@dataclass(frozen=True)
class Pair:
    """One CUDA text compiled by nvcc with all its marks, and without any."""

    marked: Module
    plain: Module


def compile_pair(source: str, arch: str = "sm_90", options: Sequence[str] = ()) -> Pair:
    """Both PTX modules of annotated CUDA text that has no macros around its pragmas."""
    return Pair(
        parse(ptx_of(annotate(source, "kernels.cu").text, arch, options)),
        parse(ptx_of(strip(source), arch, options)),
    )


def alone(pair: Pair, kernel: str) -> Pair:
    """One kernel with the functions that it may call: a refusal of any other says nothing of it."""
    return Pair(only(pair.marked, kernel), only(pair.plain, kernel))


def ptx_of(source: str, arch: str, options: Sequence[str] = ()) -> str:
    """nvcc's PTX of a CUDA text. Raises AssertionError with its messages."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "kernels.cu", Path(folder) / "out.ptx"
        path.write_text(source)
        command = [str(find_nvcc().driver), "-ptx", f"-arch={arch}", *options, str(path), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return out.read_text()


def ptxas(ptx: str, arch: str) -> str:
    """What ptxas has to say against a PTX text; empty if nothing."""
    try:
        cubin(ptx, arch)
    except AssemblyError as problem:
        return str(problem)
    return ""


def run(
    program: Program, kernel: str, launch: Launch, args: Arguments, shuffle: int | None = None
) -> tuple[list[bytes], Profile]:
    """The bytes of all buffers after a launch, hazards reported, and its counters; ``args`` stay as they are."""
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    profile = program.launch(kernel, launch.grid, launch.block, own, shuffle=shuffle, max_steps=MAX_STEPS)
    return [a.tobytes() for a in own if isinstance(a, np.ndarray)], profile


@dataclass
class Verdict:
    """What became of a kernel: phases that ran by form, and what is wrong (nothing, if it is right)."""

    ran: dict[str, dict[str, int]] = field(default_factory=dict)
    wrong: str = ""


def judge(
    pair: Pair,
    kernel: str,
    make: Make,
    launches: Iterable[Launch],
    *,
    forms: Sequence[str] = FORMS,
    seeds: Sequence[int] = (1,),
    assembler: str = "",
    options: Options = ALWAYS,
) -> Verdict:
    """Runs a kernel before and after, in lock-step and (where the launch is small; just the smallest if tests are to be
    quick) shuffled, counted loops expanded and with stacks; ``assembler`` names the target for ptxas. The parameters,
    many as they are, are what tests say by name.

    Raises Refusal where the rewrite does.
    """
    results = {
        print_module(result.module): (form, result)
        for form, expand in product(forms, (False, True))
        for result in [rewrite_module(pair.marked, replace(options, form=form, expand=expand))]
    }
    inputs = [(launch, make(launch)) for launch in launches]
    small = sorted({launch.threads for launch, _ in inputs if launch.threads <= MOST_SHUFFLED})
    assert small or not seeds, "no launch is small enough to be shuffled"
    shuffled = small[:1] if slow.quick else small
    original = Program(pair.plain)
    expected = [run(original, kernel, launch, args)[0] for launch, args in inputs]
    verdict = Verdict()
    for text, (form, result) in results.items():
        program = Program(result.module)
        counts = verdict.ran.setdefault(form, {})
        for (launch, args), memory in zip(inputs, expected, strict=True):
            for shuffle in (None, *(seeds if launch.threads in shuffled else ())):
                got, profile = run(program, kernel, launch, args, shuffle)
                if got != memory:
                    verdict.wrong = f"{kernel}, {form}, {launch}, shuffle {shuffle}: memory differs"
                    return verdict
                for phase, times in phases(result, profile).items():
                    counts[phase] = counts.get(phase, 0) + times
        if assembler:
            said = ptxas(text, assembler)
            if said:
                verdict.wrong = f"{kernel}, {form}: {said}"
                return verdict
    return verdict
    return verdict
