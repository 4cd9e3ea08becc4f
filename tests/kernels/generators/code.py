"""Where generated kernels come from and go to: choices that shrink, and the text of a kernel as it is written."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

PREFIXES = {"b32": "%r", "b64": "%rd", "b16": "%rs", "f32": "%f", "f64": "%fd", "pred": "%p"}
"""The spelling of registers by type, as nvcc writes them."""

LIMITS = (5, 10, 20, 40, 60, 80, 120, 160, 240, 320, 480, 640)

COUNT = "//@ "
"""Begins a line that only the counting twin of a kernel runs."""


@dataclass(frozen=True)
class Choices:
    """Decisions. ``number(n)`` is one of 0 ... n-1; put what is simple first, it is what examples shrink to."""

    number: Callable[[int], int]

    def pick(self, options: Sequence[T]) -> T:
        """One of ``options``."""
        return options[self.number(len(options))]

    def chance(self, percent: int) -> bool:
        """True in about ``percent`` of 100 cases."""
        return self.number(100) >= 100 - percent

    def between(self, low: int, high: int) -> int:
        """A number from ``low`` to ``high``, both included."""
        return low + self.number(high - low + 1)

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """Up to ``most`` of ``options``, each once, in their order."""
        left = list(range(len(options)))
        taken = [left.pop(self.number(len(left))) for _ in range(min(most, len(left)))]
        return [options[i] for i in sorted(taken)]


def seeded(seed: int, limit: int | None = None) -> Choices:
    """Choices from a seed; those after the first ``limit`` are the simplest ones."""
    random_number = random.Random(seed).randrange
    made = count()

    def number(n: int) -> int:
        return random_number(n) if limit is None or next(made) < limit else 0

    return Choices(number)


def drawn(draw: Callable[[st.SearchStrategy[int]], int]) -> Choices:
    """Choices that hypothesis makes smaller when a test fails: it cuts them off at an ever earlier one.

    Drawing each would make few kernels, and alike: one takes hundreds of choices, and hypothesis prefers to repeat
    itself. Small ranges it draws evenly.
    """
    cut = draw(st.integers(0, 120))
    seed = draw(st.integers(0, 127)) * 128 + draw(st.integers(0, 127))
    return seeded(seed, LIMITS[cut] if cut < len(LIMITS) else None)


@dataclass
class Writer:
    """The body of a kernel as it grows: lines, and how many registers of each type and labels there are."""

    lines: list[str] = field(default_factory=list)
    registers: Counter[str] = field(default_factory=Counter)
    labels: int = 1
    counted: int = 0

    def new(self, type: str) -> str:
        """A fresh register."""
        self.registers[type] += 1
        return f"{PREFIXES[type]}{self.registers[type]}"

    def emit(self, text: str) -> None:
        """Adds an instruction."""
        self.lines.append(f"\t{text};")

    def do(self, opcode: str, type: str, *sources: object) -> str:
        """Adds an instruction that writes a fresh register, and gives that register."""
        target = self.new(type)
        self.emit(f"{opcode} \t{', '.join([target, *map(str, sources)])}")
        return target

    def label(self) -> str:
        """A fresh label, not yet placed."""
        self.labels += 1
        return f"$L__BB0_{self.labels}"

    def place(self, label: str) -> None:
        """Puts a label here."""
        self.lines += ["", f"{label}:"]

    def mark(self, text: str) -> None:
        """Adds a marker as the source modifier's inline assembly leaves it."""
        self.lines += ["\t// begin inline asm", f"\t// ccc {text}", "\t// end inline asm"]

    def count(self) -> int:
        """Counts passes through here, per warp, in the counting twin; the number of the counter."""
        self.counted += 1
        self.lines.append(f"{COUNT}red.global.add.u32 [%counts+{4 * (self.counted - 1)}], 1;")
        return self.counted - 1

    def declarations(self) -> list[str]:
        """The declarations of all registers."""
        names = {"b32": ".b32", "b64": ".b64", "b16": ".b16", "f32": ".f32", "f64": ".f64", "pred": ".pred"}
        return [
            f"\t.reg {names[type]} \t{PREFIXES[type]}<{count + 1}>;"
            for type, count in sorted(self.registers.items())
        ]
