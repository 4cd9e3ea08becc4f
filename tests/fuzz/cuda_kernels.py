"""A seeded generator of annotated CUDA kernels with independent iterations, all with one signature (`arguments`).

Each iteration has a number ``at`` of its own and stores to its own slots alone, one for each store in the text, so that
every kernel may say `independent`; those that do not must be refused only where paths and the rest of their iteration
cannot be told apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np

from tests.fuzz.cuda_values import TYPES, Values
from tests.passes.running import Arguments, Launch

SLOTS = 24
"""Words of `out` that an iteration owns."""

_HEAD = """
__device__ __forceinline__ unsigned hash32(unsigned x) {
  x ^= x >> 16; x *= 0x7feb352dU; x ^= x >> 15; x *= 0x846ca68bU; return x ^ x >> 16;
}
__device__ __forceinline__ unsigned leaf(unsigned x) {
  unsigned r = x;
#pragma unroll 1
  for (unsigned q = 0; q < (x & 3u); q++) r = r * 3u + q;
  return r;
}
__device__ __noinline__ unsigned far(unsigned x, unsigned y) {
  unsigned r = y;
  for (unsigned q = 0; q < (x & 7u); q++) r = hash32(r) + q;
  return r;
}
"""

REPEATS = 2
"""How often a loop around the marked one may run."""

_LOOPS = (
    ("unsigned i = me; i < (unsigned)n; i += all", "i", "unsigned", "i"),
    ("int i = n - 1 - (int)me; i >= 0; i -= (int)all", "i", "int", "(unsigned)i"),
    ("long long i = me; i < (long long)n; i += all", "i", "long long", "(unsigned)i"),
    ("int k = 0; k < trips; k++", "k", "int", "me + (unsigned)k * all"),
    ("unsigned k = 0; k < hash32(me) % (unsigned)trips; k++", "k", "unsigned", "me + k * all"),
    (
        "unsigned char k = 0; k < (unsigned char)trips; k++",
        "k",
        "unsigned char",
        "me * (unsigned)trips + k",
    ),
)
"""Heads of marked loops: the head, the counter and its type, the iteration's number."""

_TABLE = """  __shared__ unsigned table[64];
  for (unsigned q = linear; q < 64u; q += blockDim.x * blockDim.y) table[q] = hash32(q);
  __syncthreads();"""


def arguments(launch: Launch) -> Arguments:
    """``n, trips, items, a, f, out, count``: ``launch.trips`` is n, trips are few."""
    trips = 7
    draw = np.random.default_rng(launch.trips)
    a = draw.integers(0, 1 << 32, 97).astype(np.uint32)
    f = draw.uniform(0, 100, 97).astype(np.float32)
    iterations = (max(launch.trips, launch.threads * trips) + 1) * REPEATS
    return [launch.trips, trips, 97, a, f, np.zeros(iterations * SLOTS, np.uint32), np.zeros(64, np.uint32)]


