"""Kernels' loops that call recursive functions, with each lane's values in its own registers.

ptxas keeps values that are the same in all lanes in uniform registers, one per warp. That is right as long as a warp
returns from a call together. From a function that calls itself it may return in groups, each of which then advances the
loop counter of all (docs/decisions/0042-loops-around-recursion-keep-their-values-in-lanes.md).

        mov.u32 %a, %lanemask_lt;           no lane is less than itself: zero, which ptxas does not know
        mov.u32 %b, %lanemask_eq;
        and.b32 %zero, %a, %b;
    L:  ...                             L:  ...
        call.uni walk, (...);               call.uni walk, (...);
        add.s32 %i, %i, 1;                  add.s32 %i, %i, 1;
                                            xor.b32 %i, %i, %zero;
        @%p bra L;                          @%p bra L;

Safety: EXACT. Values do not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import networkx as nx

from cccopt.analysis import cfg, effects
from cccopt.analysis.liveness import liveness
from cccopt.analysis.loops import back_edges, irreducible_edges
from cccopt.ccc.function.code import op
from cccopt.ccc.function.names import Names
from cccopt.ptx.ir import Function, Instruction, Register, SpecialRegister, Statement
from cccopt.ptx.isa import Control, facts, register_types, width


def with_own_values(kernel: Function) -> Function:
    """The kernel with the loop-carried values of its loops that call functions in registers of each lane."""
    body = kernel.body or ()
    carried = _carried(kernel)
    if not carried:
        return kernel
    types = register_types(kernel)
    names = Names(body, types, "ccc_own")
    zero = _Zero(names)
    out: list[Statement] = []
    for index, statement in enumerate(body):
        out.append(statement)
        for name in sorted(carried.get(index, ())):
            assert isinstance(statement, Instruction)
            out += [replace(each, guard=statement.guard) for each in zero.added(name, types[name])]
    begin = tuple(zero.begin())
    return replace(kernel, body=(*names.declarations(), *begin, *out))


def _carried(kernel: Function) -> Mapping[int, frozenset[str]]:
    """For each statement of a loop that calls functions, the registers it writes that a later iteration may read."""
    body = kernel.body or ()
    flow = cfg.build(body)
    graph = nx.DiGraph(flow.edges())
    live = liveness(flow, body)
    found: dict[int, frozenset[str]] = {}
    for cycle in nx.strongly_connected_components(graph):
        statements = [i for block in cycle for i in flow.blocks[block].statements()]
        if not any(
            isinstance(s := body[i], Instruction) and facts(s).control is Control.CALL for i in statements
        ):
            continue
        backward = [b for a, b in (*back_edges(flow), *irreducible_edges(flow)) if {a, b} <= cycle]
        kept = frozenset().union(*(live.live_in[block] for block in backward))
        found |= {i: here for i in statements if (here := effects.writes(body[i]) & kept)}
    return found


class _Zero:
    """A zero in each lane, in registers of the types that it is added to."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._made: dict[str, Register] = {}

    def added(self, name: str, type_: str) -> Iterator[Instruction]:
        """The code that adds it to a register."""
        target = Register(name)
        if type_ == "pred":
            yield op("xor.pred", target, target, self._of("pred"))
        elif type_.startswith("f"):
            bits = self._names.register(f"b{width(type_)}")
            yield op(f"mov.b{width(type_)}", bits, target)
            yield op(f"xor.b{width(type_)}", bits, bits, self._of(f"b{width(type_)}"))
            yield op(f"mov.b{width(type_)}", target, bits)
        elif "." not in type_ and width(type_) in (16, 32, 64):
            yield op(f"xor.b{width(type_)}", target, target, self._of(f"b{width(type_)}"))

    def _of(self, type_: str) -> Register:
        if type_ not in self._made:
            self._made[type_] = self._names.register(type_)
        return self._made[type_]

    def begin(self) -> Iterator[Instruction]:
        """The code that the kernel begins with."""
        below, own = self._names.register("b32"), self._names.register("b32")
        yield op("mov.u32", below, SpecialRegister("%lanemask_lt"))
        yield op("mov.u32", own, SpecialRegister("%lanemask_eq"))
        yield op("and.b32", below, below, own)
        for type_, register in self._made.items():
            if type_ == "pred":
                yield op("setp.ne.u32", register, below, 0)
            elif type_ == "b32":
                yield op("mov.b32", register, below)
            else:
                yield op(f"cvt.u{width(type_)}.u32", register, below)
