"""The hunt's GPU: jobs out of judged files, a process that runs them, and a watch over that process."""

from __future__ import annotations

import importlib.util
import pickle
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from cccopt.ptx.printer import print_module
from tests.fuzz.assembling import cubin, merged
from tests.fuzz.cuda_kernels import plain_name
from tests.fuzz.gpu_jobs import Begun, Case, Image, Job, Ran, Ready
from tests.fuzz.trial import Outcome

PATIENCE = 30.0
"""Seconds without an answer after which a run counts as hanging."""
SECOND = 8
"""How much longer a kernel gets that is run again, alone: others, on the same GPU, may have kept it waiting."""
SIZES = ("large", "large", "odd", "small")


class NoGpuError(Exception):
    """There is no GPU to run on, or no library that reaches it."""


def job_of(seed: int, outcomes: list[Outcome], arch: str) -> Job | None:
    """The accepted kernels of a file, assembled for ``arch`` without fused multiply-adds; None if there are none."""
    draw = random.Random(seed)
    good = [outcome for outcome in outcomes if outcome.variants and outcome.plain is not None]
    if not good:
        return None
    modules = [("plain", merged([o.plain for o in good if o.plain is not None]))]
    for number in range(max(len(outcome.variants) for outcome in good)):
        some = [outcome.variants[number] for outcome in good if number < len(outcome.variants)]
        modules.append((f"variant {number}", merged([variant.module for variant in some])))
    texts = [(label, print_module(module)) for label, module in modules]
    images = tuple(Image(label, text, cubin(text, arch, "-fmad=false")) for label, text in texts)
    cases = tuple(
        Case(
            o.kernel.name,
            plain_name(o.kernel.name),
            tuple(range(1, len(o.variants) + 1)),
            tuple(o.kernel.launch(draw, size) for size in SIZES),
        )
        for o in good
    )
    return Job(seed, images, cases)


@dataclass
class Gpu:
    """A process that runs jobs, started again when one of them ends it. ``finds`` are lines to print."""

    backend: str
    patience: float = PATIENCE
    second: float = SECOND
    runs: int = 0
    kernels: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    ready: Ready = field(default_factory=Ready)
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the process. Raises NoGpuError where it finds no GPU."""
        command = [sys.executable, "-m", "tests.fuzz.gpu_runner", self.backend]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        answer = self._answer(120.0)
        if not isinstance(answer, Ready):
            raise NoGpuError(f"`{' '.join(command)}` ended without an answer")
        if answer.problem:
            self.close()
            raise NoGpuError(f"no GPU through {self.backend}: {answer.problem}")
        self.ready = answer

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def run(self, job: Job) -> Iterator[str]:
        """Runs a job and gives a line for each kernel with which something is wrong."""
        cases = job.cases
        self.kernels += len(cases)
        while cases:
            if self._process is None:
                self.start()
            found = self._run(replace(job, cases=cases))
            culprit = None
            for one in found:
                begun, what, _ = one
                if what in ("HANG", "FAULT"):
                    culprit = begun.kernel
                if what != "HANG":
                    yield self._told(job, one)
            if culprit is None:
                return
            self.close()
            names = [(case.kernel, case.plain) for case in cases]
            place = next(n for n, pair in enumerate(names) if culprit in pair)
            if any(what == "HANG" for _, what, _ in found):
                for one in self._again(replace(job, cases=cases[place : place + 1])):
                    yield self._told(job, one)
            # Those ahead of it are done.
            cases = cases[place + 1 :]

    def _told(self, job: Job, found: tuple[Begun, str, str]) -> str:
        begun, what, detail = found
        self.outcomes[what] += 1
        return f"{job.seed} GPU {what}: {begun.kernel}, {begun.label}, {begun.launch}: {detail}"

    def _again(self, job: Job) -> list[tuple[Begun, str, str]]:
        """Runs a job that seemed to hang once more, with more patience."""
        patience = self.patience
        self.patience = self.second * patience
        try:
            self.start()
            found = self._run(job)
        finally:
            self.patience = patience
        if any(what in ("HANG", "FAULT") for _, what, _ in found):
            self.close()
        return found

    def _run(self, job: Job) -> list[tuple[Begun, str, str]]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        found: dict[str, tuple[Begun, str, str]] = {}
        begun = Begun("?", "?", job.cases[0].launches[0])
        try:
            pickle.dump(job, process.stdin)
            process.stdin.flush()
        except BrokenPipeError:
            return [(replace(begun, kernel=job.cases[0].kernel), "FAULT", "the process had ended")]
        while True:
            answer = self._answer(self.patience)
            if answer is None:
                return list(found.values())
            if isinstance(answer, Begun):
                begun = answer
            elif isinstance(answer, Ran):
                self.runs += 1
                if answer.difference:
                    what = "FAULT" if answer.fault else "WRONG"
                    found.setdefault(begun.kernel, (begun, what, answer.difference))
                if answer.fault:
                    return list(found.values())
            else:
                if begun.kernel == "?":
                    begun = replace(begun, kernel=job.cases[0].kernel)
                found[begun.kernel] = (
                    begun,
                    "HANG",
                    f"no answer within {self.patience:.0f} s, or the process ended",
                )
                return list(found.values())

    def _answer(self, seconds: float) -> Any:
        """The next answer of the process, which is killed if there is none in time; EOFError's type at its end."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        watch = threading.Timer(seconds, process.kill)
        watch.start()
        try:
            return pickle.load(process.stdout)
        except (EOFError, pickle.UnpicklingError):
            return EOFError
        finally:
            watch.cancel()


def chosen_backend(wanted: str) -> str:
    """The backend asked for; with ``auto`` the first library that is installed. Raises NoGpuError if none is."""
    if wanted != "auto":
        return wanted
    for library in ("cupy", "pycuda"):
        if importlib.util.find_spec(library) is not None:
            return library
    raise NoGpuError("neither CuPy nor PyCUDA is installed: install one, or leave `--gpu` out")
