"""Random CUDA expressions over typed variables, free of undefined behaviour: the same in any compilation."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

TYPES = (
    "int",
    "unsigned",
    "int",
    "unsigned",
    "int",
    "unsigned",
    "short",
    "unsigned short",
    "unsigned char",
    "signed char",
    "bool",
    "bool",
    "float",
    "float",
    "double",
    "long long",
    "unsigned long long",
)
WIDE = frozenset({"long long", "unsigned long long"})
_UNARY = (
    "~{0}",
    "({0} >> 3)",
    "__popc({0})",
    "__clz({0})",
    "hash32({0})",
    "({0} * 2654435761u)",
    "leaf({0})",
)
_CALLS = ("far({0}, 5u)", "far({0}, 5u)", "far({0}, 5u)", "who({0})")
_BINARY = (
    "({0} + {1})",
    "({0} - {1})",
    "({0} * {1})",
    "({0} ^ {1})",
    "({0} & {1})",
    "({0} | {1})",
    "({0} << ({1} & 31u))",
    "({0} / ({1} | 1u))",
    "({0} % ({1} | 1u))",
    "min({0}, {1})",
    "({0} > {1} ? {0} : {1} * 3u)",
    "(({0} & 4u) ? {0} + 5u : {1})",
)
_FLOAT = (
    "({0} + {1})",
    "({0} * {1})",
    "({0} - {1})",
    "({0} / ({1} * {1} + 1.f))",
    "sqrtf({0} * {0})",
    "fminf({0}, {1})",
    "({0} > {1} ? {0} : {1})",
    "sinf({0} * 7e4f)",
    "powf({0} * {0} + 1.f, 1.3f)",
    "logf({0} * {0} + 1.f)",
    "__expf({0} * 1e-4f)",
)
_SPECIAL = ("threadIdx.x", "blockDim.x", "(threadIdx.x & 31)", "gridDim.x", "blockIdx.x", "threadIdx.y")


@dataclass
class Values:
    """Draws expressions; ``known`` are the variables in scope with their types, ``own`` those of them that a
    statement here may assign to.
    """

    random: Random
    known: dict[str, str] = field(default_factory=dict)
    heavy: bool = True
    own: frozenset[str] = frozenset()

    def fork(self, *, path: bool = False) -> Values:
        """The same in an inner scope; a path may assign only to what it declares."""
        return Values(self.random, dict(self.known), self.heavy, frozenset() if path else self.own)

    def learn(self, name: str, type: str, *, assignable: bool = False) -> None:
        """``name`` is in scope from here on."""
        self.known[name] = type
        if assignable:
            self.own |= {name}

    def unsigned(self, depth: int = 2) -> str:
        """An expression of type unsigned."""
        draw = self.random
        if depth == 0 or draw.random() < 0.25:
            return self._leaf()
        kind = draw.random()
        if kind < 0.02:
            return draw.choice(_CALLS).format(self.unsigned(depth - 1))
        if kind < 0.2:
            return draw.choice(_UNARY).format(self.unsigned(depth - 1))
        if kind < 0.3:
            return f"a[({self.unsigned(depth - 1)}) % items]"
        if kind < 0.38:
            return f"__float_as_uint({self.floating(depth - 1)})"
        return draw.choice(_BINARY).format(self.unsigned(depth - 1), self.unsigned(depth - 1))

    def floating(self, depth: int = 2) -> str:
        """An expression of type float that is no NaN's payload."""
        draw = self.random
        floats = [name for name, type in self.known.items() if type in ("float", "double")]
        if depth == 0 or draw.random() < 0.25:
            if floats and draw.random() < 0.7:
                return f"(float){draw.choice(floats)}"
            return f"(float)({self._leaf()} & 0xffffu)"
        choices = _FLOAT if self.heavy else _FLOAT[:7]
        return draw.choice(choices).format(self.floating(depth - 1), self.floating(depth - 1))

    def of(self, type: str) -> str:
        """An expression of any of `TYPES`."""
        if type in ("float", "double"):
            return f"({type})({self.floating()})"
        if type == "bool":
            return self.condition()
        if type in WIDE:
            return f"(({type})({self.unsigned(1)}) * ({self.unsigned(1)}))"
        return f"({type})({self.unsigned()})"

    def condition(self, often: int = 4) -> str:
        """A condition that varies between lanes, true for some ``often`` of 16."""
        draw = self.random
        # Never a constant: the compiler would drop what depends on it.
        first = f"(hash32({self.unsigned(1)} ^ first) & 15u) < {often}u"
        kind = draw.random()
        if kind < 0.15:
            return f"{first} && ({self.unsigned(1)}) > ({self.unsigned(1)})"
        if kind < 0.25:
            return f"{first} || ({self.unsigned(1)}) % 11u == 3u"
        return first

    def _leaf(self) -> str:
        draw = self.random
        names = [name for name, type in self.known.items() if type not in ("float", "double")]
        if names and draw.random() < 0.8:
            name = draw.choice(names)
            wide = self.known[name] in WIDE and draw.random() < 0.5
            return f"(unsigned)({name} >> 29)" if wide else f"(unsigned){name}"
        return f"{draw.choice(_SPECIAL)}" if draw.random() < 0.3 else f"{draw.randrange(1, 100)}u"
