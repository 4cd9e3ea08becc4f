"""What a rewrite needs to know of one region: contexts, stacks, names, form. `cccopt.ccc.plan.planning` decides it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cccopt.analysis import effects
from cccopt.ccc.legality.counted_loops import CountedLoop
from cccopt.ccc.plan.context import LiveIn
from cccopt.ccc.plan.partials import Partial, Slots
from cccopt.ccc.plan.stack import SLOTS, StackCode
from cccopt.ccc.regions.hammocks import Hammock
from cccopt.ccc.regions.marked_loops import Path, Region
from cccopt.diagnostic import Diagnostic
from cccopt.ptx import isa
from cccopt.ptx.ir import Body, Instruction, Operand, Register, SpecialRegister
from cccopt.ptx.special import SPECIAL_TYPES

PAIRED = 3 * SLOTS - 2
"""Slots of a warp for two exclusive paths."""


@dataclass(frozen=True)
class PathPlan:
    """One path: its context and stack, the names of its tasks' registers, and what runs behind it.

    ``tail`` are the statements that run with the task instead of behind the join, those of ``hammocks`` among them;
    ``skip_flags`` keep the lane itself from running them. ``recomputed`` are those that a lane runs again
    for itself at the join. ``restore`` rebuilds, at the beginning of a task, what its compressed context leaves out.

    ``partials`` are the task's parts of reductions, ``updates`` the statements of the tail that update them,
    ``owner`` the address of the slots of the lane that made the task; a loop's tasks begin with ``resets``.

    The trips of a ``counted`` loop are expanded over the warp (`cccopt.ccc.codegen.expansion`): its stack is the layout
    of a context only.
    """

    path: Path
    number: int
    live_ins: tuple[LiveIn, ...]
    stack: StackCode
    top: Register
    uses: Mapping[str, Operand]
    definitions: Mapping[str, Register]
    tail: tuple[int, ...]
    hammocks: tuple[Hammock, ...]
    skip_flags: tuple[Register, ...]
    recomputed: tuple[int, ...]
    temporaries: Mapping[str, Register]
    restore: tuple[Instruction, ...]
    children: tuple[PathPlan, ...] = ()
    partials: tuple[Partial, ...] = ()
    counted: CountedLoop | None = None
    sums: tuple[Partial, ...] = ()
    resets: tuple[Instruction, ...] = ()
    updates: Mapping[int, Instruction] = field(default_factory=dict)
    owner: Register | None = None

    @property
    def chunk(self) -> int:
        """Trips of a loop between two votes. A path inside needs the whole warp in each trip."""
        return 1 if self.children else self.path.annotation.chunk

    def phase(self, what: str) -> str:
        """The name of a phase of this path in labels: ``push_1``."""
        return f"{what}_{self.number}"

    def task(self, name: str) -> Register:
        """The register of the running task that stands for ``name``."""
        register = self.uses[name]
        assert isinstance(register, Register)
        return register

    def rewrite(self, instruction: Instruction) -> Instruction:
        """The instruction on the registers of the running task."""
        return isa.rename(instruction, self.uses, self.definitions)

    def own(self, body: Body) -> list[Instruction]:
        """What the lane computes again, on its own registers but for intermediate results, which nothing behind reads.
        A register with both a value from before the path and an intermediate one changes its name where it is written.
        """
        code: list[Instruction] = []
        names: dict[str, Register] = {}
        for index in self.recomputed:
            instruction = body[index]
            assert isinstance(instruction, Instruction)
            code.append(isa.rename(instruction, names, self.temporaries))
            names.update({n: r for n, r in self.temporaries.items() if n in effects.writes(instruction)})
        return code


@dataclass(frozen=True)
class Sorting:
    """Exclusive paths that share a site (`cccopt.ccc.codegen.sorting`), by number.

    ``stack`` has one layout for all paths, which share its slots by two. Lane b holds in ``waiting`` how
    many tasks path b has.
    """

    paths: tuple[PathPlan, ...]
    stack: StackCode
    waiting: Register

    @property
    def bits(self) -> int:
        """Bits of a path's number, or of that of the lanes that come to none."""
        return len(self.paths).bit_length()

    @property
    def bases(self) -> Mapping[int, tuple[Register, int]]:
        """For each word size the register with the warp's base address, and its bytes a warp."""
        return {size: (base, sorted_slots(len(self.paths)) * size) for size, base in self.stack.bases.items()}


def sorted_slots(paths: int) -> int:
    """Slots that a warp needs for exclusive paths, of which up to 31 tasks wait each while 32 more come in all.

    Two paths fill one array from both of its ends.
    """
    return paths // 2 * PAIRED + paths % 2 * (2 * SLOTS - 1)


@dataclass(frozen=True)
class Plan:
    """One region: its paths (outer ones first in `all_paths`) and the registers that the whole warp shares.

    ``bases`` maps a word size to the register with the warp's base address in the stacks of paths that are not in
    ``sortings``.
    """

    region: Region
    paths: tuple[PathPlan, ...]
    sortings: tuple[Sorting, ...]
    split: bool
    stack_name: str
    stack_bytes: int
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
        """The group that the path shares a site with."""
        return next((s for s in self.sortings if any(path is p for p in s.paths)), None)

    def has_stack(self, path: PathPlan) -> bool:
        """Whether tasks of the path wait on a stack of their own."""
        return path.counted is None and self.sorting(path) is None

    @property
    def partials(self) -> tuple[Partial, ...]:
        """The parts of reductions that tasks of all paths have."""
        return tuple(dict.fromkeys(partial for path in self.all_paths() for partial in path.partials))

    def all_paths(self) -> tuple[PathPlan, ...]:
        """All paths, each ahead of those inside it."""
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
