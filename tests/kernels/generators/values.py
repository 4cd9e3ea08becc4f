"""Random arithmetic over the registers that a piece of code may read and overwrite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.kernels.generators.code import Choices, Writer

# One letter a register type, `i` a shift count or bit position, `h` 16 bits, `d` 64 bits, `g` f64.
LETTERS = {"r": "b32", "d": "b64", "h": "b16", "f": "f32", "g": "f64", "p": "pred"}

OPERATIONS = {
    "b32": """
        add.s32 rr   sub.s32 rr   xor.b32 rr   and.b32 rr   or.b32 rr    mul.lo.s32 rr  mad.lo.s32 rrr
        shl.b32 ri   shr.u32 ri   shr.s32 ri   min.s32 rr   max.u32 rr   not.b32 r      neg.s32 r
        selp.b32 rrp popc.b32 r   clz.b32 r    bfe.u32 rii  mul.hi.u32 rr  shf.l.wrap.b32 rri
        cvt.u32.u16 h  cvt.s32.s16 h  cvt.u32.u64 d  mov.b32 f  cvt.rzi.s32.f32 f  abs.s32 r""",
    "b64": """
        cvt.s64.s32 r  cvt.u64.u32 r  mul.wide.s32 rr  mul.wide.u32 rr  add.s64 dd  xor.b64 dd  shl.b64 di
        mad.lo.s64 ddd  mad.wide.u32 rrd  selp.b64 ddp  mov.b64 g  shr.u64 di  sub.s64 dd  max.s64 dd""",
    "b16": "cvt.u16.u32 r  add.s16 hh  mul.lo.s16 hh  xor.b16 hh  shr.u16 hi  selp.b16 hhp  sub.s16 hh",
    "f32": """
        cvt.rn.f32.s32 r  cvt.rn.f32.u32 r  add.f32 ff  mul.f32 ff  fma.rn.f32 fff  sub.f32 ff  neg.f32 f
        abs.f32 f  min.f32 ff  max.f32 ff  selp.f32 ffp  sqrt.rn.f32 f  div.rn.f32 ff""",
    "f64": "cvt.rn.f64.s32 r  cvt.f64.f32 f  add.f64 gg  mul.f64 gg  fma.rn.f64 ggg  neg.f64 g  sub.f64 gg",
    "pred": """
        setp.lt.s32 rr  setp.ge.u32 rr  setp.eq.s32 rr  setp.gt.f32 ff  setp.ne.s64 dd  setp.lt.u16 hh
        and.pred pp  or.pred pp  xor.pred pp  not.pred p  setp.lt.and.s32 rrp  setp.leu.f64 gg""",
}
"""Operations by the type that they write: opcode and the types of its sources."""

TABLE: Mapping[str, list[tuple[str, str]]] = {
    type: list(zip(text.split()[::2], text.split()[1::2], strict=True)) for type, text in OPERATIONS.items()
}

# Integers are most of what paths compute on.
MIX = ("b32",) * 6 + ("b64", "f32", "pred", "b16", "b64", "f32", "f64")


@dataclass
class Scope:
    """What a piece of code may do with registers: ``values`` it may read, of them ``spare`` it may overwrite.

    ``unset`` may be written, and read from then on. ``pointers`` are registers by the buffer that they point to.
    ``slot`` numbers the iteration over all threads; ``rows`` may point to its row of the paths' buffer. ``place`` is
    where stores go: buffer, first 8-byte place in a row, number of places. ``quiet`` code touches no memory but
    through ``.nc``. ``scratch`` code may use local memory: a ``path`` any number of times, a ``trip`` of a variable
    loop once.
    """

    values: dict[str, list[str]] = field(default_factory=dict)
    spare: set[str] = field(default_factory=set)
    unset: dict[str, list[str]] = field(default_factory=dict)
    pointers: dict[str, str] = field(default_factory=dict)
    slot: str = ""
    rows: str | None = None
    place: tuple[str, int, int] = ("rest", 0, 1)
    quiet: bool = False
    scratch: str = ""

    def child(self) -> Scope:
        """The scope of a piece of code inside: what it defines is unknown outside."""
        values = {type: list(names) for type, names in self.values.items()}
        unset = {type: list(names) for type, names in self.unset.items()}
        return replace(self, values=values, spare=set(self.spare), unset=unset, pointers=dict(self.pointers))

    def add(self, type: str, name: str, spare: bool = False) -> str:
        """Makes ``name`` readable."""
        names = self.values.setdefault(type, [])
        if name not in names:
            names.append(name)
        if name in self.unset.get(type, ()):
            self.unset[type].remove(name)
            spare = True
        if spare:
            self.spare.add(name)
        return name

    def drop(self, names: set[str]) -> None:
        """Makes ``names`` unreadable."""
        self.values = {type: [n for n in known if n not in names] for type, known in self.values.items()}
        self.spare -= names

    def names(self) -> list[tuple[str, str]]:
        """All readable registers with their types."""
        return [(type, name) for type in sorted(self.values) for name in self.values[type]]


def source(ch: Choices, scope: Scope, w: Writer, letter: str) -> str:
    """An operand of a type: a readable register, or a literal where PTX has one."""
    if letter == "i":
        return str(ch.between(1, 15))
    type = LETTERS[letter]
    known = scope.values.get(type, [])
    if known and (letter == "p" or ch.chance(85)):
        return ch.pick(known)
    if letter == "r":
        return str(ch.pick([1, 3, -1, 7, 255, 0x9E37, 12345, -2147483648, 0]))
    if letter == "d":
        return str(ch.pick([1, 5, -3, 1 << 33]))
    if letter == "h":
        return str(ch.pick([1, 9, 255]))
    if letter == "f":
        return ch.pick(["0f3F800000", "0f40490FDB", "0fBF000000"])
    if letter == "g":
        return ch.pick(["0d3FF0000000000000", "0d400921FB54442D18"])
    return w.do("setp.ne.s32", "pred", ch.pick(scope.values["b32"]), 3)


def target(ch: Choices, scope: Scope, w: Writer, type: str) -> str:
    """A register to write: a fresh one, or one that may be overwritten, as where nvcc coalesced variables."""
    reusable = [n for n in scope.values.get(type, []) if n in scope.spare] + scope.unset.get(type, [])
    if reusable and ch.chance(35):
        return ch.pick(reusable)
    return w.new(type)


def compute(ch: Choices, scope: Scope, w: Writer, type: str, guarded: bool = False) -> str:
    """One random operation of ``type``; with ``guarded`` perhaps under a guard, its result a may-write."""
    opcode, letters = ch.pick(TABLE[type])
    # Without registers of the other types yet, stay with what integers give.
    if not all(letter in "ir" or scope.values.get(LETTERS[letter]) for letter in letters):
        opcode, letters = TABLE[type][0]
    sources = [source(ch, scope, w, letter) for letter in letters]
    may = [n for n in scope.values.get(type, []) if n in scope.spare]
    conditions = scope.values.get("pred", [])
    if guarded and may and conditions and ch.chance(60):
        name = ch.pick(may)
        sense = ch.pick(["", "!"])
        w.emit(f"@{sense}{ch.pick(conditions)} {opcode} \t{', '.join([name, *sources])}")
        return name
    name = target(ch, scope, w, type)
    w.emit(f"{opcode} \t{', '.join([name, *sources])}")
    return scope.add(type, name, spare=True)


def arithmetic(ch: Choices, scope: Scope, w: Writer, most: int) -> None:
    """Up to ``most`` random operations."""
    for _ in range(ch.between(0, most)):
        compute(ch, scope, w, ch.pick(MIX), guarded=ch.chance(10))


def digest(ch: Choices, scope: Scope, w: Writer, most: int = 5) -> str:
    """One 32-bit register that depends on up to ``most`` readable registers of all types, later ones preferred."""
    known = scope.names()
    taken = ch.some(known, most)
    result = w.do("mov.u32", "b32", ch.between(0, 9))
    for type, name in taken:
        word = as_word(w, type, name)
        mixed = w.do("mad.lo.s32", "b32", result, 31, word)
        result = mixed
    return result


def as_word(w: Writer, type: str, name: str) -> str:
    """A 32-bit register that tells values of a register apart."""
    if type == "b32":
        return name
    if type == "b64":
        return w.do("cvt.u32.u64", "b32", w.do("xor.b64", "b64", name, w.do("shr.u64", "b64", name, 32)))
    if type == "f64":
        return as_word(w, "b64", w.do("mov.b64", "b64", name))
    return {
        "b16": lambda: w.do("cvt.u32.u16", "b32", name),
        "f32": lambda: w.do("mov.b32", "b32", name),
        "pred": lambda: w.do("selp.u32", "b32", 1, 0, name),
    }[type]()


def scrambled(w: Writer, word: str, salt: int) -> str:
    """A 32-bit register whose low bits look random although ``word`` counts up."""
    product = w.do("mad.lo.s32", "b32", word, -1640531527, salt)
    return w.do("xor.b32", "b32", product, w.do("shr.u32", "b32", product, 15))
