"""What a profile hands on of sectors and times: a loop's part of its kernel's."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cccopt.ccc.profitability.elapsed import Elapsed
from cccopt.ccc.profitability.profile import RegionProfile, RunProfile, as_text, read
from cccopt.ccc.profitability.region_counts import measure
from cccopt.emulator import Program
from tests.ccc.profitability.test_decision import LONG, decided, kernel, module, path, rewritten

TEXT = module(kernel(path(2, LONG)))


def measured(
    sectors: float | None = None, elapsed: float | None = None, taken: int = 4, cycles: float = 0.2
) -> RunProfile:
    program = Program(TEXT)
    run = program.launch("k", 1, 64, [np.zeros(64, np.uint32), 64 * 40, taken])
    return measure(
        program.module,
        run.issues,
        None if sectors is None else {"k": sectors},
        None if elapsed is None else {"k": Elapsed(elapsed, cycles * elapsed)},
    )


def test_a_loop_has_its_part_of_the_sectors_that_were_counted() -> None:
    loop = measured(sectors=1000.0).functions["k"][1]
    assert loop.sectors == 1000.0  # no access is outside of it
    assert measured(sectors=0.0).functions["k"][1].sectors == 0.0
    assert measured().functions["k"][1].sectors > 0  # about as many as there are lanes


def test_a_loop_has_its_part_of_the_time() -> None:
    region = measured(elapsed=1000.0).functions["k"]
    assert 950 < region[1].elapsed < 1000  # by issue slots: little is outside of it
    assert region[1].resident == pytest.approx(0.2 * region[1].elapsed)
    assert region[2].elapsed == 0.0
    assert measured().functions["k"][1].elapsed == 0.0


def test_times_add_up_if_all_are_known() -> None:
    timed, untimed = measured(elapsed=1000.0), measured()
    loop = timed.functions["k"][1]
    assert (timed + timed).functions["k"][1].elapsed == 2 * loop.elapsed
    assert (timed + untimed).functions["k"][1].elapsed == 0.0
    assert (untimed + timed).functions["k"][1] == loop.untimed() + loop.untimed()
    never = RegionProfile("for")
    assert (loop + never).elapsed == (never + loop).elapsed == loop.elapsed


def test_files_of_earlier_versions_have_no_times(tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    text = as_text(measured())
    assert '"elapsed": 0.0' in text
    assert '"resident": 0.0' in text
    file.write_text(re.sub(r',\s+"(elapsed|resident)": 0.0', "", text))
    assert "elapsed" not in file.read_text()
    assert read(file) == measured()


@pytest.mark.parametrize(
    ("slots_in_time", "cycles", "paths"),
    [(1.05, 4.0, {1, 2}), (50.0, 0.2, {1, 2}), (50.0, 20.0, set())],
    ids=["it issues", "it waits", "a few slow warps"],
)
def test_whether_a_long_path_pays(slots_in_time: float, cycles: float, paths: set[int]) -> None:
    untimed = measured(taken=1)
    issued = sum(region.issued for region in untimed.functions["k"].values())
    found = decided(TEXT, profile=measured(None, issued * slots_in_time, 1, cycles))
    assert rewritten(found) == paths
    cost = found.regions[0].cost
    assert cost is not None
    assert cost.before is not None
    assert cost.after is not None
    waits = cost.before.waiting > cost.before.code
    assert waits == (slots_in_time > 2)
    assert (cost.after.waiting < cost.before.waiting) == bool(paths)


def test_what_was_not_timed_does_not_wait() -> None:
    (loop, _) = decided(TEXT, profile=measured()).regions
    assert loop.cost is not None
    assert loop.cost.before is not None
    assert loop.cost.before == replace(loop.cost.before, waiting=0.0)


def test_the_code_of_regions_without_marks_is_that_of_what_is_around_them() -> None:
    found = RunProfile(
        {
            "k": {
                1: RegionProfile("for", warps=10, lanes=320, issued=100.0),
                2: RegionProfile("if", warps=10, lanes=80, issued=50.0, packed=20.0),
                3: RegionProfile("while", warps=40, lanes=200, issued=400.0, packed=70.0),
                4: RegionProfile("if", warps=5, lanes=5, issued=7.0, packed=1.0),
            }
        }
    )
    parents = {1: None, 2: 1, 3: 2, 4: 1}
    inner = found.without({3}, parents).functions["k"]
    assert inner.keys() == {1, 2, 4}
    # A warp runs 45 slots each time it comes to the path, and two and a half full warps come there.
    assert (inner[2].issued, inner[2].packed) == (450.0, 20.0 + 400.0 / 4)
    assert inner[1] == found.functions["k"][1]
    both = found.without({2, 3}, parents).functions["k"]
    assert (both[1].issued, both[1].packed) == (550.0, 0.0)
    assert found.without({3, 4}, parents).functions["k"][1].issued == 107.0
    assert found.without((), parents) == found
    assert not found.without({1, 2, 3, 4}, parents).functions["k"]
