"""Kernels that break a naive rewrite: each is rewritten and gives the same bytes, or is refused with its reason.

The sources are `cuda/awkward_*.cu`; both dialects of nvcc's output are read (sm_90: NVVM 7, sm_100: NVVM 20).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from cccopt.ccc.outcome.refusal import Refusal
from tests.kernels.running import CUDA, FORMS, Arguments, Launch, compare, compiled, marked, only, rewritten

pytestmark = pytest.mark.nvcc

ARCHITECTURES = ("sm_90", "sm_100")
Make = Callable[[Launch], Arguments]
Buffer = np.ndarray[Any, np.dtype[Any]]


def draw() -> np.random.Generator:
    return np.random.default_rng(7)


def floats(size: int, low: float = 0.0, high: float = 1.0) -> Buffer:
    return draw().uniform(low, high, size).astype(np.float32)


def integers(size: int, low: int, high: int) -> Buffer:
    return draw().integers(low, high, size).astype(np.int32)


def zeros(size: int, kind: type[np.generic] = np.int32) -> Buffer:
    return np.zeros(size, kind)


def strided(
    source: Callable[[int], Buffer], kind: type[np.generic] = np.int32, outputs: int = 1, width: int = 1
) -> Make:
    """Arguments ``n, a, out...`` of a grid-stride loop; some lanes have one trip less than others."""

    def make(launch: Launch) -> Arguments:
        n = launch.uneven
        return [n, source(n), *(zeros(n * width, kind) for _ in range(outputs))]

    return make


def columns(
    source: Callable[[int], Buffer],
    kind: type[np.generic] = np.int32,
    outputs: int = 1,
    more: tuple[int, ...] = (),
) -> Make:
    """Arguments ``trips, a, out..., n`` of a loop over the rows of a matrix with a column a thread."""

    def make(launch: Launch) -> Arguments:
        n = launch.threads
        outs = [zeros(launch.trips * n, kind) for _ in range(outputs)]
        return [launch.trips, source(launch.trips * n), *outs, n, *more]

    return make


def odd(size: int) -> Buffer:
    """Numbers a third of which are odd."""
    values = integers(size, 0, 1 << 12) & ~1
    return (values | (integers(size, 0, 3) == 0)).astype(np.int32)


def rooted(size: int) -> Buffer:
    return integers(size, -3, 200)


def both_conditions(launch: Launch) -> Arguments:
    n = launch.uneven
    return [n, integers(n, 0, 12), integers(16, 0, 20), zeros(n)]


def exits(launch: Launch) -> Arguments:
    n = launch.threads
    size = n * launch.trips
    return [launch.trips, integers(size, 5, 40), zeros(size), zeros(size), n]


def unsigned(parameter: int, width: int = 1) -> Make:
    def make(launch: Launch) -> Arguments:
        n = launch.uneven
        return [n, parameter, integers(n, 0, 1 << 20).astype(np.uint32), zeros(n * width + 64, np.uint32)]

    return make


def no_trips(launch: Launch) -> Arguments:
    n = launch.threads * 2 + 1
    return [n, 9, integers(n, 0, 1 << 20).astype(np.uint32), zeros(launch.threads * 20, np.uint32)]


def pointers(launch: Launch) -> Arguments:
    size = launch.threads * launch.trips
    return [
        launch.trips,
        floats(size, -1, 1),
        floats(size)[::-1].copy(),
        zeros(size, np.float32),
        zeros(size, np.float32),
    ]


def advanced(launch: Launch) -> Arguments:
    trips, a, out, n = columns(odd)(launch)
    return [trips, a, np.concatenate([out, zeros(n)]), n]


def graph(launch: Launch) -> Arguments:
    n = launch.uneven
    degrees = integers(n, 0, 9) * (integers(n, 0, 4) > 0)
    row = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32)
    level = integers(n, -1, 2)
    return [n, row, integers(int(row[-1]) + 1, 0, n), level, level.copy(), 1]


def rows(launch: Launch) -> Arguments:
    n = launch.threads * launch.trips
    row = np.concatenate([[0], np.cumsum(integers(n, 0, 30))]).astype(np.int32)
    return [n, row, integers(int(row[-1]) + 1, 0, 12), zeros(int(row[-1]) + 1)]


def two_inputs(launch: Launch) -> Arguments:
    n = launch.uneven
    return [n, floats(n), floats(n)[::-1].copy(), zeros(2 * n, np.float32)]


def hungry(launch: Launch) -> Arguments:
    n = launch.threads
    return [floats(n * launch.trips), zeros(n * launch.trips + n, np.float32), n, launch.trips]


def called(launch: Launch) -> Arguments:
    n = launch.threads
    size = n * launch.trips
    return [launch.trips, odd(size + 1), zeros(size), zeros(n), n]


ROWS = (Launch(1, 64, 9), Launch(2, 33), Launch(1, 1, 3))
"""Kernels that number their threads along x alone get no other blocks."""
FLAT = (Launch(1, 64, 9), Launch(1, (16, 5), 6), Launch(1, (3, 11), 4))
"""Kernels that number the threads of one block."""
ONE_BLOCK = (Launch(1, 64, 9), Launch(1, 33))
WHOLE = frozenset({"whole", "push", "take", "drain"})


@dataclass(frozen=True)
class Rewritten:
    """Rewritten, and the same results in all ``launches``. ``ran`` are phases that must run in each of ``forms``."""

    make: Make
    launches: tuple[Launch, ...] = ROWS
    ran: frozenset[str] = WHOLE
    forms: tuple[str, ...] = FORMS


@dataclass(frozen=True)
class Refused:
    """Refused with ``code`` at the first line of the kernel that holds ``at``, its help saying ``help``."""

    code: str
    at: str
    help: str = ""


Expected = Rewritten | Refused
FLOW: dict[str, Expected] = {
    "basic": Rewritten(strided(floats, np.float32)),
    "live_out": Rewritten(strided(floats, np.float32)),
    "both_conditions": Rewritten(both_conditions),
    "uniform_counter": Rewritten(columns(odd)),
    "jumps_then_update": Refused("CCC036", "if (v & 1)"),
    "jumps_ahead": Rewritten(exits),
    "returns_ahead": Rewritten(columns(rooted)),
    "continue_past_the_rest": Refused("CCC032", "if (v & 1)"),
    "continue_as_end": Rewritten(strided(lambda n: integers(n, 70, 84))),
    "continue_ahead": Rewritten(strided(odd)),
    "first_trip": Rewritten(columns(odd)),
    "unswitched": Rewritten(columns(odd, more=(1,))),
    "inlined_twice": Rewritten(strided(lambda n: integers(n, 0, 1 << 12))),
    "merged_ends": Rewritten(strided(lambda n: integers(n, 0, 1 << 10))),
    "both_arms": Rewritten(strided(lambda n: integers(n, 0, 1 << 8), outputs=2)),
    "three_of_four_cases": Rewritten(strided(lambda n: integers(n, 0, 1 << 8), outputs=2)),
    "unmarked_between": Refused("CCC045", "if (v & 8)"),
    "divergent_entry": Rewritten(unsigned(9), ran=frozenset({"original"})),
    "no_trips": Rewritten(no_trips, FLAT, forms=("auto", "idle lanes")),
}
VALUES: dict[str, Expected] = {
    "pointers": Rewritten(pointers),
    "neighbours": Rewritten(graph),
    "only_variable": Rewritten(graph),
    "bound_read_again": Rewritten(graph),
    "bound_of_marked_loop": Refused(
        "CCC036",
        "if (a[k] > 3)",
        "load the value into a local variable before the loop if it does not change there",
    ),
    "bound_in_local": Rewritten(rows, (Launch(1, 64, 1), Launch(2, 33, 1)), forms=("auto", "idle lanes")),
    "local_array": Refused("CCC042", "if (v & 1)"),
    "local_array_in_path": Rewritten(columns(odd)),
    "reduction": Refused("CCC035", "if (v > 0.5f)", "atomicAdd"),
    "advanced_ahead": Rewritten(advanced),
    "sunk": Rewritten(two_inputs),
    "shared_load_independent": Rewritten(two_inputs),
    "tile": Refused("CCC038", "for (int k = 0"),
    "tile_counted": Refused("CCC038", "for (unsigned c = 0"),
    "scratch": Refused("CCC037", "if (v & 1)"),
    "scratch_in_loop": Refused("CCC037", "if ((hash32(v) & 31) < k)"),
    "read_back": Refused("CCC036", "if ((hash32(v) & 31) < k)"),
    "locked": Refused("CCC039", "if (a[i] & 8)"),
    "hungry": Rewritten(hungry, ONE_BLOCK),
}
CASES: dict[str, Expected] = {
    "case_blocks": Rewritten(strided(lambda n: integers(n, 0, 50), np.float32)),
    "fallthrough": Rewritten(strided(lambda n: integers(n, 0, 50), np.float32, outputs=2)),
    "fallthrough_value": Refused("CCC034", "{"),
    "else_alone": Rewritten(strided(lambda n: integers(n, 0, 50), np.float32)),
    "if_chain": Rewritten(strided(lambda n: integers(n, 0, 50), np.float32)),
    "twelve_cases": Rewritten(
        strided(lambda n: integers(n, 0, 14), np.float32), (Launch(1, 64, 24), Launch(2, 33))
    ),
    "count_behind": Rewritten(lambda launch: [*strided(lambda n: floats(n, 0, 200))(launch), 9]),
    "count_inside": Rewritten(lambda launch: [*strided(lambda n: floats(n, 0, 200))(launch), 9]),
    "calls": Rewritten(called),
    "calls_in_arms": Rewritten(called, ran=frozenset({"original"})),
}
FILES = {"awkward_flow": FLOW, "awkward_values": VALUES, "awkward_cases": CASES}
KERNELS = [(file, kernel) for file, kernels in FILES.items() for kernel in kernels]


def expected(file: str, kernel: str) -> Expected:
    return FILES[file][kernel]


def line_of(file: str, kernel: str, text: str) -> int:
    """The number of the first line that begins with ``text``, white space aside, after the kernel's name."""
    lines = (CUDA / f"{file}.cu").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if f" {kernel}(" in f" {line}")
    return next(i for i in range(start, len(lines)) if lines[i].strip().startswith(text)) + 1


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("file", "kernel"), KERNELS, ids=[kernel for _, kernel in KERNELS])
def test_rewritten_rightly_or_refused(file: str, kernel: str, arch: str) -> None:
    module = only(compiled(file, arch), kernel)
    match expected(file, kernel):
        case Rewritten(make, launches, phases, right_forms):
            forms = FORMS if arch == "sm_90" else FORMS[:1]
            ran = compare(module, kernel, make, launches, forms=forms, seeds=(1,) if arch == "sm_90" else ())
            for form in set(forms) & set(right_forms):
                counts = ran[form]
                assert phases <= {phase for phase, times in counts.items() if times}, (form, counts)
        case Refused(code, at, help):
            with pytest.raises(Refusal) as caught:
                rewritten(module, "split")
            (said,) = caught.value.diagnostics
            assert said.code == code
            assert said.place is not None
            assert said.place.position.line == line_of(file, kernel, at)
            assert said.place.file.endswith(f"{file}.cu")
            assert help in said.help


