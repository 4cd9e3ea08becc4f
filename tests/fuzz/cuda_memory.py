"""The buffers of random kernels, whose each place is, and the statements that touch them.

An iteration of the marked loop has a number ``at`` of its own, a thread the number ``me``. All kernels have these
parameters:

    out      SLOTS words an iteration         map     4 words an iteration, their place found in data
    inner    ROWS x TURNS words an iteration, one for each inner iteration of a loop of tasks
    mine     4 words a thread                 count   a stretch for each atomic, shared by all
    flag     words that all set to one value  totals, sums, fsums, dsums, extremes: sums, when the loop is over
    reals    2 words an iteration: floats added up in a `for variable`
    ring     RING words an iteration, for the kernels of `natural_kernels`
    queue    PARTS queues or tables of `queue_length` items, whose order is a matter of time (`natural_queues`)

What a kernel may do with them is its `Mode`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from random import Random

import numpy as np

from tests.fuzz.cuda_arrays import Arrays
from tests.fuzz.cuda_values import Values
from tests.kernels.running import Arguments, Launch

SLOTS = 12
ROWS, TURNS = 2, 16
TRIPS = 3
"""Trips of each thread, where the head of the marked loop counts those."""
REPEATS = 2
"""How often a loop around the marked one may run."""
ITEMS = 97
RING = 64
PARTS = 4

ATOMICS = ("Add", "Max", "Min", "Xor", "And", "Or", "Sub")
"""Each has 16 words of ``count``: two of one operation commute, two of different ones do not."""

BUFFERS = (
    ("const unsigned*", "a"),
    ("const float*", "f"),
    ("unsigned*", "out"),
    ("unsigned*", "inner"),
    ("unsigned*", "map"),
    ("unsigned*", "mine"),
    ("unsigned*", "count"),
    ("unsigned*", "flag"),
    ("unsigned*", "totals"),
    ("unsigned long long*", "sums"),
    ("float*", "fsums"),
    ("double*", "dsums"),
    ("unsigned*", "extremes"),
    ("float*", "reals"),
    ("unsigned*", "ring"),
    ("unsigned long long*", "queue"),
)
LATER = ("ring", "queue")
"""Buffers that other kernels do without: they are `__restrict__` if all are, and no numbers are drawn for them."""
ACTUALS = ", ".join(("n", "trips", "items", *(name for _, name in BUFFERS)))
REORDERED = {"fsums": 1e-4, "dsums": 1e-11, "reals": 1e-4}
"""Buffers of sums that the clause `reduce` lets a rewrite add up in another order, and how much that may change."""


class Mode(Enum):
    """What the marked paths of a kernel and the rest of their iteration share."""

    APART = "apart"
    """Nothing: each store in the text has a place of its own, so that the kernel may say `independent`."""
    MEETING = "meeting"
    """The iteration's own memory, read and written anywhere in it: its order must be kept."""
    SCRATCH = "scratch"
    """Also memory of the thread, which its next iteration uses again: a rewrite must be refused, or right."""


def formals(restrict: Random | None) -> str:
    """The parameters; ``restrict`` draws which pointers are `__restrict__` (None: no pointer is)."""
    every = restrict is not None and restrict.random() < 0.75

    def drawn(name: str) -> bool:
        return restrict is not None and (every or (name not in LATER and restrict.random() < 0.4))

    some = [f"{type} {'__restrict__ ' if drawn(name) else ''}{name}" for type, name in BUFFERS]
    return ", ".join(("int n", "int trips", "unsigned items", *some))


def queue_length(launch: Launch) -> int:
    """How many items each part of ``queue`` has room for: 16 an iteration. A power of two."""
    return 16 << (launch.trips + 5 * launch.threads).bit_length()


