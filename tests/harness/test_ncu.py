"""Nsight Compute's log: rows by metric, numbers with thousands separators, and what is said when there is nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from cccopt.harness import ncu
from cccopt.harness.result import Issues, Traffic

# As `ncu --csv --print-units base` of CUDA 13.0 writes them; host name and times left out.
PRELUDE = """==PROF== Connected to process 4242 (/usr/bin/python3.12)
==PROF== Disconnected from process 4242
"""
HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
)


def launch(number: int, kernel: str, instructions: str, active: str, on: str, *sectors: str) -> str:
    """The rows of a launch; ``sectors`` are those of loads, stores, reductions and atomic operations."""
    start = (
        f'"{number}","4242","python3.12","host","{kernel}","1","7","(256, 1, 1)","(528, 1, 1)","0","9.0",'
        '"Command line profiler metrics",'
    )
    return (
        f'{start}"smsp__inst_executed.sum","inst","{instructions}"\n'
        f'{start}"smsp__thread_inst_executed_per_inst_executed.ratio","","{active}"\n'
        f'{start}"smsp__thread_inst_executed_pred_on_per_inst_executed.ratio","","{on}"\n'
    ) + "".join(
        f'{start}"l1tex__t_sectors_pipe_lsu_mem_global_op_{operation}.sum","sector","{count}"\n'
        for operation, count in zip(("ld", "st", "red", "atom"), sectors, strict=False)
    )


LOG = (
    PRELUDE
    + HEADER
    + launch(0, "bfs(int, int, int *, const int *)", "1,000", "8", "4.5")
    + launch(1, "bfs(int, int, int *, const int *)", "3,000", "32", "31.5")
    + launch(2, "bfs(int, int, int *, const int *)", "500", "16", "n/a")
)


def test_sums_over_launches_are_weighted_by_instructions() -> None:
    found = ncu.counted(LOG, [("plain", "bfs"), ("plain", "bfs")])
    assert found.why == ""
    assert found.counts == {"plain": Issues(4000, 8 * 1000 + 32 * 3000, 4500 + 94500)}
    assert found.counts["plain"].warp_efficiency_pred_on == pytest.approx(99000 / 128000)
    apart = ncu.counted(LOG, [("plain", "bfs"), ("always", "bfs")])
    assert apart.counts["always"] == Issues(3000, 96000, 94500)


def test_logs_that_do_not_fit_are_no_counts() -> None:
    assert "do not match the 1 that" in ncu.counted(LOG, [("plain", "sssp")]).why
    assert "do not match the 4 that" in ncu.counted(LOG, [("plain", "bfs")] * 4).why
    assert "do not match the 0 that" in ncu.counted(LOG, []).why
    third = ncu.counted(LOG, [("plain", "bfs")] * 3)
    assert third.why.startswith(
        "ncu did not report all metrics of a launch; it reported smsp__inst_executed.sum"
    )
    assert not third.counts


def test_sectors_of_all_operations_are_added_up() -> None:
    kernel = "level_queue(int, const int *, unsigned long long *)"
    log = (
        PRELUDE
        + HEADER
        + launch(0, kernel, "1,000", "8", "4.5", "12,000", "300", "0", "20")
        + launch(1, kernel, "2,000", "16", "16", "100", "0", "5", "1")
    )
    shown = [("queue", "level_queue")] * 2
    found = ncu.counted(log, shown, metrics=ncu.TRAFFIC)
    assert found == ncu.Profiled({"queue": Traffic(3000, 40_000, 36_500, sectors=12_426)})
    # What was not asked for, and what was and is not there.
    assert ncu.counted(log, shown).why.startswith("ncu did not report all metrics")
    without = ncu.counted(LOG, [("plain", "bfs")] * 2, metrics=ncu.TRAFFIC)
    assert without.why.startswith(
        "ncu did not report all metrics of a launch; it reported smsp__inst_executed.sum"
    )


@pytest.mark.parametrize(
    ("log", "said", "why"),
    [
        ("", "", "ncu counted nothing: it printed nothing"),
        (PRELUDE, "", "Disconnected"),
        (PRELUDE, "==ERROR== The application returned an error code (1).\n", "an error code (1)"),
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "", "CAP_SYS_ADMIN"),
    ],
)
def test_reasons_are_told(log: str, said: str, why: str) -> None:
    found = ncu.counted(log, [("plain", "bfs")], said)
    assert why in found.why
    assert not found.counts


def test_without_the_program_there_are_no_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = ncu.profile(ncu.ProfiledRun("bfs", ["plain"], tmp_path, "small", 1), 1.0)
    assert found == ncu.Profiled(why="no ncu on PATH")
