"""The pass that gives a kernel marked ``grid`` a loop over thread blocks, which becomes its marked loop (DESIGN 5.2).

The first R blocks of a launch, as many as the device runs at once, do the work of all: block b does that of b, b + R,
... The block index is kept in three registers, with carries from one to the next, so the loop has no division.

    before                              after
        mov.u32 %r1, %ctaid.x;              x, y, z = %ctaid; (z * ny + y) * nx + x >= R: ret
        ...                                 for.begin
        @%p1 ret;                           sx, sy, sz = R as an index of the grid
        BODY                            H:  body.begin
        ret;                                mov.u32 %r1, x;
                                            ...
                                            @%p1 bra L;
                                            BODY
                                        L:  body.end
                                            x, y, z += sx, sy, sz, with carries
                                            @z < nz bra H;
                                            for.end
                                            ret;

Requirements: neither blocks nor the threads of a block wait for each other; they share no memory of the block; nothing
that the kernel calls reads the block index or ends the thread. The kernel allocates nothing on its stack, which only a
return frees. Warp-wide operations must be at places that the whole warp reaches, because lanes that returned early stay
in the loop. A kernel without a marked path of its own is not changed.

Safety: ASSUMES that the order of blocks does not matter, as the pragma says.
"""

from __future__ import annotations

import math
from dataclasses import replace

from cccopt.analysis import effects
from cccopt.ccc.function.annotations import Annotation, vouches, without_annotations
from cccopt.ccc.function.calls import HARMLESS_CALLS, called, shared_variables, with_callees
from cccopt.ccc.function.code import op
from cccopt.ccc.function.mangled import source_name
from cccopt.ccc.function.names import Names
from cccopt.ccc.function.origins import Note
from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.legality.rules import waits
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.choices import Mode
from cccopt.ccc.outcome.refusal import Refusal, Rule, refuse
from cccopt.ccc.plan.devices import UNKNOWN_DEVICE, Device, device_of, target_of
from cccopt.ccc.regions.marked_loops import annotations_in_loops
from cccopt.clauses import Kind, MarkedShape
from cccopt.diagnostic import Diagnostic
from cccopt.passes.options import Options
from cccopt.passes.refused import left
from cccopt.passes.result import PassResult
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Body,
    Directive,
    Function,
    Guard,
    Instruction,
    Item,
    Label,
    Marker,
    Module,
    Pragma,
    Register,
    RegisterDeclaration,
    SpecialRegister,
    Statement,
    Symbol,
    Variable,
)
from cccopt.ptx.isa import Control, callee_of, is_indirect_call

_AXES = ("x", "y", "z")
_CLUSTER_DIRECTIVES = frozenset(
    {".reqnctapercluster", ".explicitcluster", ".maxclusterrank", ".blocksareclusters"}
)
_CLUSTER_REGISTERS = ("%cluster", "%nclusterid", "%is_explicit_cluster", "%envreg")
_INDEX = frozenset({"%ctaid", "%ctaid.x", "%ctaid.y", "%ctaid.z"})


def run(module: Module, options: Options) -> PassResult:
    """Give each kernel marked ``grid`` its loop. A refused kernel loses its markers, with an error, or a warning if
    ``keep_going``.
    """
    if options.mode == Mode.OFF:
        return PassResult(module)
    items: list[Item] = []
    remarks: list[Diagnostic] = []
    for item in module.items:
        if isinstance(item, Function) and item.kind == "entry" and _is_marked(item):
            try:
                item, said = _looped(module, item, options)
            except Refusal as problem:
                said = left(problem, options.of(item.name))
                item = without_annotations(item)
            remarks += said
        items.append(item)
    return PassResult(Module(tuple(items)), tuple(remarks))


def _is_marked(function: Function) -> bool:
    return any(isinstance(s, Marker) and s.event == "grid.begin" for s in function.body or ())


