"""One function for many arguments: answers in order, errors as they are, and calls whose process ends."""

from __future__ import annotations

import os

import pytest

from cccopt.diagnostic import CccError, error
from cccopt.workers import each as module
from cccopt.workers.each import each


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.os, "cpu_count", lambda: 2)


def process(number: int) -> tuple[int, int]:
    return number, os.getpid()


def test_answers_come_in_order_from_other_processes() -> None:
    found = each(process, [(n,) for n in range(3)])
    assert [number for number, _ in found] == [0, 1, 2]
    assert os.getpid() not in {pid for _, pid in found}


@pytest.mark.parametrize(("calls", "apart"), [(3, False), (1, True), (0, True)])
def test_few_calls_are_made_here(calls: int, apart: bool) -> None:
    assert each(process, [(n,) for n in range(calls)], apart=apart) == [
        (n, os.getpid()) for n in range(calls)
    ]


def refuse(number: int) -> int:
    if number:
        raise CccError(error("CCC000", f"number {number}"))
    return number


def test_an_error_is_raised_as_it_is() -> None:
    with pytest.raises(CccError, match="number 1"):
        each(refuse, [(0,), (1,)])


def end(parent: int) -> int:
    if os.getpid() != parent:
        os._exit(3)
    return parent


def test_a_call_whose_process_ends_is_made_here() -> None:
    assert each(end, [(os.getpid(),)] * 2) == [os.getpid()] * 2
