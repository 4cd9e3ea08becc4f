"""Accumulators that iterations only update, as the clause `reduce` says: what they begin with, updates in all shapes
that may stand in a path or outside of one, and where they end behind the loop.

Floating-point accumulators get small integers only: sums of these are the same in any order.
"""

from __future__ import annotations

from tests.kernels.generators.build import COUNTER_BYTES, REDUCTIONS, Accumulator, Build, pointer
from tests.kernels.generators.values import Scope, compute, source

SIGNS = ("+", "+", "min", "max", "&", "|", "^", "*")
MOST = 3
RESERVED = 160
"""Bytes a thread that stacks leave to owners' slots, and to their addresses and trips' partials in contexts."""


def begin(b: Build, thread: str) -> None:
    """Makes the kernel's accumulators."""
    for _ in range(b.ch.between(1, MOST)):
        sign = b.ch.pick(SIGNS)
        type = b.ch.pick([t for s, t in REDUCTIONS if s == sign])
        first = b.ch.pick(["neutral", "neutral", "thread", "number"])
        b.sums.append(Accumulator(b.w.new(_register(type)), sign, type, first))
    restart(b, thread)


def restart(b: Build, thread: str) -> None:
    """Gives the accumulators their first values."""
    for sum in b.sums:
        bits = REDUCTIONS[sum.sign, sum.type][1]
        if sum.first == "neutral":
            b.w.emit(f"mov.b{sum.bits} \t{sum.register}, {_literal(sum, bits)}")
        elif sum.floating:
            b.w.emit(f"cvt.rn.{sum.type}.u32 \t{sum.register}, {thread if sum.first == 'thread' else 5}")
        elif sum.first == "thread":
            b.w.emit(f"{'mov.u32' if sum.bits == 32 else 'cvt.u64.u32'} \t{sum.register}, {thread}")
        else:
            b.w.emit(f"mov.b{sum.bits} \t{sum.register}, {_literal(sum, (bits ^ 0x55) or 9)}")


def clause(b: Build) -> str:
    """The clause of the loop's marker: an operator and a variable each."""
    named = ",".join(f"{sum.sign}:v{k}" for k, sum in enumerate(b.sums))
    return f" reduce={named}" if named else ""


def update(b: Build, scope: Scope) -> None:
    """Perhaps updates some of the accumulators, by a value of the scope."""
    for sum in b.sums:
        if b.ch.chance(45):
            _SHAPES[b.ch.pick([*_SHAPES])](b, scope, sum)


def behind(b: Build, scope: Scope, type: str, name: str) -> None:
    """Perhaps updates accumulators, plainly, by what a path left: nvcc merges updates of two branches so."""
    for sum in b.sums:
        if b.ch.chance(50):
            _plain(b, sum, sum.register, _value(b, Scope({type: [name], "b32": [scope.slot]}), sum))


def outcomes(b: Build, scope: Scope) -> list[tuple[str, str]]:
    """Behind the loop: puts some accumulators into one result for all lanes; types and registers of the others, which
    each lane is to store for itself.
    """
    kept = []
    for sum in b.sums:
        atomic = REDUCTIONS[sum.sign, sum.type][0]
        kind = b.ch.number(100)
        if atomic is not None and kind < 65:
            place = COUNTER_BYTES + 8 * [*REDUCTIONS].index((sum.sign, sum.type))
            b.w.emit(f"red.global.{atomic} \t[{pointer(b, scope, 'counters')}+{place}], {sum.register}")
        if atomic is None or not 5 <= kind < 65:
            kept.append((_register(sum.type), sum.register))
    return kept


def _register(type: str) -> str:
    """The type of a register for values of ``type``."""
    return type if type.startswith("f") else f"b{type[1:]}"


def _literal(sum: Accumulator, bits: int) -> str:
    return f"0x{bits & ((1 << sum.bits) - 1):X}"


