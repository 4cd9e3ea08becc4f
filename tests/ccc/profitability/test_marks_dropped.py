"""A loop of which some marked code is left alone is compiled again without those marks: the profile then counts that
code to what is around it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cccopt
from cccopt.ccc.profitability.profile import write
from cccopt.driver import marked_ptx
from cccopt.harness.workload import Launch
from cccopt.region_profiles import profile_of

# One lane in 16 takes the path. The loop in it makes as many inner iterations in all lanes, so its mark gains nothing.
KERNEL = """\
extern "C" __global__ void __launch_bounds__(64) k(int n, const unsigned* data, unsigned* out) {
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += 64) {
    unsigned x = data[i];
#pragma ccc if
    if (x % 16 == 0) {
#pragma ccc while
      for (int j = 0; j < 40 + (int)(x >> 31); ++j) x = (x * 747796405u + 2891336453u) ^ (x >> 7);
      out[i] = x;
    }
  }
}
"""


@pytest.mark.nvcc
def test_a_path_pays_by_a_loop_in_it_whose_mark_is_dropped(tmp_path: Path) -> None:
    source, profile = tmp_path / "k.cu", tmp_path / "k.json"
    source.write_text(KERNEL)
    data = np.random.default_rng(1).integers(0, 1 << 30, 64 * 60).astype(np.uint32)
    launch = Launch("k", (1, 1, 1), (64, 1, 1), (np.int32(data.size), data, np.zeros_like(data)))
    write(profile, profile_of(marked_ptx(source), [launch]))
    report = cccopt.compile(source, ccc="auto", profile=profile).report
    regions = [region for unit in report["units"] for region in unit["regions"]]
    assert {r["kind"]: r["outcome"] for r in regions} == {
        "for": "rewritten",
        "if": "rewritten",
        "while": "declined",
    }
    (loop,) = (r for r in regions if r["kind"] == "for")
    assert loop["cost"]["gain"] > 3
