"""One queue of work items, workers that take them, and answers in the order of the items.

A worker does one item after the other, each in a fresh process: one that dies takes no other item with it. A worker may
have a GPU that no other worker has, so runs that are timed never share one. A single worker without a GPU of its own is
this process itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from cccopt.diagnostic import CccError, Diagnostic, error
from cccopt.workers import apart

T = TypeVar("T")
VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker; ``gpu`` is the value of `VISIBLE` in its processes, None for that of this process."""

    gpu: str | None = None

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that its processes have in addition to ours."""
        return {} if self.gpu is None else {VISIBLE: self.gpu}


HERE = (Worker(),)
"""No processes: items are done here, one after the other."""


@dataclass(frozen=True, slots=True)
class Item(Generic[T]):
    """``function(*arguments)``, which messages call ``name``. It and its result travel by pickle."""

    name: str
    function: Callable[..., T]
    arguments: tuple[Any, ...]


class WorkerEnded(CccError):
    """A worker's process ended before its item was done (CCC121): it was killed, or failed with another exception."""


@contextmanager
def answers(items: Sequence[Item[T]], workers: Sequence[Worker]) -> Iterator[Iterator[Future[T]]]:
    """The answers to ``items`` in their order. Their ``result()`` raises the `CccError` that an item raised, or
    `WorkerEnded`; other items go on. At the end of the ``with``, also after an interrupt, all workers have ended.
    """
    if tuple(workers) == HERE:
        yield map(_done_here, items)
        return
    free = SimpleQueue[Worker]()
    for worker in workers:
        free.put(worker)
    with ThreadPoolExecutor(len(workers)) as pool, apart.Running() as running:
        futures = [pool.submit(_done_apart, item, free, running) for item in items]
        try:
            yield iter(futures)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _done_here(item: Item[T]) -> Future[T]:
    future: Future[T] = Future()
    try:
        future.set_result(item.function(*item.arguments))
    except CccError as problem:
        future.set_exception(problem)
    return future


def _done_apart(item: Item[T], free: SimpleQueue[Worker], running: apart.Running) -> T:
    worker = free.get()
    try:
        done: T = apart.call(_do, item, variables=worker.variables, running=running)
        return done
    except apart.Failed as problem:
        if problem.diagnostics:
            raise CccError(*problem.diagnostics) from None
        raise WorkerEnded(_ended(item.name, problem.why)) from None
    finally:
        free.put(worker)


def _do(began: apart.Began, item: Item[T]) -> T:
    return item.function(*item.arguments)


def _ended(name: str, why: str) -> Diagnostic:
    return error(
        "CCC121",
        f"the worker running {name} ended before finishing it",
        why=why,
        help="run it again without `--workers` to see more about the failure",
    )
