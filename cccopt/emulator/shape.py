"""The grid and block of a launch, and the thread of each lane.

Lanes are numbered across all warps of the launch. Each block begins with a new warp, so lanes after its last thread
may have no thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cccopt.emulator.semantics import Array


@dataclass(frozen=True)
class Shape:
    """The grid and block of a launch, each as x, y, z."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @cached_property
    def blocks(self) -> int:
        """The number of blocks."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @cached_property
    def threads(self) -> int:
        """The number of threads in a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @cached_property
    def warps(self) -> int:
        """The number of warps in a block."""
        return -(-self.threads // 32)

    @cached_property
    def lanes_per_block(self) -> int:
        """The number of lanes in a block."""
        return 32 * self.warps

    @cached_property
    def lanes(self) -> int:
        """The number of lanes of the launch."""
        return self.blocks * self.lanes_per_block

    def threads_of_lanes(self) -> Array:
        """For each lane, whether it has a thread."""
        return np.arange(self.lanes) % self.lanes_per_block < self.threads

    def block_of(self, lanes: Array) -> Array:
        """The block of each lane."""
        return lanes // self.lanes_per_block

    def block_name(self, block: int) -> str:
        """The name of a block in messages."""
        return f"block {_axes(block, self.grid)}"

    def thread_name(self, lane: int) -> str:
        """The name of a lane's thread in messages."""
        block, thread = divmod(lane, self.lanes_per_block)
        return f"thread {_axes(thread, self.block)} of {self.block_name(block)}"


def _axes(number: int, sides: tuple[int, int, int]) -> str:
    return f"({number % sides[0]}, {number // sides[0] % sides[1]}, {number // (sides[0] * sides[1])})"
