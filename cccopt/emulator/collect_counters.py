"""Collect a machine's tallies in a `Profile`."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from cccopt.emulator.launch_counters import AccessCount, BranchCount, IssueCount, Profile
from cccopt.emulator.machine import Machine
from cccopt.emulator.pieces import PieceEnd


def collected(machine: Machine) -> Profile:
    """The counters of a finished launch."""
    issues: dict[tuple[str, int], IssueCount] = defaultdict(IssueCount)
    by_line: dict[tuple[str, int], IssueCount] = defaultdict(IssueCount)
    by_branch: dict[tuple[str, int], BranchCount] = defaultdict(BranchCount)
    by_label: dict[tuple[str, str], IssueCount] = defaultdict(IssueCount)
    histogram = np.zeros(33, np.int64)
    total, overhead = IssueCount(), IssueCount()
    for piece, tally in zip(machine.pieces, machine.tallies, strict=True):
        if not tally.fragments:
            continue
        if piece.label is not None:
            by_label[piece.function, piece.label] += IssueCount(tally.fragments, tally.lanes, tally.lanes)
        for item in piece.counted:
            off = machine.off[item.function, item.statement]
            if piece.end is PieceEnd.BRANCH and item is piece.ending:
                off = tally.lanes - tally.taken
            count = IssueCount(tally.fragments, tally.lanes, tally.lanes - off)
            key = (item.function, item.statement)
            issues[key] += count
            by_line[machine.places.line(*key)] += count
            total += count
            if item.overhead:
                overhead += count
        histogram += tally.histogram * len(piece.counted)
        is_branch = piece.end in (PieceEnd.BRANCH, PieceEnd.INDEXED) and piece.ending is not None
        if is_branch and piece.ending is not None:
            by_branch[piece.ending.function, piece.ending.statement] += BranchCount(
                tally.fragments, tally.parted, tally.lanes, tally.taken, tuple(tally.jumped.tolist())
            )
    accesses = machine.accesses()
    in_global = [a for a in accesses if a.space in ("global", "generic")]
    by_access: dict[tuple[str, int], AccessCount] = defaultdict(AccessCount)
    for a in in_global:
        if a.accesses:
            item = a.instruction.item
            by_access[item.function, item.statement] += AccessCount(a.accesses, a.sectors)
    in_shared = [a for a in accesses if a.space == "shared"]
    return Profile(
        kernel=machine.kernel.name,
        launches=1,
        total=total,
        overhead=overhead,
        issues=dict(issues),
        by_line=dict(by_line),
        by_branch=dict(by_branch),
        by_label=dict(by_label),
        active_lanes_histogram=tuple(histogram.tolist()),
        global_accesses=sum(a.accesses for a in in_global),
        global_transactions=sum(a.sectors for a in in_global),
        shared_accesses=sum(a.accesses for a in in_shared),
        shared_bank_conflicts=sum(a.conflicts for a in in_shared),
        steps=machine.steps,
        by_access=dict(by_access),
    )
