"""What programs contain and no mixture of the other statements makes: generator states that are handed on by address,
recursive functions that nobody marked, traversals with a stack, retries of a compare-and-swap, and `goto`.

What draws them has numbers of its own, so that kernels without them stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from tests.fuzz.cuda_values import Values

HEAD = """
struct Rng { unsigned a, b, c; };
struct Pair { unsigned low, high; float real; };
__constant__ unsigned lut[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
__device__ __noinline__ unsigned next_far(Rng* r) {
  r->a = r->a * 1664525u + 1013904223u; r->b ^= r->a >> 7; r->c += r->b;
  return r->c;
}
__device__ __forceinline__ unsigned next_near(Rng& r) {
  unsigned t = r.a ^ (r.a << 11); r.a = r.b; r.b = r.c;
  return r.c ^= t ^ (t >> 8);
}
__device__ __noinline__ unsigned tree(const unsigned* a, unsigned items, unsigned x, int depth) {
  if (depth <= 0 || (x & 3u) == 0u) return x * 3u + 1u;
  unsigned left = tree(a, items, hash32(x), depth - 1);
  if (x & 4u) left ^= tree(a, items, a[x % items] + left, depth - 2);
  return left * 5u + x;
}
__device__ __noinline__ void grow(unsigned* map, unsigned at, unsigned x, int depth) {
  map[at * 4u + (x & 3u)] += x;
  if (depth > 0 && (x & 8u)) grow(map, at, hash32(x), depth - 1);
  if (depth > 0 && (x & 16u)) grow(map, at, hash32(x + 1u), depth - 1);
}
__device__ __noinline__ Pair pair_of(unsigned x, unsigned y) {
  Pair p = {x * 7u + y, x ^ (y >> 3), (float)(x & 255u)};
  return p;
}
__device__ __forceinline__ unsigned lane() { unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); return l; }
__device__ __noinline__ unsigned lane_far(unsigned x) { return x * 32u + lane(); }
__device__ __forceinline__ void cas_add(unsigned* cell, unsigned x) {
  unsigned seen = *cell, was;
  do { was = seen; seen = atomicCAS(cell, was, was + x); } while (seen != was);
}
__device__ __forceinline__ unsigned set_carry(unsigned x, unsigned y) {
  unsigned low; asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(low) : "r"(x), "r"(y)); return low;
}
__device__ __forceinline__ unsigned with_carry(unsigned x, unsigned y) {
  unsigned limb; asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(limb) : "r"(x), "r"(y)); return limb;
}
__device__ __forceinline__ unsigned wide_sum(unsigned x, unsigned y) {
  return (unsigned)((((unsigned __int128)y << 64 | 0xffffffff80000000ull) + x) >> 64);
}
__device__ __forceinline__ unsigned half_of(unsigned x) {
  unsigned half;
  asm("{ .reg .u16 low, high; mov.b32 {low, high}, %1; cvt.u32.u16 %0, high; }" : "=r"(half) : "r"(x));
  return half;
}
__device__ unsigned locks[64];
__device__ __forceinline__ void owned_add(unsigned* lock, unsigned none, unsigned* cell, unsigned x) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, none, none + 1u) == none) {
      atomicAdd(cell, x);
      atomicExch(lock, none);
      done = true;
    }
  }
}
__device__ __forceinline__ void locked_add(unsigned* lock, unsigned* cell, unsigned x) {
  bool done = false;
  unsigned tries = 0;
  while (!done) {
    if (atomicCAS(lock, 0u, 1u) == 0u) {
      atomicAdd(cell, x);
      atomicExch(lock, 0u);
      done = true;
    } else if (++tries > 50u) { atomicAdd(cell, 0u); tries = 0; }
  }
}
"""
"""What the idioms call; it needs ``hash32``."""

RARE = ("lock", "carry", "wide", "scoped", "owner")
"""Idioms with draws of their own, so that kernels without them stay as they were."""


@dataclass
class Idioms:
    """The idioms of one kernel: ``kinds`` are those that it uses, most often none.

    ``meeting`` allows memory of the iteration that others of its accesses use, too. A generator state that is *kept*
    is set before the marked loop alone: then iterations use what others have left, and a rewrite must be refused, or
    right.
    """

    random: Random
    meeting: bool = False
    kinds: tuple[str, ...] = ()
    kept: bool = False
    open: bool = False
    declared: bool = False
    names: int = 0
    _expressions: dict[str, Callable[[Values], str]] = field(init=False)
    _statements: dict[str, Callable[[Values], list[str]]] = field(init=False)

    def __post_init__(self) -> None:
        self._expressions = {
            "recursion": lambda v: f"tree(a, items, {v.unsigned(1)}, {self.random.randrange(1, 4)})",
            "constant": lambda v: f"lut[({v.unsigned(1)}) & 15u]",
            "lane": lambda v: self.random.choice(("lane()", f"lane_far({v.unsigned(1)})")),
            "cached": self._cached,
            "carry": self._carry,
            "wide": lambda v: f"wide_sum({v.unsigned(1)}, {v.unsigned(1)})",
            "scoped": lambda v: f"half_of({v.unsigned(1)})",
            "library": lambda v: f"(unsigned)pow((double)(({v.unsigned(1)}) & 255u) + 1.0, 1.7)",
        }
        self._statements = {
            "generator": self._generator,
            "growth": lambda v: [f"grow(map, at, {v.unsigned(1)}, 2);"] if self.meeting else [],
            "traversal": self._traversal,
            "chase": self._chase,
            "retry": lambda v: [f"cas_add(&count[({v.unsigned(1)}) & 15u], {v.unsigned(1)});"],
            "lock": lambda v: [
                f"locked_add(&locks[({v.unsigned(1)}) & 63u], &count[({v.unsigned(1)}) & 15u], {v.unsigned(1)});"
            ],
            "owner": lambda v: [
                f"owned_add(&locks[({v.unsigned(1)}) & 63u], (unsigned)(n < 0), &count[0], {v.unsigned(1)});"
            ],
            "record": self._record,
            "lambda": self._lambda,
            "flagged": self._flagged,
            "fence": lambda v: [self.random.choice(("__threadfence();", "__threadfence_block();"))],
            "never": self._never,
        }

    @classmethod
    def drawn(cls, seed: int, *, meeting: bool, kept: bool) -> Idioms:
        """The idioms of the kernel ``seed``."""
        draw = Random(seed * 104729 + 17)
        found = cls(draw, meeting)
        if draw.random() < 0.3:
            every = sorted({*found._expressions, *found._statements} - {*RARE})
            found.kinds = tuple(draw.sample(every, draw.choice((1, 1, 2, 3))))
            found.kept = kept and draw.random() < 0.7
        for number, kind in enumerate(RARE):  # each of its own, so that all others stay as they were
            if Random(seed * 104729 + 18 + number).random() < 0.03:
                found.kinds += (kind,)
        return found

    def before(self) -> list[str]:
        """What precedes the first marked loop."""
        if "generator" not in self.kinds or not self.kept or self.declared:
            return []
        self.declared = True
        return [self._state("me")]

    def begin(self) -> list[str]:
        """What an iteration begins with, after which its statements may use idioms."""
        self.open = bool(self.kinds)
        state = [self._state("at")] if "generator" in self.kinds and not self.kept else []
        return [*state, "set_carry(at, at * 77u);"] if "carry" in self.kinds else state

    def end(self) -> None:
        """What follows is not the iteration's."""
        self.open = False

    @contextmanager
    def without_own(self) -> Iterator[None]:
        """For the text of another function, which does not see what an iteration begins with."""
        held, self.open = self.open, False
        try:
            yield
        finally:
            self.open = held

    def wants(self) -> bool:
        """Whether the next statement is an idiom."""
        return self.open and self.random.random() < 0.3

    def statement(self, values: Values) -> list[str]:
        """The lines of one; what they declare is known afterwards."""
        kind = self.random.choice(self.kinds)
        if kind in self._statements:
            return self._statements[kind](values)
        return self._declared(values, self._expressions[kind](values))

    # --- the idioms ---

    def _name(self) -> str:
        self.names += 1
        return f"w{self.names}"

    def _declared(self, values: Values, value: str) -> list[str]:
        name = self._name()
        values.learn(name, "unsigned", assignable=True)
        return [f"unsigned {name} = {value};"]

    @staticmethod
    def _state(of: str) -> str:
        return f"Rng rng = {{hash32({of}), {of} * 2u + 1u, 7u}};"

    def _generator(self, values: Values) -> list[str]:
        return self._declared(values, self.random.choice(("next_far(&rng)", "next_near(rng)")))

    def _carry(self, values: Values) -> str:
        call = self.random.choice(("with_carry", "with_carry", "set_carry"))
        return f"{call}({values.unsigned(1)}, {values.unsigned(1)} | 0xf0000000u)"

    def _cached(self, values: Values) -> str:
        place = f"a[({values.unsigned(1)}) % items]"
        return self.random.choice(
            (f"__ldg(&{place})", f"__ldcg(&{place})", f"*(volatile const unsigned*)&{place}")
        )

    def _traversal(self, values: Values) -> list[str]:
        found, top, node = self._name(), self._name(), self._name()
        lines = [
            f"unsigned {found} = 0u, {top} = 1u, {found}_stack[8];",
            f"{found}_stack[0] = ({values.unsigned(1)}) & 0xfffu;",
            f"while ({top} > 0u) {{",
            f"  unsigned {node} = {found}_stack[--{top}];",
            f"  {found} = {found} * 3u + a[{node} % items];",
            f"  if ({top} < 6u && ({node} & 3u)) {{",
            f"    {found}_stack[{top}++] = {node} >> 2;",
            f"    if ({node} & 4u) {found}_stack[{top}++] = {node} >> 3;",
            "  }",
            "}",
        ]
        values.learn(found, "unsigned", assignable=True)
        return lines

    def _chase(self, values: Values) -> list[str]:
        place, hop = self._name(), self._name()
        lines = [
            f"unsigned {place} = {values.unsigned(1)};",
            f"for (int {hop} = 0; {hop} < 6 && ({place} & 7u) != 3u; {hop}++) {place} = a[{place} % items] >> {hop};",
        ]
        values.learn(place, "unsigned", assignable=True)
        return lines

    def _record(self, values: Values) -> list[str]:
        pair = self._name()
        first = f"Pair {pair} = pair_of({values.unsigned(1)}, {values.unsigned(1)});"
        values.learn(f"{pair}.low", "unsigned")
        values.learn(f"{pair}.high", "unsigned")
        values.learn(f"{pair}.real", "float")
        return [first]

    def _lambda(self, values: Values) -> list[str]:
        name, given = self._name(), self._name()
        inner = values.fork(path=True)
        inner.learn(given, "unsigned")
        body = inner.unsigned()
        first = f"auto {name} = [&](unsigned {given}) {{ return {body}; }};"
        value = f"{name}({values.unsigned(1)}) ^ {name}({values.unsigned(1)})"
        return [first, *self._declared(values, value)]

    def _flagged(self, values: Values) -> list[str]:
        """Two loops that a flag leaves, and a block that is left by `goto`."""
        done, sum_, i, j = (self._name() for _ in range(4))
        lines = [
            f"bool {done} = false; unsigned {sum_} = {values.unsigned(1)};",
            f"for (unsigned {i} = 0u; {i} < 3u && !{done}; {i}++) {{",
            f"  for (unsigned {j} = 0u; {j} < (({values.unsigned(1)}) & 3u); {j}++) {{",
            f"    {sum_} = {sum_} * 3u + a[({sum_} + {j}) % items];",
            f"    if (({sum_} & 7u) == 5u) {{ {done} = true; break; }}",
            "  }",
            f"  if ({sum_} & 1u) goto {done}_out;",
            f"  {sum_} ^= {i};",
            "}",
            f"{sum_} += {done} ? 17u : 4u;",
            f"{done}_out:;",
        ]
        values.learn(sum_, "unsigned", assignable=True)
        return lines

    def _never(self, values: Values) -> list[str]:
        what = self.random.choice(('printf("%u\\n", at)', "__trap()", "assert(n >= 0)"))
        return [f"if (n < 0 && ({values.condition()})) {what};"]
