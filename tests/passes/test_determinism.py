"""The output is a function of the input: not of the order in which Python's sets happen to hold names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import cccopt
from tests.kernels.generators.kernels import from_seed
for seed in range(4):
    print(cccopt.transform(from_seed(seed).ptx, ccc="always").ptx)
"""


def test_rewritten_ptx_does_not_depend_on_hashes() -> None:
    outputs = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
