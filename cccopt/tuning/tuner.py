"""The work of `cccopt tune`: builds, runs by turns, a build chosen for each kernel, and fresh runs of that choice.

Whatever has been done is kept in the work folder at once, so that it can go on after an interruption.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cccopt.ccc.profitability.decisions import Decision, Decisions, write
from cccopt.diagnostic import CccError, error
from cccopt.files import write_text
from cccopt.tuning.builds import DECIDED, PLAIN, Place, digests_in, fingerprint, make, rewritten_in
from cccopt.tuning.gains import Gain, gain_of
from cccopt.tuning.runs import Observed, observe

_STATE = "state.json"
_PROPOSED = "proposed.json"


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be tuned: shell commands that build and run, in copies of the tree ``source``; the ``builds`` to try
    besides the plain one, each run ``rounds`` times; files ``outputs`` that no build may change.
    """

    build: str
    run: str
    source: Path
    work: Path
    builds: tuple[str, ...]
    rounds: int
    outputs: tuple[str, ...] = ()

    @property
    def steps(self) -> int:
        """Builds and runs in all."""
        tried = 1 + len(self.builds)
        return tried * (1 + self.rounds) + 1 + 2 * self.rounds


@dataclass(frozen=True, slots=True)
class Chosen:
    """What became of a kernel: the mean time of its plain build in ns, what was found of each build, the build that was
    chosen, and what fresh runs of it gave.
    """

    kernel: str
    nanoseconds: float
    tried: Mapping[str, Gain]
    build: str
    confirmed: Gain


@dataclass(frozen=True, slots=True)
class Tuned:
    """The choices, the slowest kernel first, and builds that were left out, with the reason."""

    device: str
    chosen: tuple[Chosen, ...]
    left_out: Mapping[str, str]
    digests: Mapping[str, tuple[str, ...]]

    def decisions(self, driver: str) -> Decisions:
        """The same as the file has it."""
        kernels = {
            c.kernel: Decision(
                self.digests[c.kernel], c.build, c.confirmed.gain, c.confirmed.low, c.confirmed.high
            )
            for c in self.chosen
        }
        return Decisions(self.device, driver, kernels)


@dataclass
class _State:
    """What has been done: builds (with what went wrong), and runs by stage and build."""

    key: dict[str, Any]
    built: dict[str, str] = field(default_factory=dict)
    runs: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)

    def save(self, work: Path) -> None:
        write_text(work / _STATE, json.dumps(asdict(self)))


