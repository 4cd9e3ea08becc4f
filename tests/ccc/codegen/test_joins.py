"""Joins whose lanes come from several branches, by a kernel that once went wrong (a random one, kept as it was)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cccopt.emulator import Program
from cccopt.passes.pipeline import Options, run
from cccopt.ptx.parser import parse
from tests.kernels.running import PTX

# Two paths in one piece of converged code, the ends of the second leading past the first one's join several times.
SEVERAL_ENDS = (PTX / "several_ends.ptx").read_text()


def arguments() -> list[Any]:
    """Two inputs of random words, five outputs, and the kernel's numbers."""
    words = np.random.default_rng(7).integers(0, 1 << 32, (2, 4096), dtype=np.uint32)
    outputs = [np.zeros(1 << 20, np.uint32) for _ in range(5)]
    return [words[0], words[1], *outputs, 700, 9, 0x9E3779B9, 77, 0x123456789AB, 1.5, 2.25, 12345]


@pytest.mark.parametrize("form", ["auto", "split", "idle lanes"])
def test_several_ends_of_one_path_stay_together(form: str) -> None:
    results = []
    for module in (parse(SEVERAL_ENDS), run(parse(SEVERAL_ENDS), Options(mode="always", form=form)).module):
        args = arguments()
        Program(module).launch("k", 1, (4, 4, 4), args, shuffle=1)
        results.append([a.tobytes() for a in args if isinstance(a, np.ndarray)])
    assert results[0] == results[1]
    assert any(np.frombuffer(b, np.uint8).any() for b in results[1][2:])
