"""The memory of one launch: global allocations, and the bytes of every other state space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cccopt.emulator.hazard import Hazards
from cccopt.emulator.memory import GlobalMemory
from cccopt.emulator.places import Places
from cccopt.emulator.semantics import Array
from cccopt.emulator.shape import Shape


@dataclass(frozen=True)
class MemorySizes:
    """Bytes that a kernel needs: shared memory of a block, its parameters, local memory of a thread.

    Recursive functions have ``local_per_depth`` bytes for each depth of calls; all others share ``local``.
    """

    shared: int
    parameters: int
    local: int
    local_per_depth: int


class LaunchMemory:
    """What memory instructions access. `hazards` and `unwritten` are None if a launch does not check for them."""

    def __init__(
        self,
        sizes: MemorySizes,
        shape: Shape,
        places: Places,
        allocations: GlobalMemory,
        constants: Array,
        parameters: Array,
    ) -> None:
        self.shape = shape
        self.places = places
        self.allocations = allocations
        self.constants = constants
        self.parameters = parameters
        self.shared_stride = _rounded(sizes.shared)
        self.shared = np.zeros(self.shared_stride * shape.blocks, np.uint8)
        self._sizes = sizes
        self._limits: dict[str, int] = {
            "shared": sizes.shared,
            "const": constants.size,
            "param": sizes.parameters,
        }
        self.local = np.zeros(0, np.uint8)
        self.local_stride = 0
        self.hazards: Hazards | None = None
        self.unwritten: Array | None = None

    @property
    def shared_limit(self) -> int:
        """The bytes of shared memory that a block may access."""
        return self._limits["shared"]

    def reserve_local(self, depths: int) -> None:
        """Makes room in local memory for ``depths`` levels of calls; the contents stay."""
        lanes = self.shape.lanes
        old = self.local.reshape(lanes, -1)
        self.local_stride = _rounded(self._sizes.local + self._sizes.local_per_depth * depths)
        self.local = np.zeros(self.local_stride * lanes, np.uint8)
        self.local.reshape(lanes, -1)[:, : old.shape[1]] = old
        self._limits["local"] = self.local_stride

    def watch_hazards(self, alive: Array) -> None:
        """Begins to look for unordered accesses to shared memory; ``alive`` marks the lanes that have not exited."""
        if self.shared.size:
            self.hazards = Hazards(self.shape, self.places, self.shared, self.shared_stride, alive)

    def watch_unwritten(self) -> None:
        """Begins to look for reads of shared memory that was not written."""
        self.unwritten = np.ones(self.shared.size, bool)

    def space(self, name: str) -> tuple[int, Array, int]:
        """The limit of a space in bytes, all its bytes, and the stride between the blocks or threads that own them."""
        if name == "shared":
            return self._limits[name], self.shared, self.shared_stride
        if name == "local":
            return self._limits[name], self.local, self.local_stride
        return self._limits[name], (self.constants if name == "const" else self.parameters), 0


def _rounded(size: int) -> int:
    return -(-size // 16) * 16