class Tuner:
    """Does a `Task`. ``done`` is called after each step, with what the next one is."""

    def __init__(
        self, task: Task, done: Callable[[str], None], runner: Callable[..., Observed] = observe
    ) -> None:
        self.task = task
        self.done = done
        self.runner = runner
        self.state = self._state()

    def tuned(self) -> Tuned:
        """Do all of it. Raises CccError where the plain build fails, or its runs do (CCC116)."""
        task = self.task
        for build in (PLAIN, *task.builds):
            self._build(build)
        tried = [PLAIN, *(b for b in task.builds if not self.state.built[b])]
        self._turns("tried", tried)
        left_out = {b: why for b, why in self.state.built.items() if why}
        runs = self._judged("tried", tried, left_out)
        digests = digests_in(self._place(build) for build in tried)
        found = {kernel: self._tried(kernel, runs) for kernel in self._kernels(runs, digests)}
        best = {kernel: _best(gains) for kernel, gains in found.items()}
        self._propose(best, digests)
        self._build(DECIDED, task.work / _PROPOSED)
        if why := self.state.built[DECIDED]:
            raise CccError(error("CCC116", "the build by decisions failed", why=why))
        self._turns("confirmed", [PLAIN, DECIDED])
        fresh = self._judged("confirmed", [PLAIN, DECIDED], left_out)
        if DECIDED not in fresh:
            raise CccError(error("CCC116", "the build by decisions is wrong", why=left_out[DECIDED]))
        confirmed = {kernel: self._tried(kernel, fresh)[DECIDED] for kernel in best}
        chosen = (
            Chosen(
                kernel,
                _mean(runs[PLAIN], kernel),
                found[kernel],
                best[kernel] if confirmed[kernel].is_gain else PLAIN,
                confirmed[kernel] if confirmed[kernel].is_gain else Gain(1.0, 1.0, 1.0),
            )
            for kernel in best
        )
        device = str(self.state.runs["tried"][PLAIN][0]["device"])
        return Tuned(device, tuple(sorted(chosen, key=lambda c: -c.nanoseconds)), left_out, digests)

    # --- steps -------------------------------------------------------------------------------------------------

    def _state(self) -> _State:
        task = self.task
        key = {
            "build": task.build,
            "run": task.run,
            "builds": list(task.builds),
            "rounds": task.rounds,
            "outputs": list(task.outputs),
            "source": fingerprint(task.source, [task.work]),
        }
        try:
            data = json.loads((task.work / _STATE).read_text())
            if data["key"] == key:
                return _State(**data)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # there is none, or of something else
        task.work.mkdir(parents=True, exist_ok=True)
        return _State(key)

    def _place(self, build: str) -> Place:
        return Place(self.task.work / build)

    def _build(self, build: str, decisions: Path | None = None) -> None:
        """Make a build, unless it is there; that the plain one fails is an error, another one is left out then."""
        if build not in self.state.built:
            try:
                resolved = None if decisions is None else decisions.resolve()
                make(build, self.task.build, self.task.source, self._place(build), resolved)
            except CccError as problem:
                if build == PLAIN or "compiled nothing" in problem.diagnostics[0].message:
                    raise
                self.state.built[build] = problem.diagnostics[0].why
            else:
                self.state.built[build] = ""
            self.state.save(self.task.work)
        self.done(f"built {build}")

    def _turns(self, stage: str, builds: Sequence[str]) -> None:
        """Run all builds ``rounds`` times, by turns."""
        runs = self.state.runs.setdefault(stage, {})
        for number in range(self.task.rounds):
            for build in builds:
                here = runs.setdefault(build, [])
                if len(here) <= number:
                    found = self.runner(self.task.run, self._place(build).tree, self.task.outputs)
                    here.append(asdict(found))
                    self.state.save(self.task.work)
                self.done(f"ran {build}, {number + 1} of {self.task.rounds}")

    def _judged(
        self, stage: str, builds: Iterable[str], left_out: dict[str, str]
    ) -> dict[str, list[dict[str, Any]]]:
        """The runs of the builds that are right; those that are not go to ``left_out``."""
        runs = self.state.runs[stage]
        plain = runs[PLAIN]
        if any(run["status"] for run in plain):
            raise CccError(
                error("CCC116", "the plain program fails", why=f"its exit status is {plain[0]['status']}")
            )
        outputs = {tuple(run["outputs"]) for run in plain}
        if len(outputs) > 1 or not all(next(iter(outputs))):
            names = ", ".join(f"`{name}`" for name in self.task.outputs)
            why = (
                "runs of the plain build differ in it"
                if len(outputs) > 1
                else "the program does not write it"
            )
            raise CccError(error("CCC116", f"results cannot be compared by {names}", why=why))
        right = {}
        for build in builds:
            bad = [run for run in runs[build] if run["status"]]
            if bad:
                left_out[build] = f"it ended with status {bad[0]['status']}"
            elif any(tuple(run["outputs"]) not in outputs for run in runs[build]):
                left_out[build] = "its results are not those of the plain build"
            else:
                right[build] = runs[build]
        return right

    # --- choices -----------------------------------------------------------------------------------------------

    def _kernels(
        self, runs: Mapping[str, Sequence[Mapping[str, Any]]], digests: Mapping[str, tuple[str, ...]]
    ) -> list[str]:
        """The annotated kernels that all runs have times of."""
        everywhere = [set(run["times"]) for each in runs.values() for run in each]
        return sorted(set.intersection(*everywhere) & digests.keys())

    def _tried(self, kernel: str, runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Gain]:
        """The gains of the builds that rewrite something in a kernel."""
        plain = [run["times"][kernel] for run in runs[PLAIN]]
        return {
            build: gain_of(plain, [run["times"][kernel] for run in each])
            for build, each in runs.items()
            if build == DECIDED or kernel in rewritten_in(self._place(build))
        }

    def _propose(self, best: Mapping[str, str], digests: Mapping[str, tuple[str, ...]]) -> None:
        kernels = {kernel: Decision(digests[kernel], build, 1.0, 1.0, 1.0) for kernel, build in best.items()}
        write(self.task.work / _PROPOSED, Decisions(kernels=kernels))


def _best(gains: Mapping[str, Gain]) -> str:
    """The build with the largest gain of those that certainly gain; else the plain one."""
    sure = [build for build, gain in gains.items() if gain.is_gain]
    return max(sure, key=lambda build: gains[build].gain, default=PLAIN)


def _mean(runs: Sequence[Mapping[str, Any]], kernel: str) -> float:
    return sum(float(run["times"][kernel]) for run in runs) / len(runs)
