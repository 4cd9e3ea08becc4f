"""What became of each marked region: plain data for reports, tables and `cccopt explain`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cccopt.ccc.outcome.choices import Form, Outcome
from cccopt.text import Place

if TYPE_CHECKING:
    from cccopt.ccc.outcome.rewritten_loop import RewrittenLoop


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """One live-in of a path; ``decision`` is a `cccopt.ccc.plan.context.Placement`, as text."""

    register: str
    type: str
    decision: str
    reason: str


@dataclass(frozen=True, slots=True)
class PredictedTime:
    """The parts of the predicted time of a marked loop, in issue slots of a warp: those of its code with all paths, and
    those that the rewrite adds (``overhead``: votes, stacks, copies). Further ones pass while memory delivers what the
    loop loads and stores, while warps wait for results (``waiting``, 0 if no time of the kernel was measured), or while
    ``atomics`` on one address are made one after the other. The parts overlap, so ``total`` is about the largest of
    issue, memory, waiting and atomics.
    """

    code: float
    overhead: float
    memory: float
    waiting: float
    total: float
    atomics: float = 0.0


@dataclass(frozen=True, slots=True)
class Cost:
    """What a region was expected to cost and gain, in issue slots (`cccopt.ccc.profitability.model`).

    ``slots`` is the cost of one run of the region's own code (for the tasks of a loop, of one inner iteration).
    ``taken`` is the share of lanes that reach it (for the tasks of a loop, inner iterations per lane). ``gain`` is how
    many times faster the marked loop was predicted to be with the region collected than without it. Counting
    instructions alone, it exceeds 1 if ``slots`` exceeds ``break_even`` (None: never). ``assumed`` means that no
    profile said how often lanes reach it. For a loop, ``before`` and ``after`` are the parts of its time as it is and
    rewritten, for each iteration of the marked loop by a warp.
    """

    slots: float
    taken: float
    gain: float
    break_even: float | None
    assumed: bool
    before: PredictedTime | None = None
    after: PredictedTime | None = None


@dataclass(frozen=True, slots=True)
class RegionReport:
    """One marked loop or one copy of a marked path in ``kernel``.

    ``outcome`` is ``rewritten`` or ``declined``; ``form`` is that of the loop, or ``expanded`` for a path whose inner
    iterations are laid side by side. ``context_bytes`` is the size of one task's context, ``shared_bytes`` what the
    region adds to a block's static shared memory (for a path, its share of its loop's), ``global_bytes`` the global
    memory that a warp's stacks take. ``labels`` maps a phase (``push``, ``take``, ``drain``, ``original``, ...) to
    labels of the rewritten code. ``name`` is the name that the clause `name(...)` gives it. ``cost`` is what `auto`
    decides by. ``resident`` is how many threads an SM has room for in blocks of ``threads`` that use the kernel's
    shared memory, stacks included. In the in-lane form, lanes that reach a path or loop that is ``in_place`` run it
    at once, without waiting. ``unrolled`` is the number of inner iterations of a loop that nvcc may unroll if it is not
    marked; 0 for other loops, and if the pragma asks for the rewrite (`always`). ``code`` is what the check of the
    output needs to know about a rewritten loop. Reports as JSON data leave out the last two.
    """

    kernel: str
    region: int
    kind: str
    place: Place | None
    outcome: Outcome
    form: Form = Form.NONE
    context: tuple[ContextEntry, ...] = ()
    context_bytes: int = 0
    shared_bytes: int = 0
    global_bytes: int = 0
    threads: int = 0
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    name: str = ""
    cost: Cost | None = None
    resident: int = 0
    in_place: bool = False
    unrolled: int = field(default=0, metadata={"internal": True})
    code: RewrittenLoop | None = field(default=None, metadata={"internal": True})
