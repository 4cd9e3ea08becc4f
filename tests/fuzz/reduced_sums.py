"""Kernels with a `reduce` variable that is updated at any places of an iteration, by any operator, in any kind of path.

    places      before the path, in it, in its `else`, after it, in an `if` in it, in an unmarked `if` or loop after it
    kinds       if, if with else, switch, while, for variable, an if in a while or in a for variable, those in an if
    results     one atomic for all threads (any lane keeps its share), or a value for each thread (the owner gets it)

All values are such that any order gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from tests.kernels.running import Arguments, Launch

PLACES = ("before", "path", "else", "after", "nested", "if after", "loop after")
NESTED = ("if in while", "if in for variable", "while in if", "for variable in if")
"""Kinds whose inner path updates the sum in place of an unmarked `if`."""
KINDS = ("if", "if else", "switch", "while", "for variable", *NESTED)
RESULTS = ("one", "each")
LAUNCHES = (Launch(1, 32, 180), Launch(1, 64, 20))

OPERATORS = {
    "+ unsigned": ("+", "unsigned", "s += {}", "x"),
    "+ int": ("+", "int", "s += {}", "x"),
    "+ long": ("+", "unsigned long long", "s += {}", "x * 0x100000001ull"),
    "+ float": ("+", "float", "s += {}", "(float)(x & 15)"),
    "+ double": ("+", "double", "s += {}", "(double)(x & 255)"),
    "- int": ("+", "int", "s -= {}", "x"),
    "- float": ("+", "float", "s -= {}", "(float)(x & 15)"),
    "* unsigned": ("*", "unsigned", "s *= {}", "x | 1"),
    "* float": ("*", "float", "s *= {}", "(x & 7) == 0 ? 2.f : (x & 7) == 1 ? 0.5f : -1.f"),
    "^ unsigned": ("^", "unsigned", "s ^= {}", "x"),
    "& unsigned": ("&", "unsigned", "s &= {}", "x | 0xF0F0F0u << (x & 7)"),
    "| long": ("|", "unsigned long long", "s |= {}", "1ull << (x & 63)"),
    "min int": ("min", "int", "s = min(s, {})", "(int)x"),
    "max unsigned": ("max", "unsigned", "s = max(s, {})", "x"),
    "min long": ("min", "long long", "s = min(s, {})", "(long long)(x * 0x100000001ull)"),
    "max float": ("max", "float", "s = fmaxf(s, {})", "(float)x"),
    "min double": ("min", "double", "s = fmin(s, {})", "(double)(int)x"),
    "| bool": ("|", "bool", "s |= {}", "(x & 7) == 3"),
    "| bool of int": ("|", "bool", "s |= {}", "(x >> 3) & 3 & x"),
    "or bool": ("|", "bool", "s = s || {}", "(x & 7) == 3"),
    "set bool": ("|", "bool", "if ({}) s = true", "(x & 7) == 3"),
    "& bool": ("&", "bool", "s &= {}", "(x & 7) != 3"),
    "and bool": ("&", "bool", "s = s && {}", "(x & 7) != 3"),
    "unset bool": ("&", "bool", "if ({}) s = false", "(x & 7) == 3"),
    "set int": ("=", "int", "if ({}) s = 17", "(x & 7) == 3"),
    "set long": ("=", "long long", "if ({}) s = -1", "(x & 7) == 3"),
    "set short": ("=", "short", "if ({}) s = 300", "(x & 7) == 3"),
    "set float": ("=", "float", "if ({}) s = 2.5f", "(x & 7) == 3"),
    "set always": ("=", "unsigned", "s = 5 + ({})", "0"),
}
"""By name: the clause's operator, the type, an update by a value, and the value that an unsigned `x` gives."""

_ATOMICS = {
    "+": "atomicAdd",
    "^": "atomicXor",
    "&": "atomicAnd",
    "|": "atomicOr",
    "min": "atomicMin",
    "max": "atomicMax",
}
_FIRST = {"*": "1", "&": "~0u"}


