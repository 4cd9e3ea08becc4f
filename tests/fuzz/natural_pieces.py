"""What natural kernels are put together from (`natural_kernels`): a piece is one idea, written into several places of a
kernel.

Natural kernels are short, and their addresses simple, so that rules are sure of much that they are not sure of in the
mixtures of `cuda_kernels`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.fuzz.cuda_memory import SLOTS


@dataclass(frozen=True)
class Loop:
    """A loop: what precedes it, its head, what its body begins with, and its end.

    The step is in the head, so that a body may `continue`, unless the loop is a ``while`` or ``do``.
    """

    head: str
    begin: str
    before: str = ""
    step: str = ""
    end: str = "}"


@dataclass(frozen=True)
class Piece:
    """The lines of one idea. Each piece has memory of its own, and keeps what the pragmas promise.

    ``ahead`` and ``end`` are outside of the marked loop; ``begin`` and ``after`` are before and after the path in its
    iteration; ``other`` is in another path that excludes it, if there is one.
    """

    path: tuple[str, ...]
    begin: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    ahead: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    reduce: str = ""
    ordered: bool = False
    """Whether inner iterations must keep their order, so that a loop of them is a `while`."""
    meeting: bool = False
    """Whether the path and the rest of its iteration use the same memory."""
    scratch: bool = False
    """Whether iterations share memory of the thread: a rewrite must be refused, or right."""
    loop: Loop | None = None
    """The marked loop, if the piece has a meaning in that one only."""
    leaves: bool = False
    """Whether the path has a `continue` or `break` of the loop that it is in."""


@dataclass
class Site:
    """Where a piece goes. ``inner`` is set where the path is a loop, whose iterations have the number ``k``.

    In scope are ``at``, the number of the iteration; ``x``, which differs between iterations; and in the path also
    ``y``, which differs between inner iterations, and ``k``.
    """

    draw: Random
    grid: bool = False
    inner: bool = False
    names: int = 0
    slots: int = 0
    parts: int = 0
    taken: set[str] = field(default_factory=set)

    def name(self, stem: str = "v") -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def chance(self, probability: float) -> bool:
        return self.draw.random() < probability

    def slot(self) -> str:
        """A word of the iteration's own that no other piece uses; an atomic's where there is none left."""
        self.slots += 1
        return f"out[at * {SLOTS}u + {self.slots - 1}u]"

    def keep(self, value: str) -> str:
        """A store to a place of its own."""
        return f"{self.slot()} = {value};" if self.slots < SLOTS else f"atomicAdd(&count[at & 15u], {value});"

    def takes(self, buffer: str) -> bool:
        """Whether a piece has ``buffer`` for itself."""
        if buffer in self.taken:
            return False
        self.taken.add(buffer)
        return True

    def outside(self) -> str:
        """An unsigned value of the iteration."""
        return self.draw.choice(
            ("x", "x >> 5", "at", "x + 7u", "a[x % items]", "a[(at + 1u) % items]", "x * 3u", "at ^ x")
        )

    def inside(self) -> str:
        """An unsigned value in a path."""
        return self.draw.choice(
            ("y", "y >> 3", "x + k", "y + k", "k", "a[(y + k) % items]", "a[(at + k) % items]", "y * 5u", "x")
        )

    def condition(self) -> str:
        """Some of the inner iterations."""
        return self.draw.choice(
            (
                "(y & 1u) != 0u",
                "(y & 3u) == 1u",
                "(y >> 3 & 7u) < 5u",
                "((y ^ k) & 3u) != 2u",
                "(y & 15u) != 7u",
            )
        )