def arguments(launch: Launch) -> Arguments:
    """What `formals` names, in its order, for a launch of which ``trips`` is n."""
    draw = np.random.default_rng(launch.trips)
    threads = launch.threads
    iterations = (max(launch.trips, threads * TRIPS) + 2 * threads + 1) * REPEATS
    count = np.zeros(16 * len(ATOMICS) + PARTS, np.uint32)
    for name in ("Min", "And"):
        count[16 * ATOMICS.index(name) :][:16] = 0xFFFFFFFF
    return [
        launch.trips,
        TRIPS,
        ITEMS,
        draw.integers(0, 1 << 32, ITEMS).astype(np.uint32),
        draw.uniform(0, 100, ITEMS).astype(np.float32),
        np.zeros(iterations * SLOTS, np.uint32),
        np.zeros(iterations * ROWS * TURNS, np.uint32),
        draw.integers(0, 1 << 32, iterations * 4).astype(np.uint32),
        np.zeros(threads * 4, np.uint32),
        count,
        np.zeros(8, np.uint32),
        draw.integers(0, 1 << 32, 8).astype(np.uint32),
        np.zeros(threads * 4, np.uint64),
        np.zeros(8 + threads * 4, np.float32),
        np.zeros(8 + threads * 4, np.float64),
        np.zeros(threads * 4, np.uint32),
        np.zeros(iterations * 2, np.float32),
        np.zeros(iterations * RING, np.uint32),
        np.zeros(PARTS * queue_length(launch), np.uint64),
    ]


