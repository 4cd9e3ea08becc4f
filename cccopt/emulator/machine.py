"""The state of a launch: registers, lanes, blocks and memory spaces, and what running a piece does to them.

How lanes are chosen to run is the business of `schedule` (warps in lock-step, as hardware does) and `shuffle`
(lanes one at a time, in a drawn order).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cccopt.emulator.access import MemoryAccess
from cccopt.emulator.codegen import KernelCode
from cccopt.emulator.errors import MALFORMED, STEP_LIMIT, TRAPPED
from cccopt.emulator.groups import LaneGroup
from cccopt.emulator.hazard import Hazards
from cccopt.emulator.layout import ParameterVariable
from cccopt.emulator.memory import GlobalMemory
from cccopt.emulator.pieces import Decoded, Piece, Slot
from cccopt.emulator.places import Places
from cccopt.emulator.reconverge import Reconvergence
from cccopt.emulator.semantics import Array, Type
from cccopt.emulator.trace import Trace

MAX_DEPTH = 1024


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel ready to run: its pieces, their code, and how its variables lie."""

    name: str
    pieces: tuple[Piece, ...]
    slots: tuple[Slot, ...]
    code: KernelCode
    make: Callable[..., Any]
    entry: int
    entries: dict[str, int]
    deep: frozenset[str]
    formals: dict[str, tuple[tuple[object, ...], tuple[object, ...]]]
    shared_size: int
    shared_variables: dict[str, int]
    parameters: tuple[Any, ...]
    parameters_size: int
    parameter_variables: tuple[ParameterVariable, ...]
    local_size: int
    local_stride: int

    def shared_variable(self, offset: int) -> tuple[str, int]:
        """The name of the shared variable at ``offset``, and the offset in it; an empty one ahead of all variables."""
        found = [(start, name) for name, start in self.shared_variables.items() if start <= offset]
        if not found:
            return "", offset
        start, name = max(found)
        return name.rpartition(":")[2], offset - start


