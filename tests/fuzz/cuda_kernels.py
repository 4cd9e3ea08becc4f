"""A seeded generator of annotated CUDA kernels with independent iterations, all with one signature (`cuda_memory`).

Each kernel keeps the word that its pragmas give, but for those in `Mode.SCRATCH`: a rewrite must refuse these, or get
them right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from cccopt.clauses import ITERATED
from cccopt.source.annotate import annotate
from cccopt.source.strip import strip
from tests.fuzz import cuda_idioms
from tests.fuzz.cuda_arrays import Arrays
from tests.fuzz.cuda_idioms import Idioms
from tests.fuzz.cuda_memory import ACTUALS, REPEATS, Memory, Mode, formals
from tests.fuzz.cuda_paths import PathWriter
from tests.fuzz.cuda_pieces import Scope
from tests.fuzz.cuda_sums import clauses, draw_sums
from tests.fuzz.cuda_values import Values
from tests.kernels.running import Launch

HEAD = (
    """
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
__device__ __noinline__ unsigned who(unsigned x) { return hash32(x + threadIdx.x); }
__device__ __noinline__ unsigned touch(unsigned* map, unsigned at, unsigned x) {
  unsigned old = map[at * 4u + (x & 3u)];
  map[at * 4u + (x & 3u)] = old * 3u + x;
  return old;
}
"""
    + cuda_idioms.HEAD
)

_COMMON = (
    ("unsigned i = me; i < (unsigned)n; i += all", "i", "unsigned", "i"),
    ("int i = (int)me; i < n; i += (int)all", "i", "int", "(unsigned)i"),
    ("int i = n - 1 - (int)me; i >= 0; i -= (int)all", "i", "int", "(unsigned)i"),
    ("long long i = me; i < (long long)n; i += all", "i", "long long", "(unsigned)i"),
    ("unsigned long long i = me; i < n; i += all", "i", "unsigned long long", "(unsigned)i"),
    ("int k = 0; k < trips; k++", "k", "int", "me + (unsigned)k * all"),
    ("int k = 0; k != trips; ++k", "k", "int", "me + (unsigned)k * all"),
    ("int k = trips; k > 0; k--", "k", "int", "me + (unsigned)(k - 1) * all"),
    ("short k = 1; k <= trips; k++", "k", "short", "me + (unsigned)(k - 1) * all"),
)
_RARE = (
    ("unsigned k = 0u; k < 2u * trips; k += 2u", "k", "unsigned", "me + k / 2u * all"),
    ("int k = 0; k < 3 * trips; k += 3", "k", "int", "me + (unsigned)k / 3u * all"),
    ("unsigned k = 0; k < hash32(me) % ((unsigned)trips + 1u); k++", "k", "unsigned", "me + k * all"),
    ("unsigned char k = 0; k < (unsigned char)trips; k++", "k", "unsigned char", "me * (unsigned)trips + k"),
    (
        "unsigned long long k = trips; k-- > 0;",
        "k",
        "unsigned long long",
        "me * (unsigned)trips + (unsigned)k",
    ),
)
_LOOPS = (*_COMMON, *_COMMON, *_RARE)
"""Heads of marked loops: the head, the counter and its type, the iteration's number."""

_BLOCKS = (32, 64, 64, 64, 96, 128, 128, 256, 256, 512, 1024)


