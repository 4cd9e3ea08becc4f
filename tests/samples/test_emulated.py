"""The samples through the whole way: ccc-nvcc's builds on the emulator, checked against numpy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cccopt.harness.bench import MeasureOptions, measure
from cccopt.harness.choices import BuildName
from cccopt.harness.workload import Sample, load
from tests.samples.peers import plain_and_peer

pytestmark = pytest.mark.nvcc


def without(pragma: str, folder: Path) -> Sample:
    """BFS with one of its annotations taken out; the line stays, so that numbers do."""
    sample = load("bfs")
    source = folder / "bfs.cu"
    lines = sample.source.read_text().split("\n")
    assert lines.count(pragma) == 1
    source.write_text("\n".join("" if line == pragma else line for line in lines))
    shutil.copy(sample.source.with_name("graph.cuh"), folder)
    return Sample("bfs", source, sample.workload)


@pytest.mark.parametrize(
    ("removed", "paths"),
    [(None, 2), ("#pragma ccc for variable", 1), ("#pragma ccc if", 1)],
    ids=["nested", "outer if alone", "inner loop alone"],
)
def test_bfs_is_right_and_fuller(removed: str | None, paths: int, tmp_path: Path) -> None:
    sample = load("bfs") if removed is None else without(removed, tmp_path)
    measurement = measure(sample, MeasureOptions(size="small", marked=removed is None))
    assert measurement.right
    contexts = [r.context_bytes for r in measurement.regions if r.context_bytes is not None]
    assert len(contexts) == paths
    assert all(size > 0 for size in contexts)
    before, after = measurement.build(BuildName.PLAIN), measurement.build(BuildName.CCC)
    ran = {(phase.region, phase.name): phase.warps for phase in after.phases}
    assert ran[1, "whole"] == 8 * len(after.launches)
    assert ran.get((1, "original"), 0) == 0
    phases = {name for _, name in ran}
    assert phases >= ({"expand", "trip"} if removed == "#pragma ccc if" else {"push", "take", "drain"})
    assert ("expand" in phases) == (removed != "#pragma ccc for variable")
    assert min(warps for (region, _), warps in ran.items() if region > 1) > 0
    assert [launch.label for launch in before.launches] == [launch.label for launch in after.launches]
    assert before.counts.useful_lanes == before.counts.active_lanes
    assert after.counts.useful_lanes < after.counts.active_lanes
    largest = max(range(len(before.launches)), key=lambda i: before.launches[i].counts.warp_instructions)
    old, new = before.launches[largest].counts, after.launches[largest].counts
    assert new.useful_efficiency > old.useful_efficiency


def test_sensitivity_gains_on_a_long_rare_path_and_loses_on_a_short_common_one() -> None:
    measurement = measure(load("sensitivity"), MeasureOptions(size="small"))
    assert measurement.right
    before, after = (
        {launch.label: launch.counts for launch in measurement.build(name).launches}
        for name in (BuildName.PLAIN, BuildName.CCC)
    )
    assert 2 * after["N=80 k=4"].warp_instructions <= before["N=80 k=4"].warp_instructions
    assert after["N=5 k=16"].warp_instructions > before["N=5 k=16"].warp_instructions
    assert measurement.build(BuildName.MARKED).counts.active_lanes > 0
    shared = {
        resources.kernel: resources.shared_bytes for resources in measurement.build(BuildName.CCC).resources
    }
    assert set(shared) == {"path_80", "path_5"}
    assert all(size > 0 for size in shared.values())


def test_sensitivity_by_hand_is_right_and_fuller(tmp_path: Path, repository: Path) -> None:
    plain, peer = plain_and_peer(load("sensitivity"), repository, tmp_path)
    assert (plain.wrong, peer.wrong) == ("", "")
    assert peer.counts.warp_efficiency > 0.85 > 3 * plain.counts.warp_efficiency
