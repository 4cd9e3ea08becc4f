"""Associative operators, and the instructions that update a register with one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cccopt.analysis import effects
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Literal, Register
from cccopt.ptx.isa import Arithmetic, Memory, width

_NAMES = {"&": "and", "|": "or", "^": "xor", "min": "min", "max": "max"}
_INTEGERS = {f"{sign}{bits}": f"b{bits}" for sign in "usb" for bits in (32, 64)}


@dataclass(frozen=True, slots=True)
class Operator:
    """An associative and commutative operator (as a pragma spells it) on a type: ``f32``, ``f64``, ``b32``, ``b64``;
    for `min` and `max` of integers, one with a sign such as ``u32``. ``ftz`` flushes subnormal numbers, ``nan`` keeps
    NaN.
    """

    sign: str
    type: str
    ftz: bool = False
    nan: bool = False

    @property
    def floating(self) -> bool:
        return self.type.startswith("f")

    @property
    def bits(self) -> int:
        """The width of a value."""
        return width(self.type)

    @property
    def is_extreme(self) -> bool:
        """Whether the operator is `min` or `max`."""
        return self.sign in ("min", "max")

    @property
    def is_idempotent(self) -> bool:
        """Whether a value combined with itself stays as it is."""
        return self.is_extreme or self.sign in "&|"

    @property
    def is_float_extreme(self) -> bool:
        """Whether the operator is `min` or `max` of floating-point numbers. They keep their bits, except when combined
        with the identity: that makes a NaN the canonical one and, with ``.ftz``, a subnormal number zero.
        """
        return self.floating and self.is_extreme

    @property
    def reassociates(self) -> bool:
        """Whether a different order gives different last digits."""
        return self.floating and self.sign in "+*"

    @property
    def opcode(self) -> str:
        """The opcode of the instruction ``opcode d, a, b`` that combines two contributions."""
        flags = (".ftz" if self.ftz else "") + (".NaN" if self.nan else "")
        if self.sign in _NAMES:
            return f"{_NAMES[self.sign]}{flags}.{self.type}"
        # Without a rounding modifier ptxas may fuse a product and a sum.
        how = f".rn{flags}.{self.type}" if self.floating else f".s{self.bits}"
        return f"add{how}" if self.sign == "+" else f"mul{'' if self.floating else '.lo'}{how}"

    @property
    def atomic(self) -> str | None:
        """The end of the opcode of the operator's shared atomic (``add.u32``), if there is one."""
        if self.sign == "*" or (self.floating and self.sign != "+"):
            return None
        return (
            f"{_NAMES.get(self.sign, 'add')}.{self.type.replace('b', 'u') if self.sign == '+' else self.type}"
        )

    @property
    def identity(self) -> Literal:
        """The bits of the value that leaves every other value unchanged."""
        ones = (1 << self.bits) - 1
        top = 1 << (self.bits - 1)
        infinity = {"f32": 0x7F800000, "f64": 0x7FF0000000000000}.get(self.type, 0)
        if self.is_float_extreme:
            # Without .NaN, these opcodes give the other operand if one is NaN, and never this NaN.
            bits = (infinity | (top if self.sign == "max" else 0)) if self.nan else ones
        elif self.floating:
            bits = top if self.sign == "+" else {"f32": 0x3F800000, "f64": 0x3FF0000000000000}[self.type]
        elif self.is_extreme:
            lowest, highest = (top, top - 1) if self.type.startswith("s") else (0, ones)
            bits = lowest if self.sign == "max" else highest
        else:
            bits = {"+": 0, "*": 1, "&": ones, "|": 0, "^": 0}[self.sign]
        return Literal(f"0x{bits:0{self.bits // 4}X}")

    def merges(self, other: Operator) -> bool:
        """Whether both may update one accumulator."""
        flushing = self.ftz == other.ftz or not self.is_float_extreme
        return flushing and (self.sign, self.type, self.nan) == (other.sign, other.type, other.nan)


def operator_of(instruction: Instruction, name: str) -> Operator | None:
    """The operator with which ``instruction`` updates the register ``name``, which must be exactly one operand."""
    sign, arithmetic = _sign(instruction), isa.facts(instruction).arithmetic
    modifiers, kind = instruction.parts[1:-1], instruction.parts[-1]
    operands = instruction.operands
    long = arithmetic in (Arithmetic.PRODUCT_SUM, Arithmetic.FUSED_PRODUCT_SUM)
    if sign is None or len(operands) != (4 if long else 3) or not isinstance(operands[0], Register):
        return None
    if long:
        places: tuple[int, ...] = (3,)
    else:
        places = (1,) if arithmetic is Arithmetic.DIFFERENCE else (1, 2)
    mentions = [k for k, operand in enumerate(operands) if k and operand == Register(name)]
    guarded = instruction.guard is not None and instruction.guard.register.name == name
    if len(mentions) != 1 or mentions[0] not in places or guarded:
        return None
    if kind in ("f32", "f64"):
        made = Operator(sign, kind, "ftz" in modifiers, "NaN" in modifiers)
        allowed = {"ftz", "NaN"} if made.is_extreme else {"rn", "ftz"}
        fits = (
            arithmetic is not Arithmetic.PRODUCT_SUM and sign not in "&|^" and allowed.issuperset(modifiers)
        )
        return made if fits else None
    if kind not in _INTEGERS:
        return None
    product = arithmetic in (Arithmetic.PRODUCT, Arithmetic.PRODUCT_SUM)
    wide = arithmetic is Arithmetic.PRODUCT_SUM and modifiers == ("wide",)
    plain = modifiers == (("lo",) if product else ())
    if not (plain or wide):
        return None
    if wide:
        return Operator(sign, "b64") if width(kind) == 32 else None
    made = Operator(sign, kind)
    return made if made.is_extreme else replace(made, type=_INTEGERS[kind])


def _sign(instruction: Instruction) -> str | None:
    """The operator that ``instruction`` applies to registers, as a pragma spells it."""
    facts = isa.facts(instruction)
    return facts.reduction if facts.memory is Memory.NONE else None


def hands_on(instruction: Instruction, name: str) -> bool:
    """Whether ``instruction`` only copies the register ``name``, selects it, or (guarded) leaves it as it is."""
    operands, guard = instruction.operands, instruction.guard
    if guard is not None and guard.register.name == name:
        return False
    if not operands or not isinstance(operands[0], Register):
        return False
    if instruction.base == "mov" and len(operands) == 2:
        return True
    if instruction.base == "selp":
        return operands[3] != Register(name)
    # The old value of what a guarded update may write: the search for reductions checks it.
    sources = effects.reads(instruction)
    return guard is not None and _sign(instruction) is not None and name not in sources
