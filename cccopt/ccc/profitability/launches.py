"""How a kernel was launched when it was timed: what decides how many of its blocks a GPU runs at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cccopt.ccc.profitability.flows import LANES


@dataclass(frozen=True, slots=True)
class Launches:
    """The launches of a kernel, on average: ``blocks`` of ``threads`` threads with ``registers`` each, and ``shared``
    bytes of shared memory for each block, static and dynamic, on a GPU with this many ``processors`` (multiprocessors).
    """

    processors: int
    blocks: float
    threads: int
    registers: int
    shared: int

    def waves(self, resident: int) -> int:
        """In how many waves the blocks of a launch run if a multiprocessor holds ``resident`` of them."""
        return max(math.ceil(self.blocks / (self.processors * resident)), 1)


def launches_in(run: Mapping[str, Any]) -> dict[str, Launches]:
    """The launches of each kernel that was timed, according to the content of a run's file
    (`cccopt.profiling.run_file`); none if it has those of several GPUs. Raises ValueError, KeyError or TypeError for
    data that is not of this layout.
    """
    hardware: Sequence[Mapping[str, Any]] = run.get("hardware", ())
    if len(hardware) != 1:
        return {}
    found: dict[str, Launches] = {}
    for function in run.get("functions", ()):
        number, warps, block = function.get("launches"), function.get("launched"), function.get("block")
        if number and warps and block and function.get("registers"):
            threads = math.prod(block)
            blocks = warps / number / -(-threads // LANES)
            found[str(function["name"])] = Launches(
                int(hardware[0]["processors"]),
                blocks,
                threads,
                int(function["registers"]),
                int(function["shared"] or 0) + int(function.get("dynamic_shared") or 0),
            )
    return found
