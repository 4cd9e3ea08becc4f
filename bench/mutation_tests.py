"""A pytest plugin for `bench.mutation`: all tests once without a mutant, then each mutant with the tests it concerns.

A *run* is a list of tests in a process of its own, forked after the collection, so that nothing which one run has
computed is seen by another. What nvcc makes of a text does not depend on any mutant, and is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

from bench.mutation_equivalent import OUT_OF_TIME
from cccopt import mutation_probe as probe
from tests.fuzz import judge
from tests.kernels import running

JOB = json.loads(Path(os.environ["CCCOPT_MUTATION"]).read_text())
CACHE = Path(JOB["cache"])
LONGEST = 20
"""Seconds more than ten times what it takes without a mutant after which a test is taken to hang."""

QUICK = 0.3
"""Seconds of a test that is asked before all slower ones."""


# --- nvcc's output, kept ---


def kept(compile: Callable[..., Any]) -> Callable[..., Any]:
    """The function, its results kept in files by its arguments and the text of files among them."""

    def found(*arguments: Any, **options: Any) -> Any:
        texts = [a.read_text() for a in arguments if isinstance(a, Path)]
        key = repr((compile.__name__, arguments, sorted(options.items()), texts)).replace(str(Path.cwd()), "")
        file = CACHE / hashlib.sha256(key.encode()).hexdigest()
        if not file.exists():
            new = file.with_suffix(f".{os.getpid()}")
            new.write_bytes(pickle.dumps(compile(*arguments, **options)))
            new.rename(file)
        return pickle.loads(file.read_bytes())

    return found


# Before any test imports them.
judge.ptx_of = kept(judge.ptx_of)
running.marked = kept(running.marked)


# --- runs ---


@dataclass(frozen=True)
class Ran:
    """A test that ran: its name, whether it passed, its seconds, and the mutants that it came to."""

    test: str
    passed: bool
    seconds: float
    reached: list[int] = field(default_factory=list)


def ran(items: list[pytest.Item], limit: Callable[[pytest.Item], float]) -> Iterator[Ran]:
    """Runs tests one after the other in this process, each for ``limit`` seconds at most."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        probe.reached.clear()
        start = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, limit(item))
        reports = runtestprotocol(item, log=False, nextitem=following)
        signal.setitimer(signal.ITIMER_REAL, 0)
        passed = all(report.passed or report.skipped for report in reports)
        yield Ran(item.nodeid, passed, time.perf_counter() - start, sorted(probe.reached))


