"""Functions marked ``recursive`` and their calls: a loop, as nvcc makes of a call at the end, or the call of itself.

walk(data, paths, counters, slot, depth, limit, carried ...):
    if (depth >= limit) return carried;
    BODY
    if (some) return carried;
    return walk(..., depth + 1, limit, changed ...);        or a jump back, with a mark on the way
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.kernels.generators.build import ROW, Build, Site, atomic, element, load, parameter, store
from tests.kernels.generators.code import Writer
from tests.kernels.generators.paths import BYTES, CARRIED, TAIL, copied, letter
from tests.kernels.generators.pieces import condition
from tests.kernels.generators.values import MIX, Scope, as_word, compute, digest, scrambled, source

POINTERS = ("data", "paths", "counters")
NUMBERS = ("slot", "depth", "limit")
DEEPEST = 8
ROOM = 64  # bytes of context: pointers, numbers, what is carried

Register = tuple[str, str]
"""A type and a name."""


@dataclass(frozen=True)
class _Function:
    """How a function is called: its name, the types of what it carries on, how many of these, all 32 bits wide, are
    results, and whether what is carried makes up a structure.
    """

    name: str
    carried: tuple[str, ...]
    results: int
    packed: bool

    @property
    def types(self) -> list[str]:
        """The types of all parameters."""
        return [*("b64" for _ in POINTERS), *("b32" for _ in NUMBERS), *self.carried]

    def places(self) -> list[tuple[int, int]]:
        """Of each parameter the variable that holds it, and the offset there."""
        first = len(POINTERS) + len(NUMBERS)
        if not self.packed:
            return [(k, 0) for k in range(len(self.types))]
        return [(min(k, first), 8 * max(k - first, 0)) for k in range(len(self.types))]

    def declared(self, names: str) -> list[str]:
        """The declarations of the parameters, called ``names`` and a number."""
        first = len(POINTERS) + len(NUMBERS)
        if not self.packed:
            return [f".param .b{8 * BYTES[type]} {names}{k}" for k, type in enumerate(self.types)]
        single = [f".param .b{8 * BYTES[type]} {names}{k}" for k, type in enumerate(self.types[:first])]
        return [*single, f".param .align 8 .b8 {names}{first}[{8 * len(self.carried)}]"]

    def returned(self, name: str) -> str:
        """The declaration of the result, if there is one."""
        kinds = {0: "", 1: f".param .b32 {name}"}
        return kinds.get(self.results, f".param .align 4 .b8 {name}[{4 * self.results}]")


def recursion(b: Build, scope: Scope) -> None:
    """Calls a new function, perhaps under a condition, and stores what it results in."""
    ch, w = b.ch, b.w
    results = ch.pick([1, 2, 0])
    carried = ("b32",) * max(results, 1) + tuple(
        ch.pick(["b32", "f32", "b64", "f64"]) for _ in range(ch.number(3))
    )
    function = _Function(f"walk{len(b.functions)}", carried, results, ch.chance(35))
    region = b.region()
    place = ("paths", b.places, 4)
    b.places += 4
    b.left -= ROOM + CARRIED + (TAIL if results else 0)
    over = w.label()
    left = [("b32", w.do("mov.b32", "b32", source(ch, scope, w, "r"))) for _ in range(results)]
    if ch.chance(40):
        w.emit(f"@!{condition(b, scope)} bra \t{over}")
    depth = w.do("and.b32", "b32", scrambled(w, scope.slot, ch.number(99)), 1)
    limit = w.do("and.b32", "b32", scrambled(w, scope.slot, ch.between(100, 199)), DEEPEST - 1)
    raw = [w.do("ld.param.u64", "b64", f"[{parameter(buffer)}]") for buffer in POINTERS]
    first = [source(ch, scope, w, letter(type)) for type in carried]
    _call(w, function, [*raw, scope.slot, depth, limit, *first], left)
    w.place(over)
    if results:
        word = left[0][1]
        for type, name in left[1:]:
            word = w.do("mad.lo.s32", "b32", word, 31, as_word(w, type, name))
        address = element(b, scope.child(), "tails", scope.slot, ROW["tails"])
        w.emit(f"st.global.u32 \t[{address}+{8 * b.tails}], {word}")
        b.tails += 1
    b.functions.append(_define(b, scope, function, region, place))
    scope.quiet = scope.quiet or not b.independent


def _call(w: Writer, function: _Function, arguments: Sequence[str], results: Sequence[Register]) -> None:
    """A call as nvcc writes it."""
    number = w.labels = w.labels + 1
    declared = function.declared("param")
    lines = [f"\t{{ // callseq {number}, 0", "\t.reg .b32 temp_param_reg;"]
    known: set[int] = set()
    for (variable, offset), type, value in zip(function.places(), function.types, arguments, strict=True):
        if variable not in known:
            known.add(variable)
            lines.append(f"\t{declared[variable]};")
        lines.append(f"\tst.param.{type} \t[param{variable}+{offset}], {value};")
    given = ", ".join(f"param{k}" for k in range(len(declared)))
    if results:
        lines.append(f"\t{function.returned('retval0')};")
    lines.append(f"\tcall.uni {'(retval0), ' if results else ''}{function.name}, ({given});")
    lines += [f"\tld.param.b32 \t{name}, [retval0+{4 * k}];" for k, (_, name) in enumerate(results)]
    w.lines += [*lines, f"\t}} // callseq {number}"]


def _define(b: Build, around: Scope, function: _Function, region: int, place: tuple[str, int, int]) -> str:
    """The text of the function."""
    ch = b.ch
    w = Writer()
    own = replace(b, w=w)
    names = [f"{function.name}_param_{k}" for k in range(len(function.types))]
    loaded = [
        w.do(f"ld.param.{type.replace('b', 'u')}", type, f"[{names[variable]}+{offset}]")
        for (variable, offset), type in zip(function.places(), function.types, strict=True)
    ]
    late = ch.chance(50)
    if not late:
        own.mark("recursive.begin", region)
    pointers = [w.do("cvta.to.global.u64", "b64", name) for name in loaded[: len(POINTERS)]]
    slot, depth, limit = loaded[len(POINTERS) :][: len(NUMBERS)]
    carried = [*zip(function.carried, loaded[-len(function.carried) :], strict=True)]
    scope = Scope(
        pointers=dict(zip(POINTERS, pointers, strict=True)), slot=slot, place=place, quiet=around.quiet
    )
    for type, name in (("b32", slot), ("b32", depth), *carried):
        scope.add(type, name)
    if late:
        own.mark("recursive.begin", region)
    done, head = w.label(), w.label()
    w.emit(f"@{w.do('setp.ge.s32', 'pred', depth, limit)} bra \t{done}")
    looping = ch.chance(50)
    if looping:
        w.place(head)
    inner = scope.child()
    _body(own, inner, depth)
    if ch.chance(40):
        w.emit(f"@{condition(own, inner)} bra \t{done}")
    if looping:
        changed = [(type, _changed(own, inner, type, name)) for type, name in carried]
        test = w.new("pred")
        if ch.chance(50):
            own.mark("recursive.begin", region)
        w.emit(f"add.s32 \t{depth}, {depth}, 1")
        for (type, name), (_, value) in zip(carried, changed, strict=True):
            copied(own, type, name, value)
        own.mark("recursive.begin", region)
        w.emit(f"setp.lt.s32 \t{test}, {depth}, {limit}")
        w.emit(f"@{test} bra \t{head}")
    else:
        other = w.label()
        more = ch.chance(30)
        if more:
            w.emit(f"@{condition(own, inner)} bra \t{other}")
        for target in (other, None) if more else (None,):
            step = inner.child()
            passed = [_changed(own, step, type, name) for type, name in carried]
            deeper = w.do("add.s32", "b32", depth, 1 if target is None else 2)
            given = [*loaded[: len(POINTERS)], slot, deeper, limit, *passed]
            _call(w, function, given, carried[: function.results])
            if target is not None:
                w.emit(f"bra.uni \t{done}")
                w.place(target)
    w.place(done)
    for k, (_, name) in enumerate(carried[: function.results]):
        w.emit(f"st.param.b32 \t[func_retval0+{4 * k}], {name}")
    w.emit("ret")
    b.sites.append(Site(region, b.entered, b.entered))
    given = ",\n".join(f"\t{line}" for line in function.declared(f"{function.name}_param_"))
    returned = function.returned("func_retval0")
    head_line = f".func {f'({returned}) ' if returned else ''}{function.name}(\n{given}\n)"
    return "\n".join([head_line, "{", *w.declarations(), *w.lines, "}\n\n"])


def _body(b: Build, scope: Scope, depth: str) -> None:
    """What a call does: random pieces that need nothing but the parameters; each call stores to a place of its own."""
    ch, w = b.ch, b.w
    for _ in range(ch.between(1, 5)):
        kind = ch.number(5)
        if kind <= 1:
            compute(ch, scope, w, ch.pick(MIX), guarded=ch.chance(20))
        elif kind == 2:
            quiet = replace(scope, quiet=True)  # `plain` is no parameter
            load(b, quiet)
        elif kind == 3:
            _branch(b, scope)
        elif not scope.quiet:
            atomic(b, scope)
    if ch.chance(80):
        store(b, scope, depth, most=6)


def _branch(b: Build, scope: Scope) -> None:
    """if (p) x = ...; or a loop of some turns"""
    ch, w = b.ch, b.w
    value = w.do("mov.b32", "b32", source(ch, scope, w, "r"))
    over = w.label()
    w.emit(f"@{condition(b, scope)} bra \t{over}")
    inner = scope.child()
    inner.unset = {}
    if ch.chance(40):
        turn, head = w.do("and.b32", "b32", source(ch, scope, w, "r"), 3), w.label()
        w.place(head)
        w.emit(f"mad.lo.s32 \t{value}, {value}, 5, {turn}")
        w.emit(f"add.s32 \t{turn}, {turn}, -1")
        w.emit(f"@{w.do('setp.gt.s32', 'pred', turn, 0)} bra \t{head}")
    else:
        w.emit(f"mad.lo.s32 \t{value}, {value}, 3, {digest(ch, inner, w, 3)}")
    w.place(over)
    scope.add("b32", value, spare=True)


def _changed(b: Build, scope: Scope, type: str, name: str) -> str:
    """What is carried to the next call instead of ``name``."""
    value = compute(b.ch, scope, b.w, type)
    opcode = {"b32": "add.s32", "b64": "add.s64", "f32": "add.f32", "f64": "add.f64"}[type]
    return b.w.do(opcode, type, name, value)
