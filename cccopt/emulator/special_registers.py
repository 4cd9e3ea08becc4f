"""Special registers that keep their values during a launch (PTX ISA 10)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cccopt.emulator.semantics import Array
from cccopt.emulator.shape import Shape

_WIDE = frozenset({"%gridid"})
"""The special registers of 64 bits."""


def special_registers(shape: Shape, static_shared: int, shared: int) -> dict[str, Array]:
    """The values, one per lane, for blocks with ``shared`` bytes of shared memory, of which the kernel declares
    ``static_shared``.
    """
    lane = np.arange(shape.lanes)
    block, thread = lane // shape.lanes_per_block, lane % shape.lanes_per_block
    found: dict[str, Any] = {}
    for name, number, sides in (("tid", thread, shape.block), ("ctaid", block, shape.grid)):
        found[f"%{name}.x"] = number % sides[0]
        found[f"%{name}.y"] = number // sides[0] % sides[1]
        found[f"%{name}.z"] = number // (sides[0] * sides[1])
    for name, sides in (("ntid", shape.block), ("nctaid", shape.grid)):
        for axis, side in zip("xyz", sides, strict=True):
            found[f"%{name}.{axis}"] = np.full(shape.lanes, side)
    in_warp, one = lane & 31, np.int64(1)
    found |= {
        "%laneid": in_warp,
        "%warpid": thread >> 5,
        "%nwarpid": np.full(shape.lanes, shape.warps),
        "%smid": block,
        "%nsmid": np.full(shape.lanes, shape.blocks),
        "%gridid": np.zeros(shape.lanes),
        "WARP_SZ": np.full(shape.lanes, 32),
        "%lanemask_eq": one << in_warp,
        "%lanemask_lt": (one << in_warp) - 1,
        "%lanemask_le": (one << (in_warp + 1)) - 1,
        "%lanemask_gt": 0xFFFFFFFF ^ ((one << (in_warp + 1)) - 1),
        "%lanemask_ge": 0xFFFFFFFF ^ ((one << in_warp) - 1),
        "%dynamic_smem_size": np.full(shape.lanes, shared - static_shared),
        "%total_smem_size": np.full(shape.lanes, shared),
    }
    return {
        name: np.asarray(v).astype(np.uint64 if name in _WIDE else np.uint32) for name, v in found.items()
    }


KEPT = frozenset(special_registers(Shape((1, 1, 1), (1, 1, 1)), 0, 0))
"""The names of those that have a value."""