@dataclass(frozen=True)
class Kernel:
    """A kernel and the functions of its own: ``threads`` is the most that a block may have, in ``dimensions``."""

    name: str
    text: str
    mode: Mode
    threads: int
    dimensions: int

    def launch(self, draw: Random, size: str) -> Launch:
        """A launch of some ``size``: ``small``, ``odd`` (few iterations, or blocks of any size) or ``large``."""
        # Without bounds ptxas may take more registers than a large block has.
        threads = self.threads if "__launch_bounds__" in self.text else min(self.threads, 256)
        most, large = threads, max(4096 // threads, 4)
        if size == "odd":
            threads = draw.choice((1, 5, 31, 33, 48, 77, 100, draw.randrange(1, threads + 1)))
        elif size == "small":
            threads = draw.choice((32, 64, 64, 96))
        threads = min(threads, most)
        blocks = (
            draw.randrange(large // 2, large)
            if size == "large"
            else 1
            if threads > 96
            else draw.choice((1, 1, 2, 3))
        )
        share = draw.choice((0, 1, 2, 3, 5)) if size == "odd" else draw.choice((3, 4, 5))
        n = max(blocks * threads * share - draw.randrange(7), 0)
        return Launch(blocks, self._block(draw, threads), n)

    def _block(self, draw: Random, threads: int) -> int | tuple[int, ...]:
        if self.dimensions == 1:
            return threads
        y = draw.choice([d for d in (1, 2, 3, 4, 5) if d <= threads])
        z = draw.choice([d for d in (1, 2, 3) if d * y <= threads]) if self.dimensions == 3 else 1
        return (threads // (y * z), y, z)[: self.dimensions]

    @property
    def plain(self) -> str:
        """The text without pragmas, under other names (`plain_name`)."""
        return re.sub(r"\bk(\d+)", r"p\1", strip(self.text))

    @property
    def alone(self) -> str:
        """The text with marks of the outer loops alone, under other names (`alone_name`)."""
        text = re.sub(r"\bk(\d+)", r"a\1", self.text)
        loops = {r.id for r in annotate(text, "kernels.cu").regions if r.kind in ITERATED}
        return annotate(text, "kernels.cu", loops, loops).text


def alone_name(name: str) -> str:
    """What the kernel ``name`` is called in its version with marks of the outer loops alone."""
    return f"a{name[1:]}"


def plain_name(name: str) -> str:
    """What the kernel ``name`` is called in its version without pragmas."""
    return f"p{name[1:]}"


class _Body:
    """Writes the body of one kernel."""

    def __init__(
        self, random: Random, seed: int, name: str, *, grid: bool, threads: int, dimensions: int
    ) -> None:
        self.draw = random
        self.grid, self.threads, self.dimensions = grid, threads, dimensions
        mode = random.choices(tuple(Mode), (84, 11, 5))[0]
        arrays = Arrays.drawn(seed, kept=mode is Mode.SCRATCH and not grid)
        memory = Memory(random, mode, shared=not grid, arrays=arrays)
        sums = () if grid else draw_sums(random)
        independent = mode is Mode.APART and random.random() < 0.88
        idioms = Idioms.drawn(seed, meeting=mode is not Mode.APART, kept=mode is Mode.SCRATCH and not grid)
        self.writer = PathWriter(random, mode, memory, sums, idioms, kernel=name, independent=independent)
        self.writer.often = random.choice((1.0, 1.0, 1.0, 1.0, 0.6))
        self.loop = random.choice(_LOOPS)
        self.heavy = random.random() < 0.08

    def write(self, block: str) -> None:
        """The whole body; ``block`` is a clause for the pragma of a loop."""
        write, chance = self.writer, self.writer.chance
        self._identity()
        for line in write.memory.declarations(self.threads):
            write.say(line)
        if chance(0.2) and not write.memory.bins:
            write.say("if (hash32(me + 5u) % 13u == 1u) return;")
        if self.grid:
            for line in write.memory.arrays.before():
                write.say(line)
            write.say("if (me >= (unsigned)n) return;")
            self._iteration(self._values({}), f"me * {REPEATS}u")
            return
        for total in write.sums:
            write.say(total.declaration())
        carried = write.name() if chance(0.12) else ""
        if carried:
            write.say(f"unsigned {carried} = me * 3u + 1u;")
        divergent, repeated = chance(0.08), chance(0.1)
        if divergent:
            write.say("if (me % 5u != 2u || me < 64u) {")
        if repeated:
            times = self.draw.choice((f"{REPEATS}u", f"hash32(me) % {REPEATS + 1}u"))
            write.say(f"for (unsigned rep = 0u; rep < {times}; rep++) {{")
        for _ in range(self.draw.choice((1, 1, 1, 1, 1, 1, 1, 2))):
            self._marked_loop(block, carried, "rep" if repeated else "0u")
        for _ in range(divergent + repeated):
            write.say("}")
        for total in write.sums:
            write.say(total.end())
        for line in write.memory.flush():
            write.say(line)

    def _identity(self) -> None:
        say = self.writer.say
        if self.dimensions == 1:
            say("unsigned linear = threadIdx.x, size = blockDim.x;")
        elif self.dimensions == 2:
            say("unsigned linear = threadIdx.y * blockDim.x + threadIdx.x, size = blockDim.x * blockDim.y;")
        else:
            say("unsigned size = blockDim.x * blockDim.y * blockDim.z;")
            say("unsigned linear = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;")
        say("unsigned all = gridDim.x * size, me = blockIdx.x * size + linear;")

    def _values(self, known: dict[str, str]) -> Values:
        return Values(self.draw, {"at": "unsigned", "n": "int", **known}, heavy=self.heavy)

    def _marked_loop(self, block: str, carried: str, repetition: str) -> None:
        write = self.writer
        head, counter, type, at = self.loop
        before, opening, closing, step = self._written(head)
        for line in (*write.memory.arrays.before(), *write.idioms.before()):
            write.say(line)
        write.say(before)
        place = len(write.lines)
        write.say(self.draw.choice(("",) * 4 + ("#pragma unroll 2", "#pragma unroll 3")))
        write.say(opening)
        write.indent += 1
        values = self._values({counter: type} if counter == "k" else {})
        if carried:
            write.say(f"{carried} = {carried} * 1664525u + 1013904223u;")
            values.learn(carried, "unsigned")
        named = len(write.real_sums)
        self._iteration(values, f"({at}) * {REPEATS}u + {repetition}", step)
        write.indent -= 1
        write.say(closing)
        for line in write.memory.arrays.after():
            write.say(line)
        text = "\n".join(write.lines[place:])
        reduced = [s for s in write.sums if re.search(rf"\b{s.name}\b", text)]
        words = clauses(tuple(reduced)) if write.chance(0.97) else ""
        real = write.real_sums[named:]
        if real and " reduce(+: " in words:
            words = words.replace(" reduce(+: ", f" reduce(+: {', '.join(real)}, ")
        elif real:
            words += f" reduce(+: {', '.join(real)})"
        words += block + (" independent" if write.independent and write.chance(0.2) else "")
        write.lines.insert(place, f"#pragma ccc for{words}")

    def _written(self, head: str) -> tuple[str, str, str, str]:
        """A loop as a ``for``, ``while`` or ``do``: what precedes it, its first and last line, and the step of its
        counter that the body makes itself.
        """
        first, test, step = (part.strip() for part in head.split(";"))
        match self.draw.choice(("for",) * 5 + ("while", "do")):
            case "while":
                return f"{{ {first};", f"while ({test}) {{", "} }", f"{step};"
            case "do":
                return f"{{ {first}; if ({test})", "do {", f"}} while ({test}); }}", f"{step};"
        return "", f"for ({head}) {{", "}", ""

    def _iteration(self, values: Values, at: str, step: str = "") -> None:
        """One iteration; ``step`` is for a loop whose head makes none."""
        write, chance = self.writer, self.writer.chance
        write.say(f"unsigned at = {at};")
        write.say(step)
        write.say("unsigned first = a[at % items]; float real = f[at % items];")
        values.known.update({"first": "unsigned", "real": "float"})
        if chance(0.1):
            write.say("uint4 four = reinterpret_cast<const uint4*>(a)[at % (items / 4u)];")
            values.known.update({f"four.{part}": "unsigned" for part in "xyzw"})
        for line in (*write.memory.arrays.begin(values), *write.idioms.begin()):
            write.say(line)
        scope = Scope(values, 2, 0)
        write.block(scope, self.draw.choice((0, 1, 1, 2, 3)))
        self._leave_early(values, (0.15, 0.06, 0.04))
        for _ in range(self.draw.choice((1, 1, 1, 1, 2, 2, 3))):
            write.marked(Scope(values, 2, 3))
            if chance(0.5):
                write.block(scope, self.draw.choice((1, 1, 2)))
            self._leave_early(values, (0.06, 0.02, 0.01))
        for line in write.memory.arrays.end(values):
            write.say(line)
        write.idioms.end()

    def _leave_early(self, values: Values, chances: tuple[float, float, float]) -> None:
        for word, chance in zip(("continue", "break", "return"), chances, strict=True):
            word = "return" if self.grid else word
            if self.writer.memory.bins and word == "return":
                continue
            if self.writer.chance(chance):
                often = self.draw.choice((5, 37))
                self.writer.say(f"if (({values.unsigned(1)} + first) % {often}u == 3u) {word};")


def kernel(seed: int, name: str) -> Kernel:
    """One kernel, with the functions that only it calls."""
    draw = Random(seed)
    grid = draw.random() < 0.12
    threads, dimensions = draw.choice(_BLOCKS), draw.choice((1, 1, 1, 2, 3))
    bounds, block = f"__launch_bounds__({threads}) ", ""
    if draw.random() < 0.2:
        bounds, block = "", draw.choice((f" block({threads})", f" block({threads // 2}, 2)"))
    elif draw.random() < 0.06:
        bounds, threads = "", 1024
    body = _Body(draw, seed, name, grid=grid, threads=threads, dimensions=dimensions)
    body.write(block)
    taken = formals(draw if draw.random() < 0.9 else None)
    pragma = f"#pragma ccc grid{block}\n" if grid else ""
    text = "\n".join(body.writer.lines)
    head = f'{pragma}extern "C" __global__ void {bounds}{name}({taken})'
    functions = "".join(f"{function}\n" for function in body.writer.functions)
    if not grid and draw.random() < 0.1:
        attribute = draw.choice(("__noinline__", "__forceinline__"))
        called = f"static __device__ {attribute} void {name}_body({taken}) {{\n{text}\n}}\n"
        text, functions = f"  {name}_body({ACTUALS});", functions + called
    return Kernel(name, f"{functions}{head} {{\n{text}\n}}\n", body.writer.mode, threads, dimensions)


def kernels(seed: int, count: int) -> list[Kernel]:
    """The kernels ``k0``, ``k1``, ... of one file, which needs `HEAD` ahead of them."""
    return [kernel(seed * 1000 + place, f"k{place}") for place in range(count)]