@dataclass
class _Kernel:
    """One kernel being written: lines of text, the next free slot, and what it may use."""

    random: Random
    independent: bool
    lines: list[str] = field(default_factory=list)
    slots: int = 0
    names: int = 0
    indent: int = 1
    in_function: bool = False

    def say(self, line: str) -> None:
        self.lines.append(line if line.startswith("#") else "  " * self.indent + line)

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # --- statements ---

    def block(self, values: Values, count: int, depth: int, *, stores: bool) -> None:
        """Some statements in a scope of their own; what they declare is known in it."""
        for _ in range(count):
            self.statement(values, depth, stores=stores)

    def statement(self, values: Values, depth: int, *, stores: bool) -> None:
        kind = self.random.random()
        if depth == 0 or kind < 0.4:
            self.declare(values)
        elif kind < 0.6 and stores:
            self.store(values)
        elif kind < 0.75:
            self.inner_loop(values, depth, stores=stores)
        elif kind < 0.85:
            self.branch(values, depth, stores=stores)
        elif kind < 0.93:
            self.switch(values)
        else:
            self.declare_call(values)

    def declare(self, values: Values, type: str = "") -> str:
        type = type or self.random.choice(TYPES)
        name = self.name()
        self.say(f"{type} {name} = {values.of(type)};")
        values.known[name] = type
        return name

    def declare_call(self, values: Values) -> None:
        name = self.name()
        self.say(f"unsigned {name} = far({values.unsigned(1)}, {values.unsigned(1)});")
        values.known[name] = "unsigned"

    def store(self, values: Values) -> None:
        if self.slots >= SLOTS or self.chance(0.15):
            self.say(f"atomicAdd(&count[({values.unsigned(1)}) & 63u], {values.unsigned(1)});")
            return
        slot, self.slots = self.slots, self.slots + 1
        self.say(f"out[at * {SLOTS}u + {slot}u] = {values.unsigned()};")

    def inner_loop(self, values: Values, depth: int, *, stores: bool) -> None:
        total, counter = self.name(), self.name()
        bound = f"(({values.unsigned(1)}) & {self.random.choice((1, 3, 7))}u)"
        inner = values.fork()
        self.say(f"unsigned {total} = {values.unsigned(1)};")
        inner.known.update({total: "unsigned", counter: "unsigned"})
        form = self.random.randrange(4)
        if form == 0:
            self.say(f"unsigned {counter} = {bound}; while ({counter} > 0u) {{ {counter}--;")
        elif form == 1:
            self.say(f"unsigned {counter} = 0u; do {{")
        else:
            self.say(self.random.choice(("#pragma unroll 1", "#pragma unroll 2", "", "#pragma unroll")))
            self.say(f"for (unsigned {counter} = 0u; {counter} < {bound}; {counter}++) {{")
        self.indent += 1
        if self.chance(0.3):
            self.say(
                f"if (({inner.unsigned(1)}) % 9u == 4u) {self.random.choice(('break', 'continue'))};"
                if form > 1
                else ""
            )
        self.say(f"{total} = {inner.unsigned()};")
        if depth > 1 and self.chance(0.3):
            self.statement(inner, depth - 1, stores=False)
            self.say(f"{total} += {inner.unsigned(1)};")
        self.indent -= 1
        self.say(f"}} while (++{counter} < {bound});" if form == 1 else "}")
        values.known[total] = "unsigned"

    def branch(self, values: Values, depth: int, *, stores: bool) -> None:
        name = self.declare(values, "unsigned")
        self.say(f"if ({values.condition(7)}) {{")
        self.indent += 1
        self.block(values.fork(), 1, depth - 1, stores=stores)
        self.say(f"{name} = {values.unsigned()};")
        self.indent -= 1
        self.say("}" if self.chance(0.5) else f"}} else {{ {name} ^= {values.unsigned(1)}; }}")

    def switch(self, values: Values) -> None:
        name = self.declare(values, "unsigned")
        cases = self.random.choice((3, 8))
        self.say(f"switch (({values.unsigned(1)}) & {cases}u) {{")
        for case in range(cases):
            fall = "" if self.chance(0.2) else " break;"
            self.say(f"  case {case}: {name} = {values.unsigned(1)};{fall}")
        self.say("  default: break;")
        self.say("}")

    # --- paths ---

    def path(self, values: Values, depth: int) -> None:
        """A marked piece: an if with or without a tail or an else, a variable loop, blocks of a switch."""
        kind = self.random.random()
        clause = " independent" if self.independent else ""
        if kind < 0.2:
            self.variable(values, clause)
        elif kind < 0.3 and depth == 2:
            self.marked_cases(values, clause)
        else:
            self.marked_if(values, clause, depth)

    def marked_if(self, values: Values, clause: str, depth: int) -> None:
        tail = ""
        if self.chance(0.2) and self.slots < SLOTS:
            tail = self.declare(values, "unsigned")
            del values.known[tail]
        self.say(f"#pragma ccc if{clause}")
        self.say(f"if ({values.condition(self.random.choice((1, 3, 5, 9, 15)))}) {{")
        self.indent += 1
        inner = values.fork()
        self.block(inner, self.random.randrange(1, 4), 2, stores=True)
        if depth > 1 and self.chance(0.25):
            self.path(inner, depth - 1)
            if self.independent and self.chance(0.5):
                self.block(inner, 1, 1, stores=True)
        if tail:
            self.say(f"{tail} = {inner.unsigned()};")
        else:
            self.store(inner)
        self.indent -= 1
        if not tail and self.independent and self.chance(0.2):
            self.say("} else {")
            self.indent += 1
            self.block(values.fork(), 1, 2, stores=True)
            self.indent -= 1
        self.say("}")
        if tail:
            slot, self.slots = self.slots, self.slots + 1
            self.say(f"out[at * {SLOTS}u + {slot}u] = {tail}{self.random.choice((' + 3u', ' ^ at', ''))};")

    def variable(self, values: Values, clause: str) -> None:
        counter, limit = self.name(), self.name()
        self.say(f"unsigned {limit} = ({values.unsigned(1)} + first) & {self.random.choice((3, 7, 15))}u;")
        carried = self.name() if self.chance(0.5) else ""
        inner = values.fork()
        inner.known[counter] = "unsigned"
        if carried:
            self.say(f"unsigned {carried} = {values.unsigned(1)};")
            inner.known[carried] = "unsigned"
        self.say(f"#pragma ccc for variable{clause}")
        self.say(f"for (unsigned {counter} = 0u; {counter} < {limit}; {counter}++) {{")
        self.indent += 1
        if self.chance(0.3):
            self.say(f"if (({inner.unsigned(1)} + first) % 7u == 2u) continue;")
        self.block(inner, self.random.randrange(1, 3), 1, stores=False)
        self.say(f"atomicAdd(&count[({inner.unsigned(1)}) & 63u], {inner.unsigned(1)});")
        if carried:
            self.say(f"{carried} = {inner.unsigned(1)};")
        self.indent -= 1
        self.say("}")

    def marked_cases(self, values: Values, clause: str) -> None:
        self.say(f"switch (({values.unsigned(1)} + first) & 7u) {{")
        for case in range(self.random.randrange(2, 7)):
            self.say(f"case {case}:")
            if self.chance(0.6):
                self.say(f"#pragma ccc if{clause}")
            self.say("{")
            self.indent += 1
            self.block(values.fork(), 1, 1, stores=False)
            self.store(values)
            self.indent -= 1
            self.say("} break;")
        self.say("default: break; }")

    # --- the kernel ---

    def loop(self, clause: str, *, repeated: bool) -> Values:
        """The head of the marked loop, with ``at`` in its first line; the variables of an iteration."""
        unroll = self.random.choice(("", "", "", "#pragma unroll 2", "#pragma unroll 3"))
        self.say(f"#pragma ccc for{clause}")
        self.say(unroll)
        head, counter, type, at = self.random.choice(_LOOPS)
        values = Values(self.random, {"at": "unsigned", "n": "int"}, heavy=self.chance(0.4))
        if counter == "k":
            values.known["k"] = type
        self.say(f"for ({head}) {{")
        self.say(f"unsigned at = ({at}) * {REPEATS}u + {'rep' if repeated else '0u'};")
        return values

    def body(self) -> None:
        clause = " independent" if self.independent and self.chance(0.3) else ""
        clause += " block(256)" if self.chance(0.3) else ""
        if self.chance(0.4):
            self.say("if (hash32(me + 5u) % 13u == 1u) return;")
        carried = self.name() if self.chance(0.4) else ""
        if carried:
            self.say(f"unsigned {carried} = me * 3u + 1u;")
        table = self.chance(0.3) and not self.in_function
        if table:
            self.lines.insert(1, _TABLE)
        divergent = self.chance(0.15)
        if divergent:
            self.say("if (me % 5u != 2u || me < 64u) {")
        repeated = self.chance(0.2)
        if repeated:
            times = self.random.choice((f"{REPEATS}u", f"hash32(me) % {REPEATS + 1}u"))
            self.say(f"for (unsigned rep = 0u; rep < {times}; rep++) {{")
        values = self.loop(clause, repeated=repeated)
        self.indent += 1
        if carried:
            values.known[carried] = "unsigned"
        self.say("unsigned first = a[at % items]; float real = f[at % items];")
        values.known.update({"first": "unsigned", "real": "float"})
        if self.chance(0.2):
            self.say("uint4 four = reinterpret_cast<const uint4*>(a)[at % (items / 4u)];")
            values.known.update({f"four.{part}": "unsigned" for part in "xyzw"})
        if table:
            self.say("unsigned looked = table[first & 63u];")
            values.known["looked"] = "unsigned"
        self.block(values, self.random.randrange(0, 4), 2, stores=self.independent)
        for word, chance in (("continue", 0.25), ("break", 0.15), ("return", 0.1)):
            if self.chance(chance):
                self.say(
                    f"if (({values.unsigned(1)} + first) % {self.random.choice((5, 37))}u == 3u) {word};"
                )
        paths = self.random.choice((1, 1, 1, 2, 3)) if self.independent else 1
        for _ in range(paths):
            self.path(values, 2)
            if self.independent and self.chance(0.4):
                self.block(values, 1, 2, stores=True)
            if self.independent and self.chance(0.15):
                self.say(
                    f"if (({values.unsigned(1)}) % 23u == 3u) {self.random.choice(('continue', 'break'))};"
                )
        if carried:
            self.say(f"{carried} = {carried} * 5u + ({values.unsigned(1)} & 255u);")
        self.indent -= 1
        self.say("}")
        for _ in range(divergent + repeated):
            self.say("}")