def test_a_refusal_shows_both_accesses() -> None:
    """At their CUDA lines, where the user asks for line tables."""
    with pytest.raises(Refusal) as caught:
        rewritten(only(marked(CUDA / "awkward_values.cu", "sm_90", "-lineinfo"), "read_back"), "split")
    (said,) = caught.value.diagnostics
    places = [place.position.line for _, place in said.notes]
    assert places == [line_of("awkward_values", "read_back", at) for at in ("out[i] = s;", "out[n + i] =")]
    assert [label.partition(":")[0] for label, _ in said.notes] == ["in the path", "after it"]


def test_a_load_that_path_and_rest_share() -> None:
    """NVVM 7 loads again for the code behind the path, so that two stores may meet; NVVM 20 hands the value on, and the
    store behind the path runs with the task."""
    with pytest.raises(Refusal) as caught:
        rewritten(only(compiled("awkward_values", "sm_90"), "shared_load"), "split")
    assert caught.value.diagnostics[0].code == "CCC036"
    ran = compare(only(compiled("awkward_values", "sm_100"), "shared_load"), "shared_load", two_inputs, ROWS)
    assert all(counts["push"] and counts["take"] and counts["drain"] for counts in ran.values())


def test_a_block_size_is_not_stated_where_the_program_states_none() -> None:
    """It would cap the registers of a kernel that needs many."""
    result = rewritten(only(compiled("awkward_values", "sm_90"), "hungry"))
    assert [r.code for r in result.remarks] == ["CCC052"]
    assert not any(f.directives for f in result.module.functions() if f.name == "hungry")
    assert max(r.threads for r in result.regions) == 1024
