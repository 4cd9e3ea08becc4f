"""Sums of random kernels: variables of the thread that iterations update by one operator, and nothing else reads."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.fuzz.cuda_values import Values

_TYPES = {
    "+": (
        "int",
        "unsigned",
        "unsigned",
        "long long",
        "unsigned long long",
        "float",
        "double",
        "unsigned short",
    ),
    "*": ("unsigned", "unsigned long long", "float"),
    "min": ("int", "unsigned", "float", "long long"),
    "max": ("int", "unsigned", "float", "double"),
    "&": ("unsigned", "unsigned long long", "bool"),
    "|": ("unsigned", "int", "bool"),
    "^": ("unsigned", "unsigned long long", "int"),
    "=": ("int", "bool", "unsigned short", "long long", "float"),
}
_ATOMIC = {"+": "Add", "min": "Min", "max": "Max", "&": "And", "|": "Or", "^": "Xor"}
_START = {"*": "3", "&": "~0", "min": "0x7ffffff0", "max": "1"}
_ODD = ("0x7fc00123u", "0x00000007u", "0x80000003u", "0x80000000u")
"""Bits of floats: a NaN with a payload, denormals, -0."""


@dataclass(frozen=True)
class Sum:
    """One sum: its number among those of the kernel, and how the kernel ends with it."""

    number: int
    operator: str
    type: str
    atomic: bool
    odd: bool
    """Whether a minimum or maximum meets NaN, denormals and infinities."""

    @property
    def name(self) -> str:
        return f"s{self.number}"

    @property
    def floating(self) -> bool:
        return self.type in ("float", "double")

    def declaration(self) -> str:
        if self.floating:
            start = f"__uint_as_float({_ODD[self.number]})" if self.odd else "1.5f"
        else:
            start = _START.get(self.operator, "0")
        return f"{self.type} {self.name} = ({self.type}){start};"

    def update(self, values: Values) -> str:
        """One statement that updates the sum."""
        if self.operator == "=" or self.type == "bool":
            return self._set(values)
        draw, name, value = values.random, self.name, self._value(values)
        if self.operator in ("min", "max"):
            return draw.choice(
                (f"{name} = {self._pick(name, value)};", f"{name} = {self._pick(value, name)};")
            )
        updates = [f"{name} {self.operator}= {value};"] * 3 + [f"{name} = {value} {self.operator} {name};"]
        if self.operator == "+" and not self.floating:
            updates += [f"{name} -= {draw.randrange(1, 9)};", f"{name}++;"]
        if self.type == "float" and self.operator == "+":
            updates += [f"{name} = fmaf({value}, {self._value(values)}, {name});"]
        return (
            f"if ({values.condition(8)}) {draw.choice(updates)}"
            if draw.random() < 0.2
            else draw.choice(updates)
        )

    def _set(self, values: Values) -> str:
        """One statement that sets the flag to its constant, or does not."""
        draw, name, often = values.random, self.name, values.random.choice((2, 8, 40))
        if self.operator == "=" or draw.random() < 0.4:
            constant = {"|": "true", "&": "false"}.get(self.operator, f"({self.type}){self.number * 7 - 1}")
            return (
                f"{name} = {constant};"
                if draw.random() < 0.2
                else f"if ({values.condition(often)}) {name} = {constant};"
            )
        condition = values.condition(often)
        if self.operator == "&":
            condition = f"!({condition})"
        elif draw.random() < 0.2:
            condition = f"({values.unsigned(1)} & 1u)"
        long = f"{name} = {name} {2 * self.operator} {condition};"
        return draw.choice((f"{name} {self.operator}= {condition};", long))

    def end(self) -> str:
        """What is done with the sum behind the loop."""
        cast = f"(unsigned long long){self.name}"
        if self.floating and self.operator in ("min", "max"):
            if self.type == "double":
                return f"sums[me * 4u + {self.number}u] = __double_as_longlong({self.name});"
            return f"extremes[me * 4u + {self.number}u] = __float_as_uint({self.name});"
        if self.floating and self.operator == "=":
            return f"sums[me * 4u + {self.number}u] = __float_as_uint({self.name});"
        if self.floating:
            buffer = "fsums" if self.type == "float" else "dsums"
            if self.atomic and self.operator == "+":
                return f"atomicAdd(&{buffer}[{self.number}], {self.name});"
            return f"{buffer}[8u + me * 4u + {self.number}u] = {self.name};"
        if self.atomic and self.operator in _ATOMIC and self.type in ("int", "unsigned"):
            cast = "(int*)" if self.type == "int" else ""
            return f"atomic{_ATOMIC[self.operator]}({cast}&totals[{self.number}], {self.name});"
        return f"sums[me * 4u + {self.number}u] = {cast};"

    def _pick(self, left: str, right: str) -> str:
        if self.floating:
            suffix = "f" if self.type == "float" else ""
            return f"f{self.operator}{suffix}({left}, {right})"
        return f"{self.operator}({left}, {right})"

    def _value(self, values: Values) -> str:
        value = values.unsigned(1)
        if not self.floating:
            # Signed sums must not overflow.
            narrow = f"(({value}) & 0xffffu)" if self.type in ("int", "long long") else f"({value})"
            return f"({self.type}){narrow}" if self.operator != "*" else f"({self.type})({value} | 1u)"
        if self.operator == "*":
            return f"(1.f + ({self.type})(({value}) & 255u) * 1e-6f)"
        if self.odd:
            # Other values must not hide these.
            if values.random.random() < 0.4:
                # nvcc folds the minimum with a NaN that it knows, which keeps the other one's payload.
                return f"({self.type})__uint_as_float({values.random.choice(_ODD[1:])})"
            return (
                f"({self.type})(({value}) & 0xffffu) * ({self.type}){'1' if self.operator == 'min' else '-1'}"
            )
        if self.operator == "+":
            return f"(({self.type})(({value}) & 1023u) * ({self.type})0.001)"
        return f"(({self.type})(({value}) & 0xffffu) - ({self.type})3e4)"


def draw_sums(random: Random) -> tuple[Sum, ...]:
    """The sums of a kernel: none for many, up to three."""
    sums = []
    for number in range(random.choice((0, 0, 1, 1, 1, 2, 3))):
        operator = random.choice(("+", "+", "+", *_TYPES))
        type = random.choice(_TYPES[operator])
        sums.append(
            Sum(
                number,
                operator,
                type,
                random.random() < 0.5,
                operator in ("min", "max") and random.random() < 0.4,
            )
        )
    return tuple(sums)


def clauses(sums: tuple[Sum, ...]) -> str:
    """The clauses `reduce` that name all sums."""
    operators = dict.fromkeys(s.operator for s in sums)
    named = {o: ", ".join(s.name for s in sums if s.operator == o) for o in operators}
    return "".join(f" reduce({operator}: {names})" for operator, names in named.items())
