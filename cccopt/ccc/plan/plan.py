"""What a rewrite needs to know about a region: contexts, stacks, names, form. `cccopt.ccc.plan.planning` decides it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cccopt.analysis import effects
from cccopt.ccc.legality.counted_loops import CountedLoop
from cccopt.ccc.plan.context import LiveIn
from cccopt.ccc.plan.partials import Partial, Slots
from cccopt.ccc.plan.pool import Claim
from cccopt.ccc.plan.stack import SLOTS, StackCode
from cccopt.ccc.regions.hammocks import Hammock
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path
from cccopt.diagnostic import Diagnostic
from cccopt.ptx import isa
from cccopt.ptx.ir import Body, Instruction, Operand, Register, SpecialRegister
from cccopt.ptx.special import SPECIAL_TYPES

PAIRED = 3 * SLOTS - 2
"""Slots of a warp for two exclusive paths."""


@dataclass(frozen=True, slots=True)
class TaskRegisters:
    """The registers of the running task: what it reads and writes instead of a register of the program."""

    uses: Mapping[str, Operand]
    definitions: Mapping[str, Register]

    def of(self, name: str) -> Register:
        """The register that holds ``name``."""
        register = self.uses[name]
        assert isinstance(register, Register)
        return register

    def rename(self, instruction: Instruction) -> Instruction:
        """The instruction on the registers of the task."""
        return isa.rename(instruction, self.uses, self.definitions)


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What becomes of the path's live-ins; ``restore`` rebuilds, at the beginning of a task, what is not collected."""

    live_ins: tuple[LiveIn, ...]
    restore: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class CodeAfter:
    """Code after a path that does not simply run in the lane's own iteration, by its indices in the function's body.

    ``sunk`` are the statements that run with the task instead, including those of ``hammocks``; ``updates`` are those
    that update a task's parts of reductions, as they run there; ``skip_flags`` keep the lane from running them.
    ``recomputed`` are statements that a lane runs again for itself at the join, with ``temporaries`` for intermediate
    results.
    """

    sunk: tuple[int, ...]
    hammocks: tuple[Hammock, ...]
    updates: Mapping[int, Instruction]
    skip_flags: tuple[Register, ...]
    recomputed: tuple[int, ...]
    temporaries: Mapping[str, Register]

    def recompute(self, body: Body) -> list[Instruction]:
        """What the lane computes again, on its own registers except for intermediate results, which nothing reads
        later. A register with both a value from before the path and an intermediate one is renamed once it is written.
        """
        code: list[Instruction] = []
        names: dict[str, Register] = {}
        for index in self.recomputed:
            instruction = body[index]
            assert isinstance(instruction, Instruction)
            code.append(isa.rename(instruction, names, self.temporaries))
            names.update({n: r for n, r in self.temporaries.items() if n in effects.writes(instruction)})
        return code


@dataclass(frozen=True, slots=True)
class PartialResults:
    """A task's parts of reductions: ``partials``, and ``sums``, which the warp combines for each owner.

    ``owner`` is the task's register with the address of the slots of the lane that made it; the tasks of a loop begin
    with ``resets``.
    """

    partials: tuple[Partial, ...]
    sums: tuple[Partial, ...]
    owner: Register | None
    resets: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class PathPlan:
    """One path: its number, the stack of its tasks, the register with the number of tasks on it, and its other parts
    grouped by subject.

    The inner iterations of a ``counted`` loop are expanded over the warp (`cccopt.ccc.codegen.expansion`): its stack is
    the layout of a context only. If it ``meets_rest``, the code after the loop may touch memory that inner iterations
    touch, and waits for all of them. In any other loop, lanes run ``chunk`` inner iterations between two votes.
    """

    path: Path
    number: int
    stack: StackCode
    top: Register
    context: TaskContext
    registers: TaskRegisters
    after: CodeAfter
    results: PartialResults
    counted: CountedLoop | None
    meets_rest: bool
    chunk: int
    children: tuple[PathPlan, ...]

    def phase(self, what: str) -> str:
        """The name of a phase of this path in labels: ``push_1``."""
        return f"{what}_{self.number}"


@dataclass(frozen=True, slots=True)
class Sorting:
    """Exclusive paths that share a join (`cccopt.ccc.codegen.sorting`), by number.

    ``stack`` has one layout for all paths, which share its slots in pairs. Lane b holds in ``waiting`` how many tasks
    path b has.
    """

    paths: tuple[PathPlan, ...]
    stack: StackCode
    waiting: Register

    @property
    def bits(self) -> int:
        """The bits of a path's number; lanes that reach no path have a number, too."""
        return len(self.paths).bit_length()

    @property
    def bases(self) -> Mapping[int, tuple[Register, int]]:
        """For each word size, the register with the warp's base address, and the bytes per warp in shared memory."""
        return {size: (base, sorted_slots(len(self.paths)) * size) for size, base in self.stack.bases.items()}


def sorted_slots(paths: int) -> int:
    """Slots that a warp needs for exclusive paths: up to 31 tasks of each wait while 32 more come in all.

    Two paths fill one array from both of its ends.
    """
    return paths // 2 * PAIRED + paths % 2 * (2 * SLOTS - 1)


@dataclass(frozen=True, slots=True)
class Plan:
    """One region: its paths (outer ones first in `all_paths`) and the registers that the whole warp shares.

    ``bases`` maps a word size to the register with the warp's base address in the stacks of paths that are not in
    ``sortings``. ``stack_bytes`` is what the stacks and the owners' slots take of shared memory; with a ``claim``, the
    stacks are in global memory.
    """

    region: Region
    paths: tuple[PathPlan, ...]
    sortings: tuple[Sorting, ...]
    split: bool
    stack_name: str
    stack_bytes: int
    claim: Claim | None
    bases: Mapping[int, Register]
    lane: Register
    lanes_before: Register
    rebuilt: tuple[Instruction, ...]
    skipped: Mapping[int, Register]
    dropped: frozenset[int]
    threads: int
    slots: Slots
    remarks: tuple[Diagnostic, ...] = field(default=())

    def sorting(self, path: PathPlan) -> Sorting | None:
        """The group with which the path shares a join."""
        return next((s for s in self.sortings if any(path is p for p in s.paths)), None)

    def has_stack(self, path: PathPlan) -> bool:
        """Whether tasks of the path wait on a stack of their own."""
        return path.counted is None and self.sorting(path) is None

    @property
    def partials(self) -> tuple[Partial, ...]:
        """The parts of reductions that tasks of all paths have."""
        return tuple(dict.fromkeys(partial for path in self.all_paths() for partial in path.results.partials))

    def all_paths(self) -> tuple[PathPlan, ...]:
        """All paths, each before those inside it."""
        found: list[PathPlan] = []
        work = list(self.paths)
        while work:
            path = work.pop(0)
            found.append(path)
            work = [*path.children, *work]
        return tuple(found)


def own(name: str) -> Operand:
    """The lane's own value of a register or special register."""
    return SpecialRegister(name) if name in SPECIAL_TYPES else Register(name)