def _looped(module: Module, kernel: Function, options: Options) -> tuple[Function, tuple[Diagnostic, ...]]:
    view = view_of(module, kernel)
    (annotation,) = (a for a in view.annotations.values() if a.kind == Kind.GRID)
    paths = {a.region for a in view.annotations.values() if a.event == MarkedShape.PATH or a.variable}
    if not paths - annotations_in_loops(view):
        message = "this kernel has no marked path outside its own marked loops: it gets no loop over blocks"
        why = "`grid` says only that the work of threads may be reordered, not which code diverges"
        help = "mark a divergent `if` with `#pragma ccc if`, or a loop with `#pragma ccc for variable` or `while`"
        body = tuple(s for s in kernel.body or () if not _is_mark_of(s, annotation))
        return replace(kernel, body=body), (refusal.remark("CCC054", message, annotation.place, why, help),)
    _check(view, annotation)
    device = device_of(module)
    said: tuple[Diagnostic, ...] = ()
    if device is None and options.resident is None:
        device = UNKNOWN_DEVICE
        said = (_unknown(module, annotation, device),)
    return _GridLoop(kernel, annotation, options.resident or device or UNKNOWN_DEVICE).function(), said


def _is_mark_of(statement: Statement, annotation: Annotation) -> bool:
    return isinstance(statement, Marker) and statement.region == annotation.region


def _unknown(module: Module, annotation: Annotation, device: Device) -> Diagnostic:
    return refusal.remark(
        "CCC064",
        f"it is not known how many blocks a device with `{target_of(module)}` runs at once",
        annotation.place,
        f"{device.processors} multiprocessors of {device.threads} threads each are assumed; if the GPU cannot hold the"
        " blocks that fit on these at once, they run in waves",
        "give the number with `--ccc-resident=N`",
    )


# --- what must hold ---


def _check(view: View, annotation: Annotation) -> None:
    """Raises Refusal for the first rule that the kernel breaks."""

    def refused(rule: Rule, *details: object, at: Instruction | None = None) -> Refusal:
        return refuse(rule, annotation.place, *details, notes=_notes(view, at))

    module, kernel = view.module, view.function
    bodies = {f.name: f for f in module.functions() if f.body is not None}
    reached = called(module, [kernel.name])
    unseen = {n for n in reached - bodies.keys() - HARMLESS_CALLS if not vouches(annotation, n)}
    own = [s for s in view.body if isinstance(s, Instruction)]
    others = {
        name: [s for s in bodies[name].body or () if isinstance(s, Instruction)]
        for name in sorted(reached & bodies.keys() - {kernel.name})
    }
    everything = [*own, *(s for code in others.values() for s in code)]
    for directive in kernel.directives:
        if directive.name in _CLUSTER_DIRECTIVES:
            raise refused(refusal.GRID_SYNCHRONISED, directive.name)
    for instruction in everything:
        if _synchronises_blocks(instruction):
            raise refused(refusal.GRID_SYNCHRONISED, instruction.opcode, at=instruction)
        of_clusters = [r for r in effects.special_registers(instruction) if r.startswith(_CLUSTER_REGISTERS)]
        if of_clusters:
            raise refused(refusal.GRID_SYNCHRONISED, min(of_clusters), at=instruction)
    if shared_variables(module, kernel):
        raise refused(refusal.GRID_SHARED, shared_variables(module, kernel)[0].name)
    calls = [s for s in everything if s.base == "call"]
    for call in calls:
        if callee_of(call) in unseen:
            raise refused(refusal.GRID_CALL_UNSEEN, source_name(callee_of(call) or ""), at=call)
    for call in filter(is_indirect_call, calls):
        raise refused(refusal.GRID_CALL_BY_POINTER, at=call)
    for name, code in others.items():
        for s in code:
            if effects.special_registers(s) & _INDEX:
                raise refused(refusal.GRID_CALL, source_name(name), "reads the block index", at=s)
            if s.base == "exit":
                raise refused(refusal.GRID_CALL, source_name(name), "ends the thread", at=s)
    for s in own:
        if "%ctaid" in effects.special_registers(s):
            raise refused(refusal.GRID_VECTOR, source_name(kernel.name), at=s)
        if s.base == "alloca":
            raise refused(refusal.GRID_STACK, source_name(kernel.name), at=s)
    partial = _partial_collective(view, others)
    if partial is not None:
        what = partial.opcode if _is_collective(partial) else f"call {source_name(callee_of(partial) or '')}"
        raise refused(refusal.GRID_COLLECTIVE, what, at=partial)