def kernel(seed: int, name: str) -> str:
    """The text of one kernel, or of one and the function that holds its loop."""
    draw = Random(seed)
    made = _Kernel(draw, independent=draw.random() < 0.7)
    restrict = "__restrict__ " if draw.random() < 0.8 else ""
    formals = (
        f"int n, int trips, unsigned items, const unsigned* {restrict}a, const float* {restrict}f, "
        f"unsigned* {restrict}out, unsigned* {restrict}count"
    )
    bounds = draw.choice(("", *["__launch_bounds__(256) "] * 7))
    made.in_function = draw.random() < 0.15
    made.say(
        "unsigned linear = threadIdx.y * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x * blockDim.y;"
    )
    made.say("unsigned me = blockIdx.x * blockDim.x * blockDim.y + linear;")
    made.body()
    text = "\n".join(line for line in made.lines if line.strip())
    head = f'extern "C" __global__ void {bounds}{name}({formals})'
    if not made.in_function:
        return f"{head} {{\n{text}\n}}\n"
    attribute = draw.choice(("__noinline__", "__forceinline__"))
    call = f"{name}_body(n, trips, items, a, f, out, count);"
    return f"static __device__ {attribute} void {name}_body({formals}) {{\n{text}\n}}\n{head} {{ {call} }}\n"


def source(seed: int, kernels: int) -> str:
    """A CUDA file of ``kernels`` kernels ``k0``, ``k1``, ..."""
    return _HEAD + "\n".join(kernel(seed * 1000 + place, f"k{place}") for place in range(kernels))
