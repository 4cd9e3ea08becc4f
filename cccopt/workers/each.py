"""One function for many arguments, in as many processes as there are cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from cccopt.workers.queue import HERE, Item, Worker, WorkerEnded, answers

T = TypeVar("T")

MOST = 16
"""The most processes: each takes memory for all that it imports."""


def each(function: Callable[..., T], calls: Sequence[tuple[Any, ...]], *, apart: bool = True) -> list[T]:
    """The results of ``function(*arguments)`` for all ``calls``, which travel by pickle; here, one after the other, if
    not ``apart``. A call whose process ends too early is made here, which shows why.
    """
    processes = min(len(calls), os.cpu_count() or 1, MOST) if apart else 1
    items = [Item(function.__name__, function, arguments) for arguments in calls]
    with answers(items, (Worker(),) * processes if processes > 1 else HERE) as found:
        return [_result(future, item) for future, item in zip(found, items, strict=True)]


def _result(future: Future[T], item: Item[T]) -> T:
    try:
        return future.result()
    except WorkerEnded:
        return item.function(*item.arguments)
