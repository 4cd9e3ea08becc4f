"""The tests that only `make test-all` runs, by the list in tests/test-all.txt, and what `make test` does less of."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

quick = False
"""Whether `make test` runs: a kernel that is compared then runs in fewer orders of its lanes, and fewer are drawn."""

LIST = Path(__file__).with_name("test-all.txt")


@cache
def patterns() -> tuple[tuple[str, bool], ...]:
    """The list's patterns, and whether each leaves a test out or keeps it."""
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return tuple((line.removeprefix("!"), not line.startswith("!")) for line in lines)


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """One for each of some 10,000 tests would take longer than all matches."""
    return re.compile(re.escape(pattern).replace(r"\*", ".*"))


def matches(pattern: str, test: str) -> bool:
    """Whether a test is one of a pattern's, in which `*` is any text."""
    return _expression(pattern).fullmatch(test) is not None


def is_slow(test: str) -> bool:
    """Whether the last pattern that matches a test leaves it out."""
    return next((out for pattern, out in reversed(patterns()) if matches(pattern, test)), False)


def drawn(examples: int) -> int:
    """How many of this many random examples there are to be."""
    return -(-examples // 2) if quick else examples