def _notes(view: View, culprit: Instruction | None) -> tuple[Note, ...]:
    """A note at the line of the kernel that contains ``culprit``, or calls code that does."""
    for index, statement in enumerate(view.body):
        if isinstance(statement, Instruction) and any(
            s is culprit for s in with_callees(view.module, statement)
        ):
            return view.origins.notes("here", index)
    return ()


def _synchronises_blocks(instruction: Instruction) -> bool:
    """Whether an instruction waits for or communicates with more than its own warp."""
    clusters = isa.facts(instruction).cluster or "shared::cluster" in instruction.parts
    return waits(instruction) or clusters


def _partial_collective(view: View, others: dict[str, list[Instruction]]) -> Instruction | None:
    """A warp-wide operation, in the kernel or in what it calls, to which possibly not all lanes of the warp come."""
    collective = {name for name, code in others.items() if any(_is_collective(s) for s in code)}
    wide = {name for name in others if collective & called(view.module, [name])} if collective else set()

    def is_wide(instruction: Instruction) -> bool:
        return _is_collective(instruction) or (instruction.base == "call" and callee_of(instruction) in wide)

    for block in view.cfg.blocks:
        code = [s for s in (view.body[i] for i in block.statements()) if isinstance(s, Instruction)]
        found = next(filter(is_wide, code), None)
        # Few kernels have any, and it takes long to find out which lanes reach a block.
        if found is not None and view.uniformity.divergent_control(block.index):
            return found
    return None


def _is_collective(instruction: Instruction) -> bool:
    facts = isa.facts(instruction)
    return facts.control is not Control.CALL and (facts.convergent or facts.aligned)


# --- the loop ---


