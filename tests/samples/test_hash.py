"""Cuckoo hashing: `check` and the kernel that looks keys up on tables made here, both programs against them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

from cccopt.emulator import emulate
from cccopt.harness import workload
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings
from tests.samples.peers import plain_and_peer, ptx_of

PAIRS, SEED = 900, 5


def hash_sample() -> ModuleType:
    return cast(ModuleType, workload.load("hash").workload)


def key_of(pair: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return np.array([pair >> 32], np.uint32)


def state() -> dict[str, Any]:
    """A state with a right table, made one pair after the other, the last pair aside."""
    sample = hash_sample()
    made = workload.fresh_state(sample.build(PAIRS, 1, SEED))
    made["input"] = sample.pairs_of(PAIRS, SEED)
    table, stash = made["table"], made["stash"]
    for number in made["input"][:-1]:
        pair, function = int(number), 0
        while pair:
            slot = int(sample.slots_of(key_of(pair), len(table))[function, 0])
            pair, table[slot] = int(table[slot]), pair
            if pair:
                function = (list(sample.slots_of(key_of(pair), len(table))[:, 0]).index(slot) + 1) % 4
    stash[0], made["stashed"][0] = made["input"][-1], 1
    for variant in ("while", "recursive"):
        made[f"found {variant}"][:] = PAIRS
    return dict(made)


def wrong(result: Mapping[str, Any]) -> str:
    sample = hash_sample()
    return str(sample.check(result, sample.reference(result)))


def test_keys_are_distinct_and_none_is_that_of_an_empty_slot() -> None:
    for seed in (0, 1, 2**32 - 1):
        pairs = hash_sample().pairs_of(100_000, seed)
        assert np.unique(pairs >> np.uint64(32)).size == 100_000
        assert (pairs >> np.uint64(32)).min() > 0


def test_check_takes_a_right_table_and_finds_what_is_wrong() -> None:
    right = state()
    assert wrong(right) == ""
    for variant in ("while", "recursive"):
        lost = {**right, f"found {variant}": np.array([PAIRS - 1, PAIRS], np.uint32)}
        assert wrong(lost) == f"{variant}: of 900 pairs 899 are found exactly once, and 900 are stored"
        assert hash_sample().check(lost, {}) == wrong(lost)
    table = right["table"]
    used, free = np.flatnonzero(table), np.flatnonzero(table == 0)
    other = table.copy()
    other[used[0]] += np.uint64(1)
    assert "do not hold the pairs" in wrong({**right, "table": other})
    slots = hash_sample().slots_of(key_of(int(table[used[0]])), len(table))
    other = table.copy()
    strange = next(slot for slot in free if slot not in slots)
    other[[used[0], strange]] = other[[strange, used[0]]]
    assert wrong({**right, "table": other}) == f"slot {strange} holds a pair that belongs elsewhere"


@pytest.mark.nvcc
def test_looking_up_counts_what_is_lost_doubled_and_foreign(tmp_path: Path) -> None:
    ptx = ptx_of(workload.load("hash").source, tmp_path)
    right = state()
    table, stash = right["table"], right["stash"]

    def found(table: Any, stashed: int = 1) -> list[int]:
        counts = np.zeros(2, np.uint32)
        arguments = (PAIRS, right["input"], len(table), table, stash, np.array([stashed], np.uint32), counts)
        emulate(ptx, "look_up", grid=1, block=256, args=arguments)
        return [int(count) for count in counts]

    assert found(table) == [PAIRS, PAIRS]
    assert found(table, stashed=0) == [PAIRS - 1, PAIRS - 1]
    used = np.flatnonzero(table)
    slots = hash_sample().slots_of((table[used] >> np.uint64(32)).astype(np.uint32), len(table))
    lost, doubled, foreign = table.copy(), table.copy(), table.copy()
    lost[used[0]] = 0
    assert found(lost) == [PAIRS - 1, PAIRS - 1]
    place = next((i, int(s)) for i, s in enumerate(slots[1]) if table[int(s)] == 0)
    doubled[place[1]] = table[used[place[0]]]
    assert found(doubled) == [PAIRS - 1, PAIRS + 1]
    foreign[used[0]] ^= np.uint64(1)
    assert found(foreign) == [PAIRS - 1, PAIRS]


@pytest.mark.nvcc
def test_program_and_peer_are_right_and_the_peer_is_fuller(tmp_path: Path, repository: Path) -> None:
    plain, peer = plain_and_peer(workload.load("hash"), repository, tmp_path)
    assert (plain.wrong, peer.wrong) == ("", "")
    assert [launch.label for launch in peer.launches] == ["while", "recursive"]
    for before, after in zip(plain.launches, peer.launches, strict=True):
        assert after.counts.warp_efficiency > 3 * before.counts.warp_efficiency
        assert 2 * after.counts.warp_instructions < before.counts.warp_instructions


@pytest.mark.gpu
@pytest.mark.nvcc
@pytest.mark.parametrize("mode", ["off", "always"])
def test_program_finds_every_key_once(tmp_path: Path, mode: str) -> None:
    program = tmp_path / "hash"
    source = workload.load("hash").source
    done = run_nvcc(["-O3", "-arch=native", str(source), "-o", str(program)], Settings(mode), capture=True)
    assert done.status == 0, done.errors
    printed = subprocess.run([program, "90000", "3"], check=True, capture_output=True, text=True).stdout
    for line, variant in zip(printed.splitlines(), ("while", "recursive"), strict=True):
        assert line.startswith(f"{variant}: pairs 90000 slots 100000 found once 90000 stored 90000 aside ")
