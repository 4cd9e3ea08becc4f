"""The queue: answers in order, a GPU for each worker, workers that die, and an interrupt that ends all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cccopt.diagnostic import CccError
from cccopt.workers import apart
from cccopt.workers.queue import HERE, Item, Worker, WorkerEnded, answers
from tests.workers.items import double, end_by, hang, note_gpu, runs_on

TWO = (Worker(), Worker())


@pytest.mark.parametrize("workers", [HERE, TWO])
def test_answers_come_in_the_order_of_the_items(workers: tuple[Worker, ...]) -> None:
    items = [Item(str(number), double, (number,)) for number in (1, 2, 3)]
    with answers(items, workers) as found:
        assert [answer.result() for answer in found] == [2, 4, 6]


def test_each_worker_has_a_gpu_and_no_two_items_share_one(tmp_path: Path) -> None:
    gpus = ("3", "GPU-0123")
    items = [Item(name, note_gpu, (tmp_path, name)) for name in "abcdef"]
    with answers(items, [Worker(gpu) for gpu in gpus]) as found:
        used = [answer.result() for answer in found]
    assert set(used) == set(gpus)
    assert used == [(tmp_path / name).read_text() for name in "abcdef"]


def test_one_worker_with_a_gpu_of_its_own_is_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    for workers, gpu in (((Worker("MIG-1"),), "MIG-1"), (HERE, "5")):
        with answers([Item("a", note_gpu, (tmp_path, "a"))], workers) as found:
            assert next(found).result() == gpu


def test_a_worker_that_ends_is_named_and_others_go_on() -> None:
    items = [Item(f"`{how}`", end_by, (how,)) for how in ("kill", "error", "mistake", "well")]
    with answers(items, TWO) as found:
        killed, failed, mistaken, well = found
        with pytest.raises(WorkerEnded, match=r"CCC121.*the worker running `kill` ended[^$]*status -9"):
            killed.result()
        with pytest.raises(CccError, match="CCC095") as caught:
            failed.result()
        assert not isinstance(caught.value, WorkerEnded)
        with pytest.raises(WorkerEnded, match=r"`mistake`[^$]*ValueError: a mistake of ours"):
            mistaken.result()
        assert well.result() == "well"


INTERRUPTED = """
import sys
from pathlib import Path
from cccopt.workers.queue import Item, Worker, answers
from tests.workers.items import hang
items = [Item(name, hang, (Path(sys.argv[1]), name)) for name in "abc"]
with answers(items, (Worker(), Worker())) as found:
    [answer.result() for answer in found]
"""


def test_an_interrupt_ends_all_workers_and_what_they_started(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        f"import signal; signal.signal(2, signal.default_int_handler)\n{INTERRUPTED}",
    ]
    with subprocess.Popen(
        [*command, str(tmp_path)], env=apart.environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        pids = [pid for name in "ab" for pid in _pids(tmp_path / name)]
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=30)[1]
    assert not any(runs_on(pid) for pid in pids)
    assert not (tmp_path / "c").exists()  # it had not begun


def test_an_error_of_the_reader_ends_all_workers(tmp_path: Path) -> None:
    def read() -> None:
        with answers([Item(name, hang, (tmp_path, name)) for name in "ab"], TWO):
            pids.extend(pid for name in "ab" for pid in _pids(tmp_path / name))
            raise KeyError("of the reader")

    pids: list[int] = []
    with pytest.raises(KeyError, match="of the reader"):
        read()
    assert len(pids) == 6
    assert not any(runs_on(pid) for pid in pids)


def test_what_a_dead_worker_left_is_ended() -> None:
    with apart.Running() as running, pytest.raises(apart.Failed, match="status 3"):
        apart.call(_leave_child, running=running)
    # Nothing holds the session any more.
    assert not _children_that_sleep("299.25")


def _leave_child(began: apart.Began) -> None:
    subprocess.Popen(["sleep", "299.25"])
    os._exit(3)


def _children_that_sleep(seconds: str) -> list[str]:
    done = subprocess.run(["pgrep", "-f", f"^sleep {seconds}$"], capture_output=True, text=True, check=False)
    return done.stdout.split()


def _pids(file: Path) -> list[int]:
    for _ in range(200):
        if file.exists():
            return [int(word) for word in file.read_text().split()]
        time.sleep(0.1)
    pytest.fail(f"{file.name} did not begin")