@dataclass(frozen=True)
class Case:
    """One kernel: an operator, a kind of path, a use of the result, and the places of the updates."""

    operator: str
    kind: str
    result: str
    places: tuple[str, ...]

    @property
    def name(self) -> str:
        """The kernel's name."""
        words = "_".join((self.operator, self.kind, self.result, *self.places)).replace(" ", "_")
        signs = {"+": "plus", "-": "minus", "*": "times", "^": "xor", "&": "bitand", "|": "bitor"}
        return "".join(signs.get(c, c) for c in words)

    @property
    def is_possible(self) -> bool:
        """Whether there is such a kernel: the path updates the sum, and `else` and atomics exist."""
        sign, type, _, _ = OPERATORS[self.operator]
        no_atomic = type == "bool" or (type in ("float", "double") and sign != "+")
        has_else = self.kind in ("if else", "switch")
        return (
            bool(
                {"nested"} & {*self.places}
                if self.kind in NESTED
                else {"path", "nested", "else"} & {*self.places}
            )
            and ("else" not in self.places or has_else)
            and (self.result == "each" or (sign in _ATOMICS and not no_atomic))
        )

    def arguments(self, launch: Launch) -> Arguments:
        """Arguments ``n, a, out`` of a loop over ``launch.trips`` items in all."""
        numbers = np.random.default_rng(7).integers(0, 1 << 32, launch.trips + 1, np.uint32)
        return [launch.trips, numbers, np.zeros(launch.threads + 1, np.uint64)]

    def cuda(self) -> str:
        """The kernel's text."""
        sign, type, update, value = OPERATORS[self.operator]

        def at(place: str, x: str) -> str:
            # Not the path's own `x`: nvcc would see one value.
            return f"{{ unsigned x = {x}; {update.format(value)}; }}" if place in self.places else ""

        work = "unsigned y = v; for (int q = 0; q < 9; ++q) y = y * 1664525u + (y >> 7);"
        deep = "unsigned z = y; for (int q = 0; q < 5; ++q) z = z * 1664525u + (z >> 7);"
        trip = "y = (y ^ y >> 15) * 0x846ca68bu;"
        place = "unsigned y = (v ^ k) * 0x846ca68bu; y ^= y >> 9;"
        inner = at("path", "y") + (f" if (y & 4) {at('nested', 'y >> 3')}" if "nested" in self.places else "")
        path = {
            "if": f"#pragma ccc if\n if (v & 1) {{ {work} {inner} }}",
            "if else": f"#pragma ccc if\n if (v & 1) {{ {work} {inner} }}\n#pragma ccc else\n"
            f" else {{ {work} y ^= y >> 5; {at('else', 'y')} }}",
            "switch": f"#pragma ccc switch\n switch (v & 3) {{\n case 0: {{ {work} {inner} break; }}\n"
            f" case 1: {{ {work} y ^= y >> 5; {at('else', 'y')} break; }}\n"
            f" case 2: {{ {work} y ^= y << 3; {inner} break; }}\n }}",
            "while": f"unsigned y = v;\n#pragma ccc while\n while (y & 7) {{ {trip} {inner} }}",
            "for variable": f"int length = v & 7;\n#pragma ccc for variable\n"
            f" for (int k = 0; k < length; ++k) {{ {place} {inner} }}",
            "if in while": f"unsigned y = v;\n#pragma ccc while\n while (y & 7) {{ {trip}"
            f"\n#pragma ccc if\n if (y & 8) {{ {deep} {at('nested', 'z')} }}\n {at('path', 'y >> 4')} }}",
            "if in for variable": f"int length = v & 7;\n#pragma ccc for variable\n"
            f" for (int k = 0; k < length; ++k) {{ {place}"
            f"\n#pragma ccc if\n if (y & 8) {{ {deep} {at('nested', 'z')} }}\n {at('path', 'y >> 4')} }}",
            "while in if": f"#pragma ccc if\n if (v & 1) {{ {work} {at('path', 'y')}\n#pragma ccc while\n"
            f" while (y & 7) {{ {trip} {at('nested', 'y >> 3')} }}\n {at('path', 'y >> 4')} }}",
            "for variable in if": f"#pragma ccc if\n if (v & 1) {{ {at('path', 'v >> 2')} int length = v >> 3 & 7;\n"
            f"#pragma ccc for variable\n for (int k = 0; k < length; ++k) {{ {place} {at('nested', 'y >> 3')} }}\n"
            f" {at('path', 'v >> 4')} }}",
        }[self.kind]
        after = at("after", "v >> 3")
        after += f" if (v & 16) {at('if after', 'v >> 5')}" if "if after" in self.places else ""
        after += (
            f"\n#pragma unroll 1\n for (int k = 0; k < (int)(v >> 5 & 3); ++k) {at('loop after', 'v >> k')}"
            if "loop after" in self.places
            else ""
        )
        last = f"{_ATOMICS[sign]}(out, s);" if self.result == "one" else "out[threadIdx.x] = s;"
        return f"""
extern "C" __global__ void __launch_bounds__(64)
{self.name}(int n, const unsigned* __restrict__ a, {type}* __restrict__ out) {{
  {type} s = {_FIRST.get(sign, "0")};
#pragma ccc for reduce({sign}: s)
  for (int i = threadIdx.x; i < n; i += blockDim.x) {{
    unsigned v = a[i];
    {at("before", "v >> 7")}
    {path}
    {after}
  }}
  {last}
}}
"""


def cases(
    operators: Iterable[str] = tuple(OPERATORS),
    kinds: Iterable[str] = KINDS,
    results: Iterable[str] = RESULTS,
) -> Iterator[Case]:
    """All cases of some operators, kinds of paths and uses of the result."""
    sets = [places for n in range(1, len(PLACES) + 1) for places in combinations(PLACES, n)]
    made = (Case(*parts) for parts in product(operators, kinds, results, sets))
    return (case for case in made if case.is_possible)
