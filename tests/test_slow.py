"""The list of what `make test` leaves out names tests that there are, and leaves something of each file."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from pathlib import Path

import pytest

from tests import slow
from tests.slow import is_slow, matches, patterns


def test_each_pattern_is_that_of_a_test(repository: Path) -> None:
    files = {test.partition("::")[0] for test in slow.collected}
    if files < {str(path.relative_to(repository)) for path in repository.glob("tests/**/test_*.py")}:
        pytest.skip("only a run of all tests knows them")
    by_file = defaultdict(list)
    for test in slow.collected:
        by_file[test.partition("::")[0]].append(test)
    for pattern, _ in patterns():
        tests = chain(*(by_file[file] for file in files if matches(pattern.partition("::")[0], file)))
        assert any(matches(pattern, test) for test in tests), pattern
    left = {test.partition("::")[0] for test in slow.collected if not is_slow(test)}
    assert not files - left


def test_the_last_match_decides() -> None:
    modes = "tests/cli/test_modes.py::test_the_mode"
    assert is_slow(f"{modes}[object]")
    assert not is_slow(f"{modes}[standard-input]")
    assert not is_slow("tests/cli/test_modes.py::test_another")


def test_one_of_several_stays() -> None:
    (one_of,) = {
        n for pattern, n in patterns() if pattern == "tests/cte/test_policies.py::test_large_tasks[*]"
    }
    names = [f"tests/cte/test_policies.py::test_large_tasks[{number}]" for number in range(300)]
    left = sum(not is_slow(name) for name in names)
    assert 0.7 * len(names) / one_of < left < 1.3 * len(names) / one_of