def _value(b: Build, scope: Scope, sum: Accumulator) -> str:
    """A value to update by: for `&` and `|` one that leaves most bits as they are."""
    ch, w = b.ch, b.w
    word = source(ch, scope, w, "r")
    if sum.floating:
        return w.do(f"cvt.rn.{sum.type}.u32", sum.type, w.do("and.b32", "b32", word, 15))
    type = f"b{sum.bits}"
    if sum.bits == 64:
        known = scope.values.get("b64")
        word = ch.pick(known) if known and ch.chance(50) else w.do("mul.wide.u32", "b64", word, 0x9E3779B1)
    bit = 1 << ch.number(sum.bits - 1)
    if sum.sign == "&":
        return w.do(f"or.{type}", type, word, ~bit)
    if sum.sign == "|":
        return w.do(f"and.{type}", type, word, bit)
    if sum.sign == "*":
        return w.do(f"or.{type}", type, word, 1)  # of even factors, nothing is left soon
    return word if word.startswith("%") else w.do(f"mov.{type}", type, word)


def _opcode(sum: Accumulator) -> str:
    names = {"+": "add", "*": "mul" if sum.floating else "mul.lo", "&": "and", "|": "or", "^": "xor"}
    return f"{names.get(sum.sign, sum.sign)}.{sum.type}"


def _plain(b: Build, sum: Accumulator, target: str, value: str, guard: str = "", old: str = "") -> None:
    """target = old (the accumulator, if none is given) and value, by the operator"""
    operands = [old or sum.register, value]
    if b.ch.chance(40):
        operands.reverse()
    b.w.emit(f"{guard}{_opcode(sum)} \t{target}, {', '.join(operands)}")


def _once(b: Build, scope: Scope, sum: Accumulator) -> None:
    _plain(b, sum, sum.register, _value(b, scope, sum))


def _guarded(b: Build, scope: Scope, sum: Accumulator) -> None:
    value = _value(b, scope, sum)
    sense = b.ch.pick(["", "!"])
    _plain(b, sum, sum.register, value, f"@{sense}{compute(b.ch, scope, b.w, 'pred')} ")


def _by_way(b: Build, scope: Scope, sum: Accumulator) -> None:
    """By way of other registers."""
    first, second = (b.w.new(_register(sum.type)) for _ in range(2))
    _plain(b, sum, first, _value(b, scope, sum))
    _plain(b, sum, second, _value(b, scope, sum), old=first)
    b.w.emit(f"mov.{_moved(sum)} \t{sum.register}, {second}")


def _chosen(b: Build, scope: Scope, sum: Accumulator) -> None:
    """A choice between the old value and the new one."""
    made = b.w.new(_register(sum.type))
    _plain(b, sum, made, _value(b, scope, sum))
    condition = compute(b.ch, scope, b.w, "pred")
    choice = [made, sum.register] if b.ch.chance(50) else [sum.register, made]
    b.w.emit(f"selp.{_register(sum.type)} \t{sum.register}, {', '.join(choice)}, {condition}")


def _special(b: Build, scope: Scope, sum: Accumulator) -> None:
    """What else nvcc makes: products and differences that are added, comparisons for extremes."""
    w, type, register = b.w, sum.type, sum.register
    value = _value(b, scope, sum)
    if sum.sign in ("min", "max") and not sum.floating:
        less, more = (value, register) if sum.sign == "min" else (register, value)
        test = w.do(f"setp.lt.{type}", "pred", less, more)
        w.emit(f"selp.b{sum.bits} \t{register}, {value}, {register}, {test}")
    elif sum.sign != "+":
        _plain(b, sum, register, value)
    elif b.ch.chance(40):
        w.emit(f"sub.{type} \t{register}, {register}, {value}")
    elif sum.floating:
        w.emit(f"fma.rn.{type} \t{register}, {value}, {value}, {register}")
    elif sum.bits == 64 and b.ch.chance(60):
        words = (source(b.ch, scope, w, "r") for _ in range(2))
        w.emit(f"mad.wide.{type.replace('64', '32')} \t{register}, {', '.join(words)}, {register}")
    else:
        w.emit(f"mad.lo.{type} \t{register}, {value}, {value}, {register}")


def _moved(sum: Accumulator) -> str:
    return sum.type.replace("b", "u")


_SHAPES = {"once": _once, "guarded": _guarded, "by way": _by_way, "chosen": _chosen, "special": _special}