@dataclass(frozen=True)
class Shape:
    """Grid and block of a launch, each x, y, z."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """The number of threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps(self) -> int:
        """The number of warps of a block."""
        return -(-self.threads // 32)


class Scheduler(Protocol):
    """Who is told where lanes go."""

    def push(self, piece: int, group: LaneGroup) -> None:
        """``group`` stands at ``piece`` and can run."""


class Tally:
    """The counters of one piece."""

    __slots__ = ("fragments", "histogram", "lanes", "parted", "taken")

    def __init__(self) -> None:
        self.fragments = 0
        self.lanes = 0
        self.taken = 0
        self.parted = 0
        self.histogram = np.zeros(33, np.int64)


class Machine:
    """One launch of a kernel."""

    def __init__(
        self,
        kernel: LoadedKernel,
        shape: Shape,
        places: Places,
        memory: GlobalMemory,
        constants: Array,
        parameters: Array,
        shared_bytes: int,
        *,
        hazards: bool,
        check_uninitialized_shared: bool,
        max_steps: int,
        trace: Trace | None = None,
    ) -> None:
        self.kernel = kernel
        self.shape = shape
        self.places = places
        self.memory = memory
        self.pieces = kernel.pieces
        self.max_steps = max_steps
        self.steps = 0
        self.trace = trace
        self.lanes = shape.blocks * shape.warps * 32
        self.lanes_per_block = shape.warps * 32
        self.threads = Reconvergence(self.lanes)
        self.lab = self.threads.lab
        self.exists = (np.arange(self.lanes) % self.lanes_per_block) < shape.threads
        self.alive = self.exists.copy()
        self.live = int(self.alive.sum())
        self.live_in_block = np.full(shape.blocks, shape.threads)
        self.depth = np.zeros(self.lanes, np.int64)
        self.depths = 8 if kernel.deep else 1
        self.tallies = [Tally() for _ in self.pieces]
        self.off: Counter[tuple[str, int]] = Counter()
        self._spaces(constants, parameters, shared_bytes)
        self.hazards: Hazards | None = None
        size = self.shared.size
        if hazards and size:
            self.hazards = Hazards(self, size)
        self.unwritten = np.ones(size, bool) if check_uninitialized_shared else None
        self.registers = [np.zeros(self._rows(slot.index), slot.dtype) for slot in kernel.slots]
        self.parameter_data = [
            np.zeros((self.lanes * self.depths, -(-variable.size // 16) * 16), np.uint8)
            for variable in kernel.parameter_variables
        ]
        self.specials = special_registers(self)
        for access in kernel.code.accesses:
            access.attach(self)
        self._bind()
        self.scheduler: Scheduler

    def _rows(self, slot: int) -> int:
        return self.lanes * self.depths

    def _spaces(self, constants: Array, parameters: Array, shared_bytes: int) -> None:
        def rounded(size: int) -> int:
            return -(-size // 16) * 16

        kernel, shape = self.kernel, self.shape
        self.shared_stride = rounded(kernel.shared_size + shared_bytes)
        self.shared = np.zeros(self.shared_stride * shape.blocks, np.uint8)
        self.local_stride = rounded(kernel.local_size + kernel.local_stride * self.depths)
        self.local = np.zeros(self.local_stride * self.lanes, np.uint8)
        self._limits = {
            "shared": kernel.shared_size + shared_bytes,
            "local": self.local_stride,
            "const": constants.size,
            "param": kernel.parameters_size,
        }
        self.constants = constants
        self.parameters = parameters

    def _bind(self) -> None:
        specials = [self.specials[name] for name in self.kernel.code.specials]
        self.functions = self.kernel.make(
            self.registers, specials, self.parameter_data, self, self.depth, self.lanes
        )

    # --- what pieces' code and accesses ask --------------------------------------------------------------------

    def ticks(self) -> int:
        """The clock: steps taken so far."""
        return self.steps

    def parameter(self, address: int, dtype: Type) -> Array:
        """A scalar of the kernel's parameter block."""
        return self.parameters[address : address + dtype.itemsize].view(dtype).reshape(())

    def space(self, name: str) -> tuple[int, Array, int]:
        """Limit in bytes of a space, all its bytes, and the stride between the blocks or threads that own them."""
        if name == "shared":
            return self._limits[name], self.shared, self.shared_stride
        if name == "local":
            return self._limits[name], self.local, self.local_stride
        return self._limits[name], (self.constants if name == "const" else self.parameters), 0

    def block_of(self, lanes: Array) -> Array:
        """The block of each lane."""
        return lanes // self.lanes_per_block

    def thread_name(self, lane: int) -> str:
        """A lane as a user knows it."""
        block, thread = divmod(lane, self.lanes_per_block)
        grid, size = self.shape.grid, self.shape.block

        def axes(number: int, sides: tuple[int, int, int]) -> str:
            return (
                f"({number % sides[0]}, {number // sides[0] % sides[1]}, {number // (sides[0] * sides[1])})"
            )

        return f"thread {axes(thread, size)} of block {axes(block, grid)}"

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
            f"the kernel does not end within {self.max_steps} steps",
            item,
            function="" if item is not None else piece.function,
            why="here is where it was running",
            help="a spin loop that waits for a lane that cannot run, or a longer run: raise max_steps",
        )

    def exit(self, group: LaneGroup) -> None:
        """The lanes of ``group`` end."""
        self.alive[group.ix] = False
        self.live -= group.n
        np.subtract.at(self.live_in_block, self.block_of(group.ix), 1)
        for piece, from_call, fragments in self.threads.leave(group):
            if from_call:
                self._after_call(piece, fragments)
            else:
                self.scheduler.push(piece, fragments)

    def trap(self, piece: Piece, group: LaneGroup) -> Exception:
        """The error that `trap` is."""
        return self.places.error(
            TRAPPED, f"the kernel trapped in {self.thread_name(int(group.ix[0]))}", piece.ending,
            help="`trap` is what a failed assertion and `__trap()` become",
        )  # fmt: skip

    # --- calls -------------------------------------------------------------------------------------------------

    def call(self, piece: Piece, group: LaneGroup) -> None:
        """Arguments go over, and the lanes stand at the callee's entry."""
        assert piece.ending is not None
        _, arguments = call_operands(piece.ending)
        _, formals = self.kernel.formals[piece.callee]
        if len(arguments) != len(formals):
            raise self.places.error(
                MALFORMED, f"call of `{piece.callee}` with {len(arguments)} arguments", piece.ending
            )
        caller = self.rows(piece.function, group.ix)
        self.threads.enter_call(group, piece.index)
        if piece.callee in self.kernel.deep:
            self.depth[group.ix] += 1
            self._deepen(piece, int(self.depth[group.ix].max()))
            caller = self.rows(piece.function, group.ix, below=piece.function in self.kernel.deep)
        callee = self.rows(piece.callee, group.ix)
        for argument, formal in zip(arguments, formals, strict=True):
            self._copy(piece.ending, argument, caller, formal, callee)
        self.scheduler.push(self.kernel.entries[piece.callee], group)

    def rows(self, function: str, lanes: Array, below: bool = False) -> Array:
        """The rows of the register file that ``lanes`` use in a function (``below``: one call further out)."""
        if function not in self.kernel.deep:
            return lanes
        return lanes + (self.depth[lanes] - (1 if below else 0)) * self.lanes

    def _deepen(self, piece: Piece, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise self.places.error(MALFORMED, f"calls nest deeper than {MAX_DEPTH}", piece.ending)
        if depth < self.depths:
            return
        more = self.depths
        self.depths *= 2
        self.registers = [np.concatenate([r, np.zeros(self.lanes * more, r.dtype)]) for r in self.registers]
        self.parameter_data = [np.concatenate([p, np.zeros_like(p)]) for p in self.parameter_data]
        old = self.local.reshape(self.lanes, -1)
        self.local_stride += self.kernel.local_stride * more
        self.local = np.zeros(self.local_stride * self.lanes, np.uint8)
        self.local.reshape(self.lanes, -1)[:, : old.shape[1]] = old
        self._limits["local"] = self.local_stride
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
                MALFORMED, "a call passes a register for a .param, or the other way", item
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
        """All memory accesses of the kernel, those that generic addresses made included."""
        return [part for access in self.kernel.code.accesses for part in access.parts()]


def call_operands(item: Decoded) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Results and arguments of a call."""
    from_instruction = item.operands
    lists = [i for i, operand in enumerate(from_instruction) if hasattr(operand, "elements")]
    function = next(i for i in range(len(from_instruction)) if i not in lists)

    def elements(before: bool) -> tuple[object, ...]:
        found = [i for i in lists if (i < function) == before]
        return from_instruction[found[0]].elements if found else ()  # type: ignore[attr-defined]

    return elements(True), elements(False)


def special_registers(machine: Machine) -> dict[str, Array]:
    """The special registers that do not change, one value a lane."""
    shape = machine.shape
    lane = np.arange(machine.lanes)
    block, thread = lane // machine.lanes_per_block, lane % machine.lanes_per_block
    in_warp = lane & 31
    found: dict[str, Any] = {}
    for name, number, sides in (("tid", thread, shape.block), ("ctaid", block, shape.grid)):
        found[f"%{name}.x"] = number % sides[0]
        found[f"%{name}.y"] = number // sides[0] % sides[1]
        found[f"%{name}.z"] = number // (sides[0] * sides[1])
    for name, sides in (("ntid", shape.block), ("nctaid", shape.grid)):
        for axis, side in zip("xyz", sides, strict=True):
            found[f"%{name}.{axis}"] = np.full(machine.lanes, side)
    one = np.int64(1)
    found |= {
        "%laneid": in_warp,
        "%warpid": thread >> 5,
        "%nwarpid": np.full(machine.lanes, shape.warps),
        "%smid": block,
        "%nsmid": np.full(machine.lanes, shape.blocks),
        "%gridid": np.zeros(machine.lanes),
        "WARP_SZ": np.full(machine.lanes, 32),
        "%lanemask_eq": one << in_warp,
        "%lanemask_lt": (one << in_warp) - 1,
        "%lanemask_le": (one << (in_warp + 1)) - 1,
        "%lanemask_gt": 0xFFFFFFFF ^ ((one << (in_warp + 1)) - 1),
        "%lanemask_ge": 0xFFFFFFFF ^ ((one << in_warp) - 1),
        "%dynamic_smem_size": np.full(machine.lanes, machine.space("shared")[0] - machine.kernel.shared_size),
        "%total_smem_size": np.full(machine.lanes, machine.space("shared")[0]),
    }
    wide = {"%gridid"}
    return {name: np.asarray(v).astype(np.uint64 if name in wide else np.uint32) for name, v in found.items()}
