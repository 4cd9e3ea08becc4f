"""What one warp of a launch issued, instruction by instruction, for drawings (`bench/figures.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cccopt.emulator.groups import LaneGroup
from cccopt.emulator.pieces import Piece


@dataclass
class Trace:
    """What one warp issued: pass a `Trace` to `Program.launch`, which fills it.

    Attributes:
        warp: The warp to watch. Warps are numbered across all blocks of the grid; each block begins with a
            new warp.
        steps: The function, the index of the statement in its body and the mask of active lanes of each warp
            instruction, in order.
    """

    warp: int = 0
    steps: list[tuple[str, int, int]] = field(default_factory=list)

    def record(self, piece: Piece, group: LaneGroup) -> None:
        """Records that ``group`` passes through ``piece``; parts of the warp that run separately are separate steps."""
        here = (group.ix >> 5) == self.warp
        lanes, labels = group.ix[here], group.lab[group.ix[here]]
        for label in dict.fromkeys(labels.tolist()):
            bits = np.uint64(1) << (lanes[labels == label] & 31).astype(np.uint64)
            mask = int(np.bitwise_or.reduce(bits))
            self.steps += ((item.function, item.statement, mask) for item in piece.counted)
