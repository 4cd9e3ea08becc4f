"""The state of a launch: registers, lanes and memory, and what running a piece does to them.

`schedule` (the lanes of a warp in lockstep) and `shuffle` (lanes one at a time, in random order) choose the lanes to
run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cccopt.emulator.access import MemoryAccess
from cccopt.emulator.errors import MALFORMED, STEP_LIMIT, TRAPPED
from cccopt.emulator.groups import LaneGroup
from cccopt.emulator.kernel import LoadedKernel
from cccopt.emulator.launch_memory import LaunchMemory
from cccopt.emulator.layout import ParameterVariable
from cccopt.emulator.pieces import Decoded, Piece, Slot
from cccopt.emulator.reconverge import Reconvergence
from cccopt.emulator.semantics import Array, Type
from cccopt.emulator.special_registers import special_registers
from cccopt.emulator.system_calls import SystemCalls
from cccopt.emulator.trace import Trace
from cccopt.text import quantity

MAX_DEPTH = 1024


class Scheduler(Protocol):
    """Decides which lanes run next."""

    def push(self, piece: int, group: LaneGroup) -> None:
        """``group`` is at ``piece`` and can run."""


class Tally:
    """The counters of one piece."""

    __slots__ = ("fragments", "histogram", "jumped", "lanes", "parted", "taken")

    def __init__(self) -> None:
        self.fragments = 0
        self.lanes = 0
        self.taken = 0
        self.parted = 0
        self.histogram = np.zeros(33, np.int64)
        self.jumped = np.zeros(33, np.int64)

    def count_branch(self, group: LaneGroup, taken: Array, number: int) -> None:
        """Counts a branch of ``group`` that ``number`` of its lanes take: those for which ``taken`` holds."""
        self.taken += number
        if number == 0:
            self.jumped[0] += group.nf
        elif group.nf == 1:
            self.jumped[number] += 1
        elif number == 32 * group.nf:
            self.jumped[32] += group.nf
        else:
            by_fragment = np.add.reduceat(taken, group.heads(), dtype=np.int64)
            self.jumped += np.bincount(by_fragment, minlength=33)


@dataclass(frozen=True)
class LaunchOptions:
    """How a launch is run and watched; the fields are arguments of `emulate`, ``trace`` one of `Program.launch`."""

    hazards: bool
    check_uninitialized_shared: bool
    max_steps: int
    trace: Trace | None = None


class Machine:
    """One launch of a kernel."""

    def __init__(self, kernel: LoadedKernel, memory: LaunchMemory, options: LaunchOptions) -> None:
        self.kernel = kernel
        self.memory = memory
        self.shape = shape = memory.shape
        self.places = memory.places
        self.system_calls = SystemCalls(memory, self.places, shape)
        self.pieces = kernel.pieces
        self.max_steps = options.max_steps
        self.steps = 0
        self.trace = options.trace
        self.lanes = shape.lanes
        self.threads = Reconvergence(self.lanes)
        self.lab = self.threads.lab
        self.alive = shape.threads_of_lanes()
        self.live = shape.blocks * shape.threads
        self.live_in_block = np.full(shape.blocks, shape.threads)
        self.depth = np.zeros(self.lanes, np.int64)
        self.depths = 8 if kernel.deep else 1
        self.tallies = [Tally() for _ in self.pieces]
        self.off: Counter[tuple[str, int]] = Counter()
        memory.reserve_local(self.depths)
        if options.hazards:
            memory.watch_hazards(self.alive)
        if options.check_uninitialized_shared:
            memory.watch_unwritten()
        self.registers = [np.zeros(self.lanes * self.depths, slot.dtype) for slot in kernel.slots]
        self.parameter_data = [
            np.zeros((self.lanes * self.depths, -(-variable.size // 16) * 16), np.uint8)
            for variable in kernel.parameter_variables
        ]
        self.specials = special_registers(shape, kernel.sizes.shared, memory.shared_limit)
        for access in kernel.code.accesses:
            access.attach(memory)
        self._bind()
        self.scheduler: Scheduler

    def _bind(self) -> None:
        """Binds the pieces' code to the register file, again each time the file grows."""
        specials = [self.specials[name] for name in self.kernel.code.specials]
        self.functions = self.kernel.make(
            self.registers, specials, self.parameter_data, self, self.depth, self.lanes
        )

    # --- what pieces' code calls -------------------------------------------------------------------------------

    def ticks(self) -> int:
        """The clock: steps taken so far."""
        return self.steps

    def parameter(self, address: int, dtype: Type) -> Array:
        """A scalar in the kernel's parameter block."""
        return self.memory.parameters[address : address + dtype.itemsize].view(dtype).reshape(())

    # --- running pieces ----------------------------------------------------------------------------------------

    def count(self, piece: int, group: LaneGroup) -> None:
        """Counts one pass of ``group`` through ``piece``."""
        self.steps += 1
        if self.steps > self.max_steps:
            raise self._too_long(self.pieces[piece])
        if self.trace is not None:
            self.trace.record(self.pieces[piece], group)
        tally = self.tallies[piece]
        tally.fragments += group.nf
        tally.lanes += group.n
        if group.nf == 1:
            tally.histogram[group.n] += 1
        elif group.n == 32 * group.nf:
            tally.histogram[32] += group.nf
        else:
            tally.histogram += np.bincount(group.counts(), minlength=33)

    def _too_long(self, piece: Piece) -> Exception:
        item = piece.counted[0] if piece.counted else piece.ending
        return self.places.error(
            STEP_LIMIT,
            f"the kernel did not end within {self.max_steps} steps",
            item,
            function="" if item is not None else piece.function,
            why="it was running here",
            help="this may be a spin loop that waits for a lane that cannot run; if the kernel simply"
            " takes many steps, use a smaller input (in Python: a higher `max_steps`)",
        )

    def exit(self, group: LaneGroup) -> None:
        """The lanes of ``group`` exit."""
        self.alive[group.ix] = False
        self.live -= group.n
        np.subtract.at(self.live_in_block, self.shape.block_of(group.ix), 1)
        for piece, from_call, fragments in self.threads.leave(group):
            if from_call:
                self._after_call(piece, fragments)
            else:
                self.scheduler.push(piece, fragments)

    def trap(self, piece: Piece, group: LaneGroup) -> Exception:
        """The error for a `trap`."""
        return self.places.error(
            TRAPPED, f"the kernel trapped in {self.shape.thread_name(int(group.ix[0]))}", piece.ending,
            help="`trap` is what `__trap()` becomes",
        )  # fmt: skip

    # --- calls -------------------------------------------------------------------------------------------------

    def call(self, piece: Piece, group: LaneGroup) -> None:
        """Copies the arguments and sends the lanes to the callee's entry."""
        assert piece.ending is not None
        results, arguments = call_operands(piece.ending)
        caller = self.rows(piece.function, group.ix)
        if piece.callee not in self.kernel.entries:
            self.system_calls.require(piece.callee, piece.ending)
            given = [self._value(argument, caller) for argument in arguments]
            found = self.system_calls.run(piece.callee, piece.ending, group.ix, given)
            for result in results:
                self._set(result, caller, found)
            self.scheduler.push(piece.following, group)
            return
        _, formals = self.kernel.formals[piece.callee]
        if len(arguments) != len(formals):
            raise self.places.error(
                MALFORMED,
                f"`{piece.callee}` is called with {quantity(len(arguments), 'argument')} but takes {len(formals)}",
                piece.ending,
            )
        self.threads.enter_call(group, piece.index)
        if piece.callee in self.kernel.deep:
            self.depth[group.ix] += 1
            self._deepen(piece, int(self.depth[group.ix].max()))
            caller = self.rows(piece.function, group.ix, below=piece.function in self.kernel.deep)
        callee = self.rows(piece.callee, group.ix)
        for argument, formal in zip(arguments, formals, strict=True):
            self._copy(piece.ending, argument, caller, formal, callee)
        self.scheduler.push(self.kernel.entries[piece.callee], group)

    def _value(self, argument: object, rows: Array) -> Array:
        """An argument as one unsigned integer per lane."""
        if isinstance(argument, Slot):
            return self.registers[argument.index][rows]
        assert isinstance(argument, ParameterVariable)
        data = self.parameter_data[argument.index][rows, : argument.size]
        return np.ascontiguousarray(data).view(f"u{argument.size}").reshape(-1)

    def _set(self, result: object, rows: Array, values: Array) -> None:
        """Sets the result of a call to one 32-bit value per lane."""
        if isinstance(result, Slot):
            self.registers[result.index][rows] = values.view(np.uint32)
        elif isinstance(result, ParameterVariable):
            self.parameter_data[result.index][rows, :4] = values.view(np.uint8).reshape(-1, 4)

    def rows(self, function: str, lanes: Array, below: bool = False) -> Array:
        """The rows of the register file that ``lanes`` use in a function (``below``: one call further out)."""
        if function not in self.kernel.deep:
            return lanes
        return lanes + (self.depth[lanes] - (1 if below else 0)) * self.lanes

    def _deepen(self, piece: Piece, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise self.places.error(MALFORMED, f"calls are nested more deeply than {MAX_DEPTH}", piece.ending)
        if depth < self.depths:
            return
        more = self.depths
        self.depths *= 2
        self.registers = [np.concatenate([r, np.zeros(self.lanes * more, r.dtype)]) for r in self.registers]
        self.parameter_data = [np.concatenate([p, np.zeros_like(p)]) for p in self.parameter_data]
        self.memory.reserve_local(self.depths)
        self._bind()

    def _copy(
        self, item: Decoded, source: object, source_rows: Array, target: object, target_rows: Array
    ) -> None:
        if isinstance(source, ParameterVariable) and isinstance(target, ParameterVariable):
            size = min(source.size, target.size)
            self.parameter_data[target.index][target_rows, :size] = self.parameter_data[source.index][
                source_rows, :size
            ]
        elif isinstance(source, Slot) and isinstance(target, Slot):
            self.registers[target.index][target_rows] = self.registers[source.index][source_rows]
        else:
            raise self.places.error(
                MALFORMED, "a call passes a register for a .param, or the other way around", item
            )

    def returned(self, group: LaneGroup) -> None:
        """Lanes return from a device function."""
        for piece, fragments in self.threads.leave_call(group):
            self._after_call(piece, fragments)

    def _after_call(self, number: int, group: LaneGroup) -> None:
        piece = self.pieces[number]
        assert piece.ending is not None
        results, _ = call_operands(piece.ending)
        formals, _ = self.kernel.formals[piece.callee]
        callee = self.rows(piece.callee, group.ix)
        if piece.callee in self.kernel.deep:
            self.depth[group.ix] -= 1
        caller = self.rows(piece.function, group.ix)
        for result, formal in zip(results, formals, strict=False):
            self._copy(piece.ending, formal, callee, result, caller)
        self.scheduler.push(piece.following, group)

    def accesses(self) -> list[MemoryAccess]:
        """All memory accesses of the kernel, including those made for generic addresses."""
        return [part for access in self.kernel.code.accesses for part in access.parts()]


def call_operands(item: Decoded) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """The results and arguments of a call."""
    from_instruction = item.operands
    lists = [i for i, operand in enumerate(from_instruction) if hasattr(operand, "elements")]
    function = next(i for i in range(len(from_instruction)) if i not in lists)

    def elements(before: bool) -> tuple[object, ...]:
        found = [i for i in lists if (i < function) == before]
        return from_instruction[found[0]].elements if found else ()  # type: ignore[attr-defined]

    return elements(True), elements(False)
