"""The work of `cccopt tune`: builds, alternating runs, a build chosen for each kernel, and fresh runs of that choice.

Each result is saved in the work folder at once, so the work can go on after an interruption.

Workers make builds side by side; runs begin when all builds have ended, and never overlap. A gain is a ratio of two
runs of one round, so both must use the same GPU; since all builds are compared, all runs of a round must. Different
rounds could run on different GPUs, but then the spread between GPUs would widen every interval and, with few rounds,
hide the gains.
Each GPU would also need a copy of every build's folder, because programs write their results there.
CUDA_VISIBLE_DEVICES is left as it is: the program itself may need several GPUs.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from cccopt.ccc.profitability.decisions import Decision, Decisions, read, write
from cccopt.diagnostic import CccError, Diagnostic, error
from cccopt.text import shortened
from cccopt.tuning.builds import DECIDED, PLAIN, Place, digests_in, make, rewritten_in, stale_in
from cccopt.tuning.gains import Gain, gain_of
from cccopt.tuning.runs import TOO_LONG, Observed, observe
from cccopt.tuning.state import circumstances, load
from cccopt.tuning.tree import fingerprint
from cccopt.workers.queue import HERE, Item, Worker, answers

_NONE, _PROPOSED = "none.json", "proposed.json"
Runs: TypeAlias = Mapping[str, Sequence[Observed]]


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be tuned: shell commands that build and run the program in copies of the tree ``source``, and the
    ``builds`` to try besides the plain one, each run ``rounds`` times. The files ``outputs`` must be the same for all
    builds. Decisions go to ``output``.
    """

    build: str
    run: str
    source: Path
    work: Path
    builds: tuple[str, ...]
    rounds: int
    outputs: tuple[str, ...] = ()
    output: Path | None = None

    @property
    def steps(self) -> int:
        """The number of builds and runs in all."""
        tried = 1 + len(self.builds)
        return tried * (1 + self.rounds) + 1 + 2 * self.rounds

    @property
    def without(self) -> frozenset[Path]:
        """What is in the tree but is not the program's: what we write, and what it writes. Decisions that its build
        command names are the program's.
        """
        root = self.source.resolve()
        ours = {self.work.resolve(), *(root / name for name in self.outputs)}
        if self.output is not None and self.output.name not in self.build:
            ours.add(self.output.resolve())
        return frozenset(ours)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What became of a kernel: the mean time of its plain build in ns, the gain of each build, the build that was
    chosen, and its gain in fresh runs.
    """

    kernel: str
    nanoseconds: float
    tried: Mapping[str, Gain]
    build: str
    confirmed: Gain


@dataclass(frozen=True, slots=True)
class Tuned:
    """The choices, slowest kernel first, and the builds that were left out, with the reasons."""

    device: str
    chosen: tuple[Chosen, ...]
    left_out: Mapping[str, str]
    digests: Mapping[str, tuple[str, ...]]

    def decisions(self, driver: str) -> Decisions:
        """The choices, in the form in which the file stores them."""
        kernels = {
            c.kernel: Decision(
                self.digests[c.kernel], c.build, c.confirmed.gain, c.confirmed.low, c.confirmed.high
            )
            for c in self.chosen
        }
        return Decisions(self.device, driver, kernels)


def _key(task: Task) -> dict[str, Any]:
    """What shows that a state belongs to the same task."""
    return {
        "build": task.build,
        "run": task.run,
        "builds": list(task.builds),
        "rounds": task.rounds,
        "outputs": list(task.outputs),
        "source": fingerprint(task.source, task.without),
        **circumstances(),
    }


class Tuner:
    """Does a `Task`. ``done`` is called after each step, with what was done."""

    def __init__(
        self,
        task: Task,
        done: Callable[[str], None],
        runner: Callable[..., Observed] = observe,
        workers: Sequence[Worker] = HERE,
    ) -> None:
        self.task = task
        self.done = done
        self.runner = runner
        self.workers = workers
        task.work.mkdir(parents=True, exist_ok=True)
        self.state = load(task.work, _key(task))
        self.left_out: dict[str, str] = {}
        write(task.work / _NONE, Decisions())
        self.state.save(task.work)

    def tuned(self) -> Tuned:
        """Do all of it. Raises CccError if the plain build or its runs fail (CCC116)."""
        task = self.task
        self._build((PLAIN, *task.builds), task.work / _NONE)
        tried = [PLAIN, *(b for b in task.builds if b in self.state.built)]
        rewritten = {build: rewritten_in(self._place(build)) for build in tried}
        if not any(rewritten.values()):
            raise CccError(_nothing_rewritten())
        self._turns("tried", tried)
        runs = self._judged("tried", tried)
        digests = digests_in(self._place(build) for build in tried)
        kernels = sorted(_timed(runs) & digests.keys())
        found = {k: _gains(k, runs, [b for b in runs if k in rewritten[b]]) for k in kernels}
        best = {kernel: _best(gains) for kernel, gains in found.items()}
        confirmed = self._confirmed(best, digests) if best else {}
        chosen = (
            Chosen(
                kernel,
                statistics.fmean(run.times[kernel] for run in runs[PLAIN]),
                found[kernel],
                best[kernel] if kernel in confirmed else PLAIN,
                confirmed.get(kernel, Gain(1.0, 1.0, 1.0)),
            )
            for kernel in best
        )
        device = self.state.runs["tried"][PLAIN][0].device
        return Tuned(device, tuple(sorted(chosen, key=lambda c: -c.nanoseconds)), self.left_out, digests)

    # --- steps -------------------------------------------------------------------------------------------------

    def _place(self, build: str) -> Place:
        return Place(self.task.work / build)

    def _build(self, builds: Sequence[str], decisions: Path) -> None:
        """Make the missing builds. It is an error if the plain one fails; another one that fails is left out."""
        state = self.state
        missing = [b for b in builds if b not in state.built or not self._place(b).tree.is_dir()]
        state.built = [build for build in state.built if build not in missing]
        with answers([self._item(build, decisions) for build in missing], self.workers) as made:
            for build in builds:
                if build in missing:
                    self._take(build, next(made))
                self.done(f"built {build}")

    def _item(self, build: str, decisions: Path) -> Item[None]:
        task = self.task
        given = (build, task.build, task.source, self._place(build), decisions.resolve(), task.without)
        return Item(f"the build `{build}`", make, given)

    def _take(self, build: str, made: Future[None]) -> None:
        try:
            made.result()
        except CccError as problem:
            (found, *_) = problem.diagnostics
            if build == PLAIN or "compiled nothing" in found.message:
                raise
            self.left_out[build] = found.why
        else:
            self.state.built.append(build)
            self._forget("confirmed" if build == DECIDED else "tried")
        self.state.save(self.task.work)

    def _forget(self, stage: str) -> None:
        """Forget the runs of a stage and those that rest on them: only builds that took turns are compared."""
        self.state.runs.pop(stage, None)
        self.state.runs.pop("confirmed", None)

    def _turns(self, stage: str, builds: Sequence[str]) -> None:
        """Run all builds ``rounds`` times, taking turns. Raises CccError for a run that is useless (CCC116)."""
        runs = self.state.runs.setdefault(stage, {})
        for number in range(self.task.rounds):
            for build in builds:
                here = runs.setdefault(build, [])
                if len(here) <= number:
                    found = self.runner(self.task.run, self._place(build).tree, self.task.outputs)
                    if build == PLAIN:
                        self._check_plain(found)
                    self._check_device(found)
                    here.append(found)
                    self.state.save(self.task.work)
                self.done(f"ran {build}, {number + 1} of {self.task.rounds}")

    def _check_plain(self, run: Observed) -> None:
        if run.status:
            help = f"run the command in `{self._place(PLAIN).tree}` to see why"
            raise CccError(error("CCC116", "the plain program fails", why=_status(run.status), help=help))
        if not run.times:
            message = f"there are no times for `{shortened(self.task.run, 80)}`"
            help = "give a command that runs kernels on a GPU; times need CUPTI (`pip install nvidia-cuda-cupti`)"
            raise CccError(error("CCC116", message, why=run.untimed, help=help))
        if not all(run.outputs):
            raise self._incomparable("the program does not write every file that --compare names")

    def _check_device(self, run: Observed) -> None:
        all_runs = (r for builds in self.state.runs.values() for each in builds.values() for r in each)
        others = {r.device for r in (*all_runs, run) if r.device}
        if len(others) > 1:
            names = " and ".join(f"`{name}`" for name in sorted(others))
            why = f"they were on {names}"
            help = "choose one with CUDA_VISIBLE_DEVICES"
            raise CccError(
                error("CCC116", "runs on different devices cannot be compared", why=why, help=help)
            )

    def _incomparable(self, why: str) -> CccError:
        names = ", ".join(f"`{name}`" for name in self.task.outputs)
        help = "name only files that every run writes with the same contents"
        return CccError(error("CCC116", f"results cannot be compared using {names}", why=why, help=help))

    def _judged(self, stage: str, builds: Iterable[str]) -> Runs:
        """The runs of the builds whose results are right; the other builds are left out."""
        runs = self.state.runs[stage]
        outputs = {run.outputs for run in runs[PLAIN]}
        if len(outputs) > 1:
            raise self._incomparable("runs of the plain build write different contents")
        right = {}
        for build in builds:
            failed = [run for run in runs[build] if run.status]
            untimed = [run for run in runs[build] if not run.times]
            if failed:
                self.left_out[build] = _status(failed[0].status)
            elif any(run.outputs not in outputs for run in runs[build]):
                self.left_out[build] = "its results differ from those of the plain build"
            elif untimed:
                self.left_out[build] = f"it has no times: {untimed[0].untimed or 'it ran no kernel'}"
            else:
                right[build] = runs[build]
        return right

    def _confirmed(self, best: Mapping[str, str], digests: Mapping[str, tuple[str, ...]]) -> dict[str, Gain]:
        """The kernels that also gain in fresh runs of the build that follows the decisions."""
        self._propose(best, digests)
        self._build((DECIDED,), self.task.work / _PROPOSED)
        if why := self.left_out.get(DECIDED):
            raise CccError(error("CCC116", "the build with decisions failed", why=why))
        if stale := stale_in(self._place(DECIDED)):
            why = f"{stale[0]}, although nothing has changed: a build compiles different code from the one before"
            help = "remove what differs from build to build, such as a time stamp in the source"
            raise CccError(
                error("CCC116", "the build with decisions does not follow them", why=why, help=help)
            )
        self._turns("confirmed", [PLAIN, DECIDED])
        fresh = self._judged("confirmed", [PLAIN, DECIDED])
        if why := self.left_out.get(DECIDED):
            raise CccError(error("CCC116", "the runs of the build with decisions cannot be used", why=why))
        gains = {k: _gains(k, fresh, [DECIDED])[DECIDED] for k in best.keys() & _timed(fresh)}
        return {kernel: gain for kernel, gain in gains.items() if gain.is_gain and best[kernel] != PLAIN}

    def _propose(self, best: Mapping[str, str], digests: Mapping[str, tuple[str, ...]]) -> None:
        """Write the choices; a build that followed other choices no longer counts."""
        kernels = {kernel: Decision(digests[kernel], build, 1.0, 1.0, 1.0) for kernel, build in best.items()}
        file, proposed = self.task.work / _PROPOSED, Decisions(kernels=kernels)
        if not (file.is_file() and read(file) == proposed):
            self.state.built = [build for build in self.state.built if build != DECIDED]
            self.state.save(self.task.work)
            write(file, proposed)


def _status(status: int) -> str:
    return "it did not end within the limit" if status == TOO_LONG else f"it ended with status {status}"


def _nothing_rewritten() -> Diagnostic:
    return error(
        "CCC116",
        "there is nothing to tune",
        why="no build rewrites anything",
        help="annotate divergent loops and paths; `ccc-nvcc --ccc=always --ccc-verbose` shows why one is"
        " left as it is",
    )


def _timed(runs: Runs) -> set[str]:
    """The kernels for which all runs have times."""
    everywhere = [{k for k, time in run.times.items() if time > 0} for each in runs.values() for run in each]
    return set.intersection(*everywhere)


def _gains(kernel: str, runs: Runs, builds: Iterable[str]) -> dict[str, Gain]:
    plain = [run.times[kernel] for run in runs[PLAIN]]
    return {build: gain_of(plain, [run.times[kernel] for run in runs[build]]) for build in builds}


def _best(gains: Mapping[str, Gain]) -> str:
    """The build with the largest gain among those that certainly gain; else the plain one."""
    sure = [build for build, gain in gains.items() if gain.is_gain]
    return max(sure, key=lambda build: gains[build].gain, default=PLAIN)
