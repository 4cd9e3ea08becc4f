"""The tests that only `make test-all` runs, by the list in tests/test-all.txt, and what `make test` does less of."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from zlib import crc32

quick = False
"""Whether `make test` runs: a kernel that is compared then runs in fewer orders of its lanes, and fewer are drawn."""

collected: tuple[str, ...] = ()
"""All tests of this run, slow ones too."""

LIST = Path(__file__).with_name("test-all.txt")
_LINE = re.compile(r"(?:(!)|1/(\d+) )?(.+)")


@cache
def patterns() -> tuple[tuple[str, int], ...]:
    """The list's patterns, and how many of their tests one stays of; 0: none stays."""
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    found = (_LINE.fullmatch(line) for line in lines)
    return tuple((m[3], 1 if m[1] else int(m[2] or 0)) for m in found if m is not None)


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """One for each of some 10,000 tests would take longer than all matches."""
    return re.compile(re.escape(pattern).replace(r"\*", ".*"))


def matches(pattern: str, test: str) -> bool:
    """Whether a test is one of a pattern's, in which `*` is any text."""
    return _expression(pattern).fullmatch(test) is not None


@cache
def _of_file(file: str) -> tuple[tuple[str, int], ...]:
    """The patterns that may match a test of a file."""
    return tuple(each for each in patterns() if matches(each[0].partition("::")[0], file))


def is_slow(test: str) -> bool:
    """Whether the last pattern that matches a test leaves it out."""
    mine = _of_file(test.partition("::")[0])
    one_of = next((one_of for pattern, one_of in reversed(mine) if matches(pattern, test)), 1)
    # By name, so that it does not depend on what else runs.
    return one_of == 0 or crc32(test.encode()) % one_of != 0


def drawn(examples: int) -> int:
    """How many of this many random examples there are to be."""
    return -(-examples // 4) if quick else examples