class _GridLoop:
    """One kernel's loop: its registers, and the code around the body."""

    def __init__(self, kernel: Function, annotation: Annotation, resident: Device | int) -> None:
        self.kernel = kernel
        self.annotation = annotation
        self.resident = resident
        body = kernel.body or ()
        self.names = Names(body, isa.register_types(kernel))
        self.index = {axis: self.names.register("b32") for axis in _AXES}
        self.extent = {axis: self.names.register("b32") for axis in _AXES}
        self.step = {axis: self.names.register("b32") for axis in _AXES}
        self.head, self.latch, self.done = (
            self.names.label(f"grid_{what}") for what in ("head", "latch", "done")
        )

    def function(self) -> Function:
        """The kernel with its loop."""
        body = self.kernel.body or ()
        first = next(i for i, s in enumerate((*body, Label(""))) if not isinstance(s, _Declaration))
        code = (*self._enter(), *map(self._inside, body[first:]), *self._go_on())
        kept = tuple(s for s in code if not (isinstance(s, Marker) and s.event == "grid.begin"))
        return replace(self.kernel, body=(*self.names.declarations(), *body[:first], *kept))

    def _inside(self, statement: Statement) -> Statement:
        """A statement of the body, with the current block's index for the launched one's, and no exit but the latch."""
        if not isinstance(statement, Instruction):
            return statement
        if isa.facts(statement).control in (Control.RETURN, Control.EXIT):
            return Instruction("bra", (Symbol(self.latch),), statement.guard, statement.position)
        current = {f"%ctaid.{axis}": register for axis, register in self.index.items()}
        return isa.rename(statement, current, {})

    def _enter(self) -> Body:
        """The code from the kernel's entry to the head of the loop."""
        (x, y, z), (nx, ny, _) = self.index.values(), self.extent.values()
        plane, beyond = self.names.register("b32"), Guard(self.names.register("pred"))
        wide, linear = self.names.register("b64"), self.names.register("b64")
        find, resident = self._resident()
        start = [
            *(op("mov.u32", r, SpecialRegister(f"%ctaid.{axis}")) for axis, r in self.index.items()),
            *(op("mov.u32", r, SpecialRegister(f"%nctaid.{axis}")) for axis, r in self.extent.items()),
            op("mad.lo.u32", plane, z, ny, y),
            op("cvt.u64.u32", wide, x),
            op("mad.wide.u32", linear, plane, nx, wide),
            *find,
            op("cvt.u64.u32", wide, resident),
            op("setp.ge.u64", beyond.register, linear, wide),
        ]
        rows = self.names.register("b32")
        steps = [
            op("rem.u32", self.step["x"], resident, nx),
            op("div.u32", rows, resident, nx),
            op("rem.u32", self.step["y"], rows, ny),
            op("div.u32", self.step["z"], rows, ny),
        ]
        return (
            *self._ours(start),
            op("bra.uni", Symbol(self.done), guard=beyond),
            self._begin(),
            *self._ours(steps),
            Label(self.head),
            Pragma(("nounroll",)),
            Marker("body.begin", self.annotation.region),
        )

    def _resident(self) -> tuple[list[Instruction], Register]:
        """Code for the number of blocks that run at once, and the register that holds it."""
        resident = self.names.register("b32")
        if isinstance(self.resident, int):
            return [op("mov.u32", resident, self.resident)], resident
        device, threads = self.resident, self._threads()
        if threads is not None:
            fitting = max(min(device.threads // threads, device.blocks), 1)
            return [op("mov.u32", resident, device.processors * fitting)], resident
        # Only the launch determines the size of its blocks.
        size, extent = self.names.register("b32"), self.names.register("b32")
        code = [op("mov.u32", size, SpecialRegister("%ntid.x"))]
        for axis in "yz":
            code += [
                op("mov.u32", extent, SpecialRegister(f"%ntid.{axis}")),
                op("mul.lo.u32", size, size, extent),
            ]
        most = self.names.register("b32")
        code += [
            op("mov.u32", most, device.threads),
            op("div.u32", size, most, size),
            op("min.u32", size, size, device.blocks),
            op("mul.lo.u32", resident, size, device.processors),
        ]
        return code, resident

    def _threads(self) -> int | None:
        """The number of threads of a block, if the kernel or its pragma says it."""
        for directive in self.kernel.directives:
            if directive.name in (".reqntid", ".maxntid"):
                return math.prod(int(size) for size in directive.arguments)
        return None if self.annotation.block is None else math.prod(self.annotation.block)

    def _begin(self) -> Marker:
        """The marker that begins the loop, with what the pragma said."""
        found = (s for s in self.kernel.body or () if isinstance(s, Marker) and s.event == "grid.begin")
        said = {**dict(next(found).attributes), "kind": "grid"}
        # The file comes last: its name may hold blanks.
        attributes = sorted(said.items(), key=lambda pair: pair[0] == "file")
        return Marker("for.begin", self.annotation.region, tuple(attributes))

    def _go_on(self) -> Body:
        """The code from the end of the body to the next block's, or out of the loop."""
        carry = self.names.register("pred")
        more = Guard(self.names.register("pred"))
        code: list[Instruction] = [op("add.u32", r, r, self.step[axis]) for axis, r in self.index.items()]
        for axis, following in (("x", "y"), ("y", "z")):
            index, next_index = self.index[axis], self.index[following]
            code += [
                op("setp.ge.u32", carry, index, self.extent[axis]),
                op("sub.u32", index, index, self.extent[axis], guard=Guard(carry)),
                op("add.u32", next_index, next_index, 1, guard=Guard(carry)),
            ]
        code.append(op("setp.lt.u32", more.register, self.index["z"], self.extent["z"]))
        return (
            Label(self.latch),
            Marker("body.end", self.annotation.region),
            *self._ours(code),
            op("bra", Symbol(self.head), guard=more),
            Marker("for.end", self.annotation.region),
            Label(self.done),
            op("ret"),
        )

    def _ours(self, code: list[Instruction]) -> Body:
        """Code that the program did not have, marked so that counters can distinguish it."""
        region = self.annotation.region
        return (Marker("overhead.begin", region), *code, Marker("overhead.end", region))


_Declaration = (RegisterDeclaration, Variable, Directive)
