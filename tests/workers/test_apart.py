"""Calls in processes of their own: what they give, and what is said of those that come to nothing."""

from __future__ import annotations

import os
import time

import pytest

from cccopt.diagnostic import CccError, error
from cccopt.workers import apart


def add(began: apart.Began, left: int, right: int) -> int:
    began("adding")
    return left + right


def refuse(began: apart.Began) -> None:
    began("refusing")
    raise CccError(error("CCC095", "a kernel failed on the GPU", why="it was tired"))


def leave(began: apart.Began, status: int) -> None:
    began("leaving")
    os._exit(status)


def leave_late(began: apart.Began, ballast: bytes) -> None:
    leave(began, len(ballast) >> 20)


def stumble(began: apart.Began) -> None:
    raise ValueError("a mistake of ours")


def wait(began: apart.Began) -> None:
    began("waiting")
    time.sleep(60)


def failure(function: object, *arguments: object, seconds: float = 30.0) -> tuple[str, str]:
    with pytest.raises(apart.Failed) as caught:
        apart.call(function, *arguments, seconds=seconds)  # type: ignore[arg-type]
    return caught.value.stage, caught.value.why


def test_a_call_gives_its_result() -> None:
    assert apart.call(add, 2, 3, seconds=30.0) == 5


def test_large_arguments_travel() -> None:
    assert failure(leave_late, b" " * (4 << 20)) == ("leaving", "its process ended with status 4")


def test_errors_ends_and_mistakes_are_told() -> None:
    assert failure(refuse) == ("refusing", "CCC095: a kernel failed on the GPU (it was tired)")
    assert failure(leave, 3) == ("leaving", "its process ended with status 3")
    assert failure(stumble) == ("", "its process ended with status 1: ValueError: a mistake of ours")


def test_what_does_not_end_is_ended() -> None:
    start = time.monotonic()
    assert failure(wait, seconds=2.0) == ("waiting", "it did not end within 2 s")
    assert time.monotonic() - start < 20
