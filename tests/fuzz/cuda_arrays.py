"""Local arrays of random kernels: their places found in data, used anywhere in an iteration, so that they live across
marked paths.

Each is filled in each iteration, or grows as a stack. One that is *kept* is filled before the marked loop alone: then
an iteration reads what others have stored, and a rewrite must be refused, or right. What draws them has numbers of its
own, so that kernels without arrays stay what they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.fuzz.cuda_values import Values

_TYPES = ("unsigned", "unsigned", "unsigned char", "unsigned short", "unsigned long long", "signed char")


@dataclass(frozen=True)
class Array:
    """An array of ``length`` elements; a stack counts those that it has in ``top``."""

    name: str
    type: str
    length: int
    top: str = ""

    @property
    def declaration(self) -> str:
        return f"{self.type} {self.name}[{self.length}];"

    def place(self, index: str) -> str:
        """An element that has a value, as ``index`` says."""
        return f"{self.name}[({index}) % {self.top or f'{self.length}u'}]"


@dataclass
class Arrays:
    """The arrays of one kernel; ``open`` are those that statements may use where the text is now."""

    random: Random
    kept: bool = False
    all: list[Array] = field(default_factory=list)
    outside: bool = False
    open: bool = False
    declared: bool = False

    @classmethod
    def drawn(cls, seed: int, *, kept: bool) -> Arrays:
        """The arrays of the kernel ``seed``; most have none."""
        draw = Random(seed * 7919 + 11)
        found = cls(draw, kept=kept)
        if draw.random() < 0.16:
            for number in range(draw.choice((1, 1, 1, 2))):
                length = draw.choice((2, 3, 4, 5, 6, 8, 8, 12, 16, 40))
                top = f"top{number}" if length > 3 and not kept and draw.random() < 0.4 else ""
                found.all.append(Array(f"arr{number}", draw.choice(_TYPES), length, top))
            found.outside = kept or draw.random() < 0.25
        return found

    def before(self) -> list[str]:
        """What precedes the first marked loop."""
        if not self.outside or self.declared:
            return []
        self.declared = True
        lines = [array.declaration for array in self.all]
        return lines + [self._filled(array, "me") for array in self.all if self.kept]

    def begin(self, values: Values) -> list[str]:
        """What an iteration begins with; from here on statements use the arrays."""
        self.open = bool(self.all)
        if self.kept:
            return []
        lines: list[str] = []
        for array in self.all:
            lines += [] if self.outside else [array.declaration]
            if array.top:
                lines.append(f"unsigned {array.top} = 0u; {self._push(array, values)}")
            else:
                lines.append(self._filled(array, values.unsigned(1)))
        return lines

    def end(self, values: Values) -> list[str]:
        """What an iteration ends with: mostly something reads what it has stored."""
        read = self.open and self.random.random() < 0.8
        self.open = False
        return [f"atomicAdd(&count[at & 15u], {self.read(values)});"] if read else []

    def after(self) -> list[str]:
        """What follows the marked loop: now and then it reads what the last iteration has left, in threads without one
        what was there before. Arrays that are not filled before the loop are left out: it would read no value.
        """
        found = [array for array in self.all if not array.top]
        if not self.kept or not found or self.random.random() < 0.7:
            return []
        return [f"atomicAdd(&count[me & 15u], (unsigned){found[0].place('me')});"]

    # --- statements ---

    def wants(self) -> bool:
        """Whether the next access is to an array."""
        return self.open and self.random.random() < 0.4

    def read(self, values: Values) -> str:
        """An expression of type unsigned."""
        return f"(unsigned){self.random.choice(self.all).place(values.unsigned(1))}"

    def write(self, values: Values) -> str:
        """A store to an array; to a stack also a push or a pop."""
        array = self.random.choice(self.all)
        if array.top and self.random.random() < 0.6:
            return self.random.choice((self._push(array, values), f"if ({array.top} > 1u) {array.top}--;"))
        sign = self.random.choice(("=", "=", "+=", "^="))
        return f"{array.place(values.unsigned(1))} {sign} ({array.type})({values.unsigned(1)});"

    def _push(self, array: Array, values: Values) -> str:
        value = f"{array.name}[{array.top}++] = ({array.type})({values.unsigned(1)});"
        return f"if ({array.top} < {array.length}u) {value}"

    def _filled(self, array: Array, value: str) -> str:
        rolled = self.random.choice(("", "", "#pragma unroll 1\n"))
        loop = f"for (unsigned q = 0u; q < {array.length}u; q++)"
        return f"{rolled}{loop} {array.name}[q] = ({array.type})(({value}) + q * 3u);"
