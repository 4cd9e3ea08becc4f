"""Flags that iterations only set become words into which they `or` what they found: reductions like any other.

                                                mov.b32 %found, 0;
    H: ...                                   H: ...
       cvt.u32.u16 %r1, %rs9;                   mov.b16 %rs1, 0;  cvt.u32.u16 %r9, %rs1;
       or.b32 %r2, %r1, %r7;            ->      or.b32 %r10, %r9, %r7;
       setp.ne.s32 %p1, %r2, 0;                 setp.ne.s32 %p9, %r10, 0;
       selp.u16 %rs9, 1, 0, %p1;                selp.u16 %rs2, 1, 0, %p9;
                                                setp.eq.b16 %p8, %rs2, 1;  selp.b32 %r8, 1, 0, %p8;
       @%p2 bra H;                              or.b32 %found, %found, %r8;  @%p2 bra H;
    E: ... %rs9                              E: setp.ne.b32 %p7, %found, 0;  selp.b16 %rs9, 1, %rs9, %p7; ...

Each block starts with the flag cleared, in registers of its own, so that only the word lives from block to block. If
nvcc sets the variable before it is known whether it must (and puts the old value back), each iteration starts with it
cleared.

Safety: EXACT; `cccopt.ccc.legality.flags` proves that the variable is a flag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cccopt.analysis import effects
from cccopt.analysis.cfg import ending
from cccopt.ccc.function.code import op
from cccopt.ccc.function.names import Names
from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.legality.flags import BlockOfFlag, Flag, flag
from cccopt.ccc.legality.reductions import reductions
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.regions.marked_loops import Region, find
from cccopt.clauses import FLAG_OPERATORS
from cccopt.passes.options import Options
from cccopt.passes.preparing import each_marked
from cccopt.passes.result import PassResult
from cccopt.ptx import isa
from cccopt.ptx.ir import Function, Instruction, Label, Marker, Module, Register, Statement
from cccopt.ptx.isa import width


def run(module: Module, options: Options) -> PassResult:
    """Turn the flags of all marked functions into words; EXACT."""
    return PassResult(each_marked(module, options, _with_words))


def _with_words(module: Module, function: Function, options: Options) -> Function:
    while True:
        view = view_of(module, function)
        found = _first_flag(view)
        if found is None:
            return function
        names = Names(view.body, view.types, prefix="flag")
        body = _WithWord(view, *found, names).body()
        function = replace(function, body=(*names.declarations(), *body))


def _first_flag(view: View) -> tuple[Region, Flag] | None:
    """A flag that a pragma names and that no instruction updates with an operator, with its loop."""
    if not any(_names_flags(a.reductions) for a in view.annotations.values()):
        return None
    try:
        regions = find(view, frozenset(view.annotations)).regions
    except Refusal:
        return None  # collect-contexts reports it
    for region in regions:
        if not _names_flags(region.annotation.reductions):
            continue
        written = {n for i in view.statements(region.nodes) for n in effects.writes(view.body[i])}
        reduced = {r.register for r in reductions(view, region).found}
        live = view.liveness.live_in[view.block_of_name[region.header]]
        for name in sorted((live & written) - reduced):
            found = flag(view, region, name)
            if found is not None:
                return region, found
    return None


def _names_flags(reduced: tuple[tuple[str, str], ...]) -> bool:
    return any(operator in FLAG_OPERATORS for operator, _ in reduced)


class _WithWord:
    """The body of a function with one flag kept in a word."""

    def __init__(self, view: View, region: Region, found: Flag, names: Names) -> None:
        self.view = view
        self.region = region
        self.flag = found
        self.names = names
        self.word = names.register("b32")
        self.kinds: dict[str, str] = {}
        """The type of instructions on the bits of each register that replaces one of the flag's."""

    def body(self) -> list[Statement]:
        view = self.view
        before: dict[int, list[Statement]] = {}
        after: dict[int, list[Statement]] = {self._begin(self.region.select): [op("mov.b32", self.word, 0)]}
        changed: dict[int, Statement] = {}
        for block in self.flag.blocks:
            own = self._own_names(block)
            changed |= {index: self._renamed(index, own) for index in block.statements}
            first, lasts = self._span(block)
            before[first] = [self._cleared(own[name]) for name in sorted(block.inputs)]
            for index in lasts if block.output is not None else ():
                after[index] = self._found(own[block.output or ""], block.truth)
        for node in self.flag.exits:
            after.setdefault(self._begin(node), []).extend(self._set_where_found())
        return [
            new
            for index, old in enumerate(view.body)
            for new in (*before.get(index, ()), changed.get(index, old), *after.get(index, ()))
            if not (isinstance(new, Label) and view.names.made(new.name))
        ]

    def _span(self, block: BlockOfFlag) -> tuple[int, list[int]]:
        """The statement before which the flag is cleared, and those after which it is known."""
        if not self.flag.ends:
            first, *_, last = 2 * block.statements
            return first, [last]
        blocks = [self.view.cfg.blocks[number] for number in self.flag.ends]
        leaving = [ending(self.view.body, block) is not None for block in blocks]
        lasts = [b.stop - 1 - leaves for b, leaves in zip(blocks, leaving, strict=True)]
        return self._begin(self.region.header) + 1, lasts

    def _begin(self, node: str) -> int:
        """The last of the labels with which a node begins, or the marker after them."""
        view = self.view
        index = view.cfg.blocks[view.block_of_name[node]].start
        while isinstance(view.body[index + 1], Label | Marker):
            index += 1
            if isinstance(view.body[index], Marker):
                break
        return index

    def _own_names(self, block: BlockOfFlag) -> Mapping[str, Register]:
        """New registers for those that hold the flag in the statements of a block."""
        written = [r.name for i in block.statements for r in isa.definitions(self._instruction(i))]
        own: dict[str, Register] = {}
        for name in sorted({*block.inputs, *written}):
            own[name] = self.names.register(self.view.types[name])
            self.kinds[own[name].name] = _kind(self.view.types[name])
        return own

    def _cleared(self, register: Register) -> Instruction:
        return op(f"mov.{self.kinds[register.name]}", register, self.flag.clear)

    def _renamed(self, index: int, own: Mapping[str, Register]) -> Instruction:
        return isa.rename(self._instruction(index), own, own)

    def _instruction(self, index: int) -> Instruction:
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        return statement

    def _found(self, output: Register, truth: bool) -> list[Statement]:
        """Adds what a block has found in ``output`` to the word."""
        some, bit = self.names.register("pred"), self.names.register("b32")
        return [
            self._is_set(some, output, truth),
            op("selp.b32", bit, 1, 0, some),
            op("or.b32", self.word, self.word, bit),
        ]

    def _is_set(self, some: Register, output: Register, truth: bool) -> Instruction:
        kind, constant = self.kinds[output.name], self.flag.constant
        if kind == "pred":
            return op("mov.pred" if constant else "not.pred", some, output)
        return (
            op(f"setp.ne.{kind}", some, output, 0) if truth else op(f"setp.eq.{kind}", some, output, constant)
        )

    def _set_where_found(self) -> list[Statement]:
        """Sets the variable, after the loop, if an iteration did."""
        some, variable = self.names.register("pred"), Register(self.flag.register)
        kind, constant = _kind(self.view.types[variable.name]), self.flag.constant
        found = op("setp.ne.b32", some, self.word, 0)
        if kind != "pred":
            return [found, op(f"selp.{kind}", variable, constant, variable, some)]
        if constant:
            return [found, op("or.pred", variable, variable, some)]
        return [op("setp.eq.b32", some, self.word, 0), op("and.pred", variable, variable, some)]


def _kind(type: str) -> str:
    """The type of instructions on the bits of a register."""
    return "pred" if type == "pred" else f"b{width(type)}"
