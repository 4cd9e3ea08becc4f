"""Random kernels as typed IR: registers are declared and set, labels exist, loops end.

A kernel has parameters ``out`` (u64) and ``n`` (u32); each thread computes on a few registers of each
type and stores every one of them to ``out`` at the end, 96 bytes a thread (linear in ``%tid.x``).
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from cccopt.ptx.ir import (
    Address,
    Directive,
    Function,
    Guard,
    Instruction,
    Label,
    Literal,
    Marker,
    Module,
    Not,
    Operand,
    Pair,
    Register,
    RegisterDeclaration,
    RegisterNames,
    SpecialRegister,
    Statement,
    Symbol,
    Variable,
    Vector,
)

COUNT = 4
"""Registers of each type."""

KINDS = {"r": ".b32", "d": ".b64", "f": ".f32", "h": ".b16", "p": ".pred"}
PREFIX = {"r": "%r", "d": "%rd", "f": "%f", "h": "%rs", "p": "%p"}

# Opcode and operands: a register of a kind; `i` a small integer; `x` a special register; `s` a shift amount.
TEMPLATES = [
    "add.s32 r r r", "sub.s32 r r i", "mul.lo.s32 r r r", "mul.wide.s32 d r r", "mad.lo.s32 r r r r",
    "and.b32 r r r", "xor.b64 d d d", "shl.b32 r r s", "shr.u64 d d s", "not.b32 r r", "popc.b32 r r",
    "max.s32 r r i", "selp.b32 r r r p", "prmt.b32 r r r i", "bfe.u32 r r s s", "lop3.b32 r r r r i",
    "add.rn.f32 f f f", "fma.rn.f32 f f f f", "neg.f32 f f", "max.f32 f f f", "cvt.rn.f32.s32 f r",
    "cvt.u32.u64 r d", "cvt.s64.s32 d r", "cvt.u16.u32 h r", "add.s16 h h h", "cvt.u32.u16 r h",
    "setp.lt.s32 p r r", "setp.eq.f32 p f f", "xor.pred p p p", "mov.u32 r x", "mov.b32 r f", "mov.b64 d d",
]  # fmt: skip


def _register(kind: str) -> st.SearchStrategy[Register]:
    return st.integers(0, COUNT - 1).map(lambda i: Register(f"{PREFIX[kind]}{i}"))


_OPERANDS: dict[str, st.SearchStrategy[Operand]] = {
    **{kind: _register(kind) for kind in KINDS},
    "i": st.integers(-9, 99).map(lambda i: Literal(str(i))),
    "s": st.integers(0, 31).map(lambda i: Literal(str(i))),
    "x": st.sampled_from(["%tid.x", "%laneid", "%ntid.x", "%ctaid.x"]).map(SpecialRegister),
}
_GUARDS = st.none() | st.builds(Guard, _register("p"), st.booleans())


@st.composite
def _templated(draw: st.DrawFn) -> Instruction:
    opcode, *kinds = draw(st.sampled_from(TEMPLATES)).split()
    return Instruction(opcode, tuple(draw(_OPERANDS[kind]) for kind in kinds), draw(_GUARDS))


@st.composite
def _compound(draw: st.DrawFn) -> Instruction:
    """Vectors, pairs and negated predicates."""
    r, p = _register("r"), _register("p")
    first, second = draw(st.permutations(range(COUNT)))[:2]
    pair = (Register(f"%r{first}"), Register(f"%r{second}"))
    predicates = Pair(Register(f"%p{first}"), Register(f"%p{second}"))
    return draw(
        st.sampled_from(
            [
                Instruction("mov.b64", (Vector(pair), draw(_register("d")))),
                Instruction("mov.b64", (draw(_register("d")), Vector(pair))),
                Instruction("setp.ge.and.u32", (predicates, draw(r), draw(r), Not(draw(p)))),
            ]
        )
    )


def _block(depth: int) -> st.SearchStrategy[list[Callable[[_Names], list[Statement]]]]:
    leaf = (_templated() | _compound()).map(lambda i: lambda names: [i])
    nested = leaf if depth == 0 else leaf | _branch(depth - 1) | _loop(depth - 1)
    return st.lists(nested, min_size=1, max_size=5)


class _Names:
    """Labels and loop counters in the order of the text, so that equal draws give equal text."""

    def __init__(self) -> None:
        self.labels = 0
        self.loops = 0

    def label(self) -> str:
        self.labels += 1
        return f"$L_{self.labels}"


@st.composite
def _branch(draw: st.DrawFn, depth: int) -> Callable[[_Names], list[Statement]]:
    inner = draw(_block(depth))
    guard = Guard(draw(_register("p")), draw(st.booleans()))

    def statements(names: _Names) -> list[Statement]:
        after = names.label()
        jump = Instruction("bra", (Symbol(after),), guard)
        return [jump, *(s for part in inner for s in part(names)), Label(after)]

    return statements


@st.composite
def _loop(draw: st.DrawFn, depth: int) -> Callable[[_Names], list[Statement]]:
    inner = draw(_block(depth))
    trips = draw(st.sampled_from([Literal("1"), Literal("3"), Register("%trips")]))

    def statements(names: _Names) -> list[Statement]:
        head, number = names.label(), names.loops
        names.loops += 1
        counter, again = Register(f"%counter{number}"), Register(f"%again{number}")
        return [
            Instruction("mov.u32", (counter, Literal("0"))),
            Label(head),
            Marker("body.begin", number, (("file", "a b.cu"),)),
            *(s for part in inner for s in part(names)),
            Instruction("add.u32", (counter, counter, Literal("1"))),
            Instruction("setp.lt.u32", (again, counter, trips)),
            Instruction("bra", (Symbol(head),), Guard(again)),
        ]

    return statements


def _prologue() -> list[Statement]:
    statements = [
        Instruction("ld.param.u64", (Register("%out"), Address(Symbol("out")))),
        Instruction("ld.param.u32", (Register("%trips"), Address(Symbol("n")))),
        Instruction("and.b32", (Register("%trips"), Register("%trips"), Literal("7"))),
        Instruction("mov.u32", (Register("%thread"), SpecialRegister("%tid.x"))),
    ]
    for i in range(COUNT):
        statements += [
            Instruction(
                "mad.lo.u32", (Register(f"%r{i}"), Register("%thread"), Literal(str(i)), Literal("5"))
            ),
            Instruction("cvt.u64.u32", (Register(f"%rd{i}"), Register(f"%r{i}"))),
            Instruction("cvt.rn.f32.u32", (Register(f"%f{i}"), Register(f"%r{i}"))),
            Instruction("cvt.u16.u32", (Register(f"%rs{i}"), Register(f"%r{i}"))),
            Instruction("setp.gt.u32", (Register(f"%p{i}"), Register(f"%r{i}"), Literal("20"))),
        ]
    return list(statements)


def _epilogue() -> list[Statement]:
    base = Register("%out")
    statements: list[Statement] = [
        Instruction("mad.wide.u32", (base, Register("%thread"), Literal("96"), base)),
    ]
    stores = [("u32", "%r", 4, 0), ("u64", "%rd", 8, 16), ("f32", "%f", 4, 48), ("u16", "%rs", 2, 64)]
    for type_, prefix, size, start in stores:
        for i in range(COUNT):
            address = Address(base, Literal(str(start + i * size)))
            statements.append(Instruction(f"st.global.{type_}", (address, Register(f"{prefix}{i}"))))
    return [*statements, Instruction("ret")]


@st.composite
def modules(draw: st.DrawFn) -> Module:
    """Modules of one kernel ``k`` that computes, branches and loops, and stores all its registers."""
    names = _Names()
    parts = draw(_block(depth=2))
    middle = [statement for part in parts for statement in part(names)]
    declarations = [
        *(RegisterDeclaration(type_, (RegisterNames(PREFIX[k], COUNT),)) for k, type_ in KINDS.items()),
        RegisterDeclaration(".b32", (RegisterNames("%trips"), RegisterNames("%thread"))),
        RegisterDeclaration(".b64", (RegisterNames("%out"),)),
    ]
    if names.loops:
        declarations += [
            RegisterDeclaration(".b32", (RegisterNames("%counter", names.loops),)),
            RegisterDeclaration(".pred", (RegisterNames("%again", names.loops),)),
        ]
    kernel = Function(
        kind="entry",
        name="k",
        linkage=("visible",),
        parameters=(Variable("param", ".u64", "out"), Variable("param", ".u32", "n")),
        body=(*declarations, *_prologue(), *middle, *_epilogue()),
    )
    head = (
        Directive(".version", ("8.0",)),
        Directive(".target", ("sm_75",)),
        Directive(".address_size", ("64",)),
    )
    return Module((*head, kernel))