def forked(work: Callable[[], object], answer: Path) -> int:
    """Does the work in a child process, which leaves the result in a file; the child's id."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    try:
        answer.write_text(json.dumps(work()))
    except BaseException:
        answer.with_suffix(".error").write_text(traceback.format_exc())
    finally:
        os._exit(0)


def in_parallel(
    works: Iterable[tuple[str, Callable[[], Any]]], jobs: int, done: Callable[[str, Any], None]
) -> None:
    """Does all works, ``jobs`` at once; ``done`` gets each name and result, None where the child was ended."""
    under_way: dict[int, tuple[str, Path]] = {}

    def collect() -> None:
        child, _ = os.wait()
        name, answer = under_way.pop(child)
        done(name, json.loads(answer.read_text()) if answer.exists() else None)
        answer.unlink(missing_ok=True)

    for number, (name, work) in enumerate(works):
        while len(under_way) >= jobs:
            collect()
        answer = CACHE / f"answer.{os.getpid()}.{number}"
        under_way[forked(work, answer)] = name, answer
    while under_way:
        collect()


# --- all tests without a mutant ---


def record(items: list[pytest.Item]) -> dict[str, Ran]:
    """What each test does without a mutant, kept as long as neither the package nor the tests change. A file of tests
    that ends before its time has no tests here.
    """
    recorded = CACHE / f"record.{state([item.nodeid for item in items])}"
    if recorded.exists():
        return {one["test"]: Ran(**one) for one in json.loads(recorded.read_text())}
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.split("::")[0], []).append(item)
    found: dict[str, Ran] = {}

    def work(of: list[pytest.Item]) -> list[dict[str, Any]]:
        return [vars(one) for one in ran(of, lambda _: 600)]

    def done(name: str, answer: list[dict[str, Any]] | None) -> None:
        found.update({one["test"]: Ran(**one) for one in answer or []})
        took = sum(one["seconds"] for one in answer or [])
        print(f"{name}: {len(answer or [])} tests, {took:.0f} s" if answer else f"{name}: ENDED", flush=True)

    # Those with most tests first, so that none is left alone at the end.
    ordered = sorted(files.items(), key=lambda pair: -len(pair[1]))
    in_parallel(((name, lambda of=of: work(of)) for name, of in ordered), JOB["jobs"], done)
    recorded.write_text(json.dumps([vars(one) for one in found.values()]))
    return found


def state(names: list[str]) -> str:
    """A digest of the package with its mutants, the tests that run, by name, and what tests share."""
    running_files = {name.split("::")[0] for name in names}
    digest = hashlib.sha256("\n".join(names).encode())
    for file in sorted(f for folder in ("cccopt", "tests") for f in Path(folder).rglob("*") if f.is_file()):
        if str(file) in running_files or not file.name.startswith("test_"):
            digest.update(str(file).encode() + file.read_bytes())
    return digest.hexdigest()


# --- each mutant ---


def concerned(number: int, items: list[pytest.Item], base: dict[str, Ran]) -> list[pytest.Item]:
    """The tests that come to a mutant, in the order in which they are asked: quick ones of all files first, those of
    one file together.
    """
    found = [item for item in items if number in base[item.nodeid].reached]
    cost: Counter[tuple[bool, str]] = Counter()

    def part(item: pytest.Item) -> tuple[bool, str]:
        return base[item.nodeid].seconds > QUICK, item.nodeid.split("::")[0]

    for item in found:
        cost[part(item)] += base[item.nodeid].seconds
    return sorted(found, key=lambda i: (part(i)[0], cost[part(i)], part(i), base[i.nodeid].seconds))


def killer(number: int, items: list[pytest.Item], base: dict[str, Ran], at: Path) -> str:
    """The first test that fails with a mutant; empty if none does, `OUT_OF_TIME` if not all were asked."""
    if not items:
        return ""
    probe.active = number
    end = time.perf_counter() + JOB["seconds"]

    def limit(item: pytest.Item) -> float:
        at.write_text(item.nodeid)
        return LONGEST + 10 * base[item.nodeid].seconds

    for one in ran(items, limit):
        if not one.passed:
            return one.test
        if time.perf_counter() > end and one.test != items[-1].nodeid:
            return OUT_OF_TIME
    return ""


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Instead of running the tests."""
    assert Path(probe.__file__).is_relative_to(Path.cwd()), probe.__file__
    settings.register_profile("mutation", deadline=None, derandomize=True, database=None, max_examples=25)
    settings.load_profile("mutation")
    base = record(session.items)
    for one in base.values():
        if not one.passed:
            print(f"fails without a mutant, left out: {one.test}")
    items = [item for item in session.items if item.nodeid in base and base[item.nodeid].passed]
    answers: dict[str, str] = {}

    def work(number: int) -> tuple[str, Callable[[], str]]:
        of = concerned(number, items, base)
        return str(number), lambda: killer(number, of, base, CACHE / f"at.{number}")

    def done(name: str, answer: str | None) -> None:
        at = CACHE / f"at.{name}"
        answers[name] = f"{at.read_text()} (ends the process)" if answer is None else answer
        at.unlink(missing_ok=True)
        print(f"{answers[name] or 'SURVIVES'} <- {JOB['mutants'][name]}", flush=True)

    in_parallel((work(int(number)) for number in JOB["mutants"]), JOB["jobs"], done)
    Path(JOB["answer"]).write_text(json.dumps(answers))
    return True