class Memory:
    """Draws statements that touch memory, one line of CUDA each, as ``mode`` allows."""

    def __init__(self, random: Random, mode: Mode, *, shared: bool, arrays: Arrays) -> None:
        self.random = random
        self.arrays = arrays
        self.mode = mode
        self.slots = 0
        self.rows = 0
        self.shared = shared
        self.table = shared and random.random() < 0.25
        self.bins = shared and random.random() < 0.15
        self.scratch = mode is Mode.SCRATCH and shared and random.random() < 0.5

    def declarations(self, threads: int) -> list[str]:
        """Shared memory at the head of a kernel of at most ``threads`` threads a block; ends with a barrier."""
        lines = []
        if self.table:
            lines += ["__shared__ unsigned table[64];"]
            lines += ["for (unsigned q = linear; q < 64u; q += size) table[q] = hash32(q);"]
        if self.bins:
            lines += [
                "__shared__ unsigned bins[16];",
                "for (unsigned q = linear; q < 16u; q += size) bins[q] = q;",
            ]
        if self.scratch:
            lines += [f"__shared__ unsigned scratch[{4 * threads}];"]
            lines += ["for (unsigned q = 0; q < 4u; q++) scratch[q * size + linear] = 0u;"]
        return [*lines, "__syncthreads();"] if self.table or self.bins else lines

    def flush(self) -> list[str]:
        """What the end of the kernel does with shared memory."""
        if not self.bins:
            return []
        return [
            "__syncthreads();",
            "for (unsigned q = linear; q < 16u; q += size) atomicAdd(&count[q], bins[q]);",
        ]

    # --- statements ---

    def write(self, values: Values, turn: str | None) -> str:
        """A store or an atomic. ``turn`` numbers the inner iterations of the loop of tasks around it, below TURNS: None
        where there is none, empty where they have no number.
        """
        if self.arrays.wants():
            return self.arrays.write(values)
        kind = self.random.random()
        if self.mode is Mode.SCRATCH and kind < 0.5:
            return self._use_scratch(values)
        if self.mode is not Mode.APART and kind < 0.8:
            return self._meet(values, turn)
        if kind < 0.3:
            return self.atomic(values)
        if kind < 0.36:
            return self._set_flag(values)
        return self.keep(values.unsigned(), turn)

    def _set_flag(self, values: Values) -> str:
        """A store of the value that all store to a flag, or that store if the flag does not hold it."""
        place = f"flag[({values.unsigned(1)}) & 7u]" if self.random.random() < 0.5 else "flag[5]"
        test = self.random.choice(("", f"if ({place} == 0u) ", f"if ({place} != 77u) "))
        return f"{test}{place} = 77u;"

    def keep(self, value: str, turn: str | None) -> str:
        """A store to a place that nothing else in the text uses, as long as there is one; else an atomic."""
        if turn is None and self.slots < SLOTS - 4:
            self.slots += 1
            return self._slot(f"out[at * {SLOTS}u + {3 + self.slots}u]", value)
        if turn and self.rows < ROWS:
            self.rows += 1
            return f"inner[(at * {ROWS}u + {self.rows - 1}u) * {TURNS}u + ({turn})] = {value};"
        return f"atomicAdd(&count[at & 15u], {value});"

    def _slot(self, place: str, value: str) -> str:
        """A store to a word, or to a part of it, or to it and the next one."""
        kind = self.random.random()
        if kind < 0.06:
            return f"((unsigned char*)&{place})[{self.random.randrange(4)}] = (unsigned char)({value});"
        if kind < 0.12:
            return f"((unsigned short*)&{place})[{self.random.randrange(2)}] = (unsigned short)({value});"
        if kind < 0.2 and self.slots % 2 and self.slots < SLOTS - 4:
            self.slots += 1
            return f"*(uint2*)&{place} = make_uint2({value}, at);"
        return f"{place} = {value};"

    @contextmanager
    def without_own(self) -> Iterator[None]:
        """For the text of another function, which sees neither shared memory nor arrays of the kernel."""
        held = self.table, self.bins, self.scratch, self.arrays.open
        self.table = self.bins = self.scratch = self.arrays.open = False
        try:
            yield
        finally:
            self.table, self.bins, self.scratch, self.arrays.open = held

    def atomic(self, values: Values) -> str:
        """An atomic whose result nobody uses and that commutes with all that meet it."""
        place, value = values.unsigned(1), values.unsigned(1)
        if self.bins and self.random.random() < 0.5:
            return f"atomicAdd(&bins[({place}) & 15u], {value});"
        if self.mode is not Mode.SCRATCH and self.random.random() < 0.15:
            return f"atomicAdd(&mine[me * 4u + (({place}) & 3u)], {value});"
        name = self.random.choice((*ATOMICS, "Add", "Add"))
        # What is subtracted commutes with what is added.
        stretch = ATOMICS.index("Add" if name == "Sub" else name)
        return f"atomic{name}(&count[{16 * stretch}u + (({place}) & 15u)], {value});"

    def read(self, values: Values) -> str:
        """An expression of type unsigned that reads memory."""
        if self.arrays.wants():
            return self.arrays.read(values)
        kind = self.random.random()
        if self.table and kind < 0.3:
            return f"table[({values.unsigned(1)}) & 63u]"
        if self.scratch and kind < 0.5:
            return f"scratch[(({values.unsigned(1)}) & 3u) * size + linear]"
        if self.mode is Mode.SCRATCH and kind < 0.6:
            return f"mine[me * 4u + (({values.unsigned(1)}) & 3u)]"
        if self.mode is not Mode.APART:
            return self._place(values)
        return f"a[({values.unsigned(1)}) % items]"

    def _place(self, values: Values) -> str:
        """A place of the iteration's own that others of its accesses may use, too."""
        kind = self.random.random()
        if kind < 0.5:
            return f"map[at * 4u + (({values.unsigned(1)}) & 3u)]"
        if kind < 0.6:
            return f"map[at * 4u + {self.random.randrange(4)}u]"
        return f"out[at * {SLOTS}u + {self.random.randrange(4)}u]"

    def _meet(self, values: Values, turn: str | None) -> str:
        place, value = self._place(values), values.unsigned(1)
        if turn and self.random.random() < 0.2:
            row = f"inner[at * {ROWS * TURNS}u"
            return f"{row} + ({turn})] = {row} + (({turn}) + {self.random.choice((1, 15))}u & 15u)] * 3u + {value};"
        forms = (
            f"{place}++;",
            f"{place} = {value};",
            f"{place} = {value};",
            f"{place} = {self._place(values)} * 3u + {value};",
            f"{place} {self.random.choice(('+=', '-=', '^=', '|='))} {value};",
            f"{place} = {place} * 5u + {value};",
            f"atomicExch(&{place}, {value});",
            f"atomicCAS(&{place}, {value} & 1u, {value});",
            f"out[at * {SLOTS}u] = atomicAdd(&{place}, {value});",
            f"touch(map, at, {value});",
            f"map[at * 4u + 3u] = touch(map, at, {value});",
        )
        return self.random.choice(forms)

    def _use_scratch(self, values: Values) -> str:
        slot, value = f"(({values.unsigned(1)}) & 3u)", values.unsigned(1)
        place = f"mine[me * 4u + {slot}]"
        if self.scratch and self.random.random() < 0.7:
            place = f"scratch[{slot} * size + linear]"
        return self.random.choice((f"{place} = {value};", f"{place}++;", f"{place} += {value};"))
