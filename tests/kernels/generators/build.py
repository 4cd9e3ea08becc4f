"""What all parts of a kernel under construction share: parameters, buffers, sizes, markers, memory accesses."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.kernels.generators.code import Choices, Writer
from tests.kernels.generators.values import LETTERS, Scope, as_word, digest, source

BUFFERS = ("data", "plain", "paths", "rest", "tails", "final", "counters")
"""Pointer parameters: read-only words (``plain`` is read without ``.nc``), then what each part of an iteration
writes, a row an iteration; ``final`` has a row a thread, ``counters`` are for order-free atomics."""

SCALARS = {
    "n": "u32",
    "trips": "u32",
    "ua": "u32",
    "ub": "u32",
    "la": "u64",
    "fa": "f32",
    "da": "f64",
    "ha": "u16",
}
TYPES = {"u16": "b16", "u32": "b32", "u64": "b64", "f32": "f32", "f64": "f64"}

WORDS = 256  # of each read-only buffer
PLACES = 16  # 8-byte places of an iteration in `paths`, 4 for each path
ROW = {"paths": 8 * PLACES, "rest": 16, "tails": 32, "final": 64}
COUNTERS = 8  # words for each kind of atomic
ATOMICS = ("add.u32", "min.s32", "max.u32", "or.b32", "and.b32", "xor.b32", "max.s32")
COUNTER_BYTES = 4 * COUNTERS * len(ATOMICS)  # behind these, the results of reductions


def _reductions() -> dict[tuple[str, str], tuple[str | None, int]]:
    found: dict[tuple[str, str], tuple[str | None, int]] = {}
    for bits in (32, 64):
        ones, top = (1 << bits) - 1, 1 << (bits - 1)
        for type in (f"u{bits}", f"s{bits}"):
            least, largest = (0, ones) if type.startswith("u") else (top, top - 1)
            found["+", type] = f"add.u{bits}", 0
            found["min", type] = f"min.{type}", largest
            found["max", type] = f"max.{type}", least
        found["+", f"f{bits}"] = f"add.f{bits}", 0
        found["min", f"f{bits}"] = found["max", f"f{bits}"] = None, 0
        found["*", f"s{bits}"] = None, 1
        for sign, name, neutral in (("&", "and", ones), ("|", "or", 0), ("^", "xor", 0)):
            found[sign, f"b{bits}"] = f"{name}.b{bits}", neutral
    return found


REDUCTIONS = _reductions()
"""By operator and type: the end of the opcode of its atomic, if there is one, and the bits that results begin with."""
FLAG = COUNTER_BYTES + 8 * len(REDUCTIONS)
"""Where the flag is, after the results of reductions."""


@dataclass(frozen=True)
class Accumulator:
    """A register that iterations update by the operator ``sign`` on ``type``; ``first`` tells what it begins with."""

    register: str
    sign: str
    type: str
    first: str

    @property
    def bits(self) -> int:
        """The width of its values."""
        return int(self.type[1:])

    @property
    def floating(self) -> bool:
        """Whether its values are floating-point numbers."""
        return self.type.startswith("f")


_BEGINS = ("for.begin", "if.begin", "grid.begin", "recursive.begin")


@dataclass
class Site:
    """A marked path in the text: its region number, the counters of its loop's entries and of its tasks, whether it is
    one of at least three exclusive ones, and whether it is a counted loop whose trips may run in any order.
    """

    region: int
    entered: int
    tasks: int
    exclusive: bool = False
    counted: bool = False


@dataclass
class Build:
    """A kernel under construction.

    ``independent`` marks the loop as touching no memory twice in an iteration, which holds for all kernels here but
    not always provably; without it the code behind a path is `quiet`. ``left`` is what the stacks may still use, in
    bytes a thread. ``done`` is the label at the kernel's end, ``clauses`` stand in the loops' pragmas. ``together``
    tells that all lanes of whole warps make all trips together. ``uses`` names what pieces need outside of the loop,
    ``local`` is the path that uses local memory. ``exclusive`` asks
    for paths of `exclusive.exclusive` in each loop. ``recursive`` for calls of `recursive.recursion`, whose
    texts are ``functions``. ``sums`` are the accumulators of all loops. A ``blockwise`` kernel uses
    no shared memory: its blocks take turns.
    """

    ch: Choices
    w: Writer
    threads: int
    total: int
    trips: int
    independent: bool
    left: int
    done: str = ""
    together: bool = False
    clauses: str = ""
    exclusive: bool = False
    sums: list[Accumulator] = field(default_factory=list)
    blockwise: bool = False
    recursive: bool = False
    functions: list[str] = field(default_factory=list)
    local: tuple[int, tuple[str, int, int]] | None = None
    uses: set[str] = field(default_factory=set)
    sites: list[Site] = field(default_factory=list)
    regions: int = 0
    places: int = 0
    tails: int = 0
    entered: int = 0
    loops: int = 0

    @property
    def span(self) -> int:
        """Slots that one execution of a marked loop may use."""
        return self.trips * self.total

    def region(self) -> int:
        """A fresh region number."""
        self.regions += 1
        return self.regions

    def mark(self, event: str, region: int, flags: str = "") -> None:
        """A marker; begin markers carry a place, as the source modifier writes it."""
        place = f" line={region + 2}:1{flags} file=k.cu" if event in _BEGINS else ""
        self.w.mark(f"{event} {region}{place}")


def parameter(name: str) -> str:
    """The PTX name of a parameter."""
    return f"k_param_{name}"


def scalar(b: Build, name: str) -> tuple[str, str]:
    """Loads a scalar parameter here; its type and register."""
    type = TYPES[SCALARS[name]]
    return type, b.w.do(f"ld.param.{SCALARS[name]}", type, f"[{parameter(name)}]")


def pointer(b: Build, scope: Scope, buffer: str) -> str:
    """A register that points to ``buffer``: one that is there, or the parameter, converted here as nvcc does."""
    if buffer not in scope.pointers:
        raw = b.w.do("ld.param.u64", "b64", f"[{parameter(buffer)}]")
        scope.pointers[buffer] = b.w.do("cvta.to.global.u64", "b64", raw)
    return scope.pointers[buffer]


def element(b: Build, scope: Scope, buffer: str, index: str, size: int) -> str:
    """The address of element ``index`` (a register) of a buffer of elements of ``size`` bytes."""
    base = pointer(b, scope, buffer)
    return b.w.do("add.s64", "b64", base, b.w.do("mul.wide.u32", "b64", index, size))


def load(b: Build, scope: Scope) -> str:
    """Loads from a read-only buffer at a random index, through ``.nc`` or plainly."""
    ch, w = b.ch, b.w
    suffix, type, size = ch.pick(
        [("u32", "b32", 4), ("f32", "f32", 4), ("u16", "b16", 2), ("u64", "b64", 8), ("f64", "f64", 8)]
    )
    index = w.do("and.b32", "b32", source(ch, scope, w, "r"), WORDS * 4 // size - 1)
    if scope.quiet or ch.chance(50):
        address = element(b, scope, "data", index, size)
        return scope.add(type, w.do(f"ld.global.nc.{suffix}", type, f"[{address}]"), spare=True)
    address = element(b, scope, "plain", index, size)
    return scope.add(type, w.do(f"ld.global.{suffix}", type, f"[{address}]"), spare=True)


def store(b: Build, scope: Scope, index: str | None = None, most: int = 5) -> None:
    """Stores something to a place of this iteration; ``index`` (a register) chooses among the places."""
    ch, w = b.ch, b.w
    buffer, first, count = scope.place
    if buffer == "paths" and scope.rows is not None:
        row = scope.rows
    else:
        row = element(b, scope, buffer, scope.slot, ROW[buffer])
    offset = 8 * first
    if index is not None:
        chosen = w.do("and.b32", "b32", index, count - 1)
        row = w.do("add.s64", "b64", row, w.do("mul.wide.u32", "b64", chosen, 8))
    else:
        offset += 8 * ch.between(0, count - 1)
    letter, suffix = ch.pick([("r", ""), ("r", ""), ("d", "u64"), ("f", "f32"), ("g", "f64"), ("h", "u16")])
    known = scope.values.get(LETTERS[letter], [])
    if suffix and known:
        w.emit(f"st.global.{suffix} \t[{row}+{offset}], {ch.pick(known)}")
    else:
        w.emit(f"st.global.u32 \t[{row}+{offset}], {digest(ch, scope, w, most)}")


def atomic(b: Build, scope: Scope) -> None:
    """An order-free atomic on one of the shared counters, its result unused."""
    ch, w = b.ch, b.w
    kind = ch.number(len(ATOMICS))
    type, name = ch.pick(scope.names())
    value = as_word(w, type, name)
    index = w.do("and.b32", "b32", source(ch, scope, w, "r"), COUNTERS - 1)
    address = f"[{element(b, scope, 'counters', index, 4)}+{4 * COUNTERS * kind}]"
    # A loop over an `atom` outside of a path looks like a lock.
    if ch.chance(70) or not b.independent:
        w.emit(f"red.global.{ATOMICS[kind]} \t{address}, {value}")
    else:
        w.do(f"atom.global.{ATOMICS[kind]}", "b32", address, value)


def flag(b: Build, scope: Scope) -> None:
    """Sets the flag that all share, unless it is set: `if (!*flag) *flag = 1`."""
    ch, w = b.ch, b.w
    address = f"[{pointer(b, scope, 'counters')}+{FLAG}]"
    found = w.do("ld.global.u32", "b32", address)
    if ch.chance(50):
        w.emit(f"@{w.do('setp.eq.s32', 'pred', found, 0)} st.global.u32 \t{address}, 1")
        return
    after = w.label()
    w.emit(f"@{w.do('setp.ne.s32', 'pred', found, 0)} bra \t{after}")
    w.emit(f"st.global.u32 \t{address}, {w.do('mov.u32', 'b32', 1)}")
    w.place(after)
