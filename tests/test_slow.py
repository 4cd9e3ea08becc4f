"""The list of what `make test` leaves out names tests that there are, and leaves something of each file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.slow import is_slow, matches, patterns


def test_each_pattern_is_that_of_a_test(repository: Path) -> None:
    files = sorted({pattern.partition("::")[0] for pattern, _ in patterns()})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--assert=plain", *files]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    assert [pattern for pattern, _ in patterns() if not any(matches(pattern, test) for test in tests)] == []
    left = {test.partition("::")[0] for test in tests if not is_slow(test)}
    assert left == set(files)


def test_the_last_match_decides() -> None:
    modes = "tests/cli/test_modes.py::test_the_mode"
    assert is_slow(f"{modes}[object]")
    assert not is_slow(f"{modes}[standard-input]")
    assert not is_slow("tests/cli/test_modes.py::test_another")
