"""Makes a find small: `python -m tests.fuzz.reduce SEED KERNEL` drops statements as long as the same goes wrong.

Statements are lines, or pieces from a line to where its braces close. A piece may go, or its braces alone. Only the
same launches are tried.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.fuzz import natural_kernels
from tests.fuzz.cuda_kernels import Kernel, kernel
from tests.fuzz.hunt import NATURAL, TARGETS, compiled
from tests.fuzz.natural_kernels import HEAD, IDEAS
from tests.fuzz.trial import Outcome, attempt

BATCH = 12
"""Candidates that nvcc compiles at once."""


def found(
    seed: int, name: str, ideas: Sequence[str] | None = None
) -> tuple[Kernel, str, Sequence[str], int, bool]:
    """The kernel ``name`` of file ``seed``, its target and options, and how the hunt tries it."""
    draw = random.Random(seed)
    arch, options = draw.choice(TARGETS)
    place = int(name[1:])
    for _ in range(place + 1):
        thorough, number = draw.random() < 0.08, draw.randrange(1 << 30)
    made = (
        kernel(seed * 1000 + place, name)
        if ideas is None
        else natural_kernels.kernel(seed * 1000 + place, name, ideas)
    )
    return made, arch, options, number, thorough


def candidates(lines: Sequence[str]) -> Iterator[list[str]]:
    """The text with one piece less, large pieces first."""
    pieces = sorted(_pieces(lines), key=lambda piece: piece[0] - piece[1])
    for start, end in pieces:
        if _may_go(lines[start:end], [*lines[:start], *lines[end:]]):
            yield [*lines[:start], *lines[end:]]
        opening = next(n for n in range(start, end) if not lines[n].startswith("#"))
        if end - opening > 2 and _may_go([lines[opening]], [*lines[:opening], *lines[opening + 1 :]]):
            yield [*lines[:start], *lines[opening + 1 : end - 1], *lines[end:]]
        if opening > start:
            yield [*lines[:start], *lines[opening:]]


def _pieces(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(start, end) of each statement in the braces of a function, with the pragmas above it."""
    for start, line in enumerate(lines):
        if line.lstrip().startswith(("}", "extern", "static", "case", "default")) or not line.strip():
            continue
        end, depth = start, 0
        while end < len(lines):
            depth += 0 if lines[end].startswith("#") else lines[end].count("{") - lines[end].count("}")
            end += 1
            if depth <= 0 and not lines[end - 1].startswith("#"):
                break
        if depth == 0:
            yield start, end


def _may_go(gone: Sequence[str], left: Sequence[str]) -> bool:
    """Whether no variable is missed that the lines declare."""
    text = "\n".join(left)
    declared = re.findall(
        r"\b(?:unsigned|int|short|char|long|float|double|bool) (\w+)(?:\[4\])? =", "\n".join(gone)
    )
    return not any(re.search(rf"\b{name}\b", text) for name in declared)


def reduced(
    first: Kernel, arch: str, options: Sequence[str], number: int, *, thorough: bool
) -> Outcome | None:
    """The smallest text that fails like ``first``; None if that does not fail."""

    def tried(made: Kernel) -> Outcome:
        return attempt(compiled([made], arch, options), made, number, thorough=thorough)

    best = tried(first)
    if not best.find:
        return None
    while True:
        lines = best.kernel.text.splitlines()
        smaller = None
        batch: list[Kernel] = []
        for candidate in [*candidates(lines), None]:
            if candidate is not None:
                text = re.sub(r"\bk\d+", f"k{len(batch)}", "\n".join(candidate) + "\n")
                batch.append(replace(first, name=f"k{len(batch)}", text=text))
            if len(batch) == BATCH or (candidate is None and batch):
                smaller = _first(batch, best.verdict, arch, options, number, thorough=thorough)
                batch = []
            if smaller is not None:
                break
        if smaller is None:
            return best
        best = smaller
        print(f"{len(best.kernel.text.splitlines())} lines, {best.detail[:150]}", file=sys.stderr, flush=True)


def _first(
    batch: Sequence[Kernel], verdict: str, arch: str, options: Sequence[str], number: int, *, thorough: bool
) -> Outcome | None:
    try:
        module = compiled(batch, arch, options)
    except Exception:  # one of them is no CUDA: each by itself, then
        if len(batch) == 1:
            return None
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            smaller = _first(half, verdict, arch, options, number, thorough=thorough)
            if smaller is not None:
                return smaller
        return None
    for made in batch:
        outcome = attempt(module, made, number, thorough=thorough)
        if outcome.verdict == verdict:
            return outcome
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.reduce", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("kernel")
    parser.add_argument("--natural", nargs="*", choices=tuple(IDEAS), help=NATURAL)
    chosen = parser.parse_args()
    ideas = tuple(IDEAS) if chosen.natural == [] else chosen.natural
    first, arch, options, number, thorough = found(chosen.seed, chosen.kernel, ideas)
    outcome = reduced(first, arch, options, number, thorough=thorough)
    if outcome is None:
        print("this kernel does not go wrong", file=sys.stderr)
        return 1
    print(
        f"// seed {chosen.seed}, {chosen.kernel}, {arch} {' '.join(options)}: {' '.join(outcome.detail.split())}"
    )
    print(HEAD + outcome.kernel.text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
