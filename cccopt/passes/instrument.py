"""Counted copies of kernels: which warps and lanes run what, without hardware counters.

    .visible .entry K(...) {...}        .visible .entry K(...) {...}                    as it was
                                        .visible .entry K__ccc_counted(...) {...}       the same, and counts
                                        .global .u64 ccc_profile_counts[...];
                                        .global .b64 ccc_profile_layout[...] = {...};
                                        .visible .global .u64 ccc_profile_head[4] = {generic(ccc_profile_counts), ...};

A program picks one of the two when it registers its kernels or looks them up. Device functions with a body in the
module that a counted kernel calls by name have counted copies too; functions that are called through a pointer or
defined in another module are not counted. For each run of statements, counters say how often some lanes of a warp ran
it together (``activemask``) and how many lanes these were (`cccopt.passes.counting.choice`).

Safety: EXACT. A copy computes what the plain function does: added code writes only registers and variables of its own,
and control flow is unchanged. Only time changes, and how much shared memory is left.

Declined: kernels whose warps hand over registers or work as a group (``setmaxnreg``, ``wgmma``, ``tcgen05``), clusters,
targets before sm_70, PTX before version 6.3, and kernels that threads leave through a jump table while others may wait
for each other. They get no copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from cccopt.ccc.function.annotations import is_annotation
from cccopt.ccc.function.calls import callees
from cccopt.passes.counting.block import leave_function
from cccopt.passes.counting.bounds import (
    counters_in_local_memory,
    counters_in_registers,
    registers_of_thread,
)
from cccopt.passes.counting.choice import Choice, choose
from cccopt.passes.counting.copying import Copying, counted_copy
from cccopt.passes.counting.flow import Flow
from cccopt.passes.counting.layout import FunctionLayout, Layout, as_bytes
from cccopt.passes.counting.memory import COUNTS, Memory
from cccopt.passes.counting.modules import Counted
from cccopt.passes.counting.own_values import with_own_values
from cccopt.passes.counting.second_copy import relabelled
from cccopt.passes.counting.spots import Files, function_layout
from cccopt.passes.counting.watched import Watched, watch
from cccopt.ptx.ir import (
    Function,
    InitializerCall,
    InitializerList,
    Instruction,
    Item,
    Literal,
    Module,
    Section,
    Symbol,
    Variable,
)
from cccopt.ptx.isa import callee_of
from cccopt.ptx.printer import print_module

COUNTED = "__ccc_counted"
"""The suffix of the name of a counted copy."""

HEAD = "ccc_profile_head"
MODULE_HEAD = "ccc_profile_module"
"""The name of a copy of the variable ``HEAD`` that can be looked up in a loaded module; the variable that host code
uses is local to its file.
"""

LAYOUT = "ccc_profile_layout"

_FEW = 6  # registers for counters if little is known about how many there may be
_FOLDED = 8  # counters of a thread that are added up at once
_CROWDED = 16  # one warp in this many is counted if a function has too many counters
_RARER = 4  # times fewer warps are then counted of a sample, or of a kernel above all bounds
_ROOM, _ROOM_OF_GROUPS = 4 << 20, 32 << 20  # bytes for all copies of the counts, at most


@dataclass(frozen=True, slots=True)
class Counting:
    """How to count: one warp in ``every``, a power of two. With ``watch``, which is only for such samples, histograms
    of branches and sectors are counted too.

    ``registers`` is how many counters of a function may be in registers, and ``local`` how many in local memory: if
    None, as many as caches hold (`bounds`). If a function has more in its loops, one warp in 16 of the module's kernels
    is counted, or in 64 if ``limits`` are known for such a function; in a sample without ``watch``, a quarter of its
    warps. ``copies`` is how many copies of the counts are in global memory, a power of two. With ``dynamic``, the
    counters of kernels with dynamic shared memory are in shared memory too; a launch that requests all of it then
    fails. ``limits`` are how many registers a copy may have, by kernel.
    """

    registers: int = 48
    local: int | None = None
    copies: int = 32
    dynamic: bool = False
    every: int = 1
    watch: bool = False
    limits: Mapping[str, int] = field(default_factory=dict)


ALL = Counting(local=1 << 30)
"""How `--ccc-instrument=all` counts."""

SAMPLED = Counting(registers=6, every=64)
"""How `--ccc-instrument=sampled` counts."""

DETAILED = replace(SAMPLED, watch=True)
"""How `--ccc-instrument=detailed` counts."""


def instrumented(module: Module, how: Counting | None = None) -> tuple[Module, Layout]:
    """The module with counted copies of its kernels, and what their counters count.

    A module in which nothing can be counted is returned as it is, with a layout that says why.
    """
    how = Counting() if how is None else how
    names = {item.name for item in module.items if isinstance(item, Function | Variable)}
    if COUNTS in names or any(name.endswith(COUNTED) for name in names):
        raise ValueError("the module is instrumented already")
    made = _Instrumenting(module, Counted(module), how)
    return made.module_and_layout()


def with_all_names(module: Module, layout: Layout) -> Module:
    """The instrumented ``module``, in which the kernels that are not counted have a plain copy under the counted name.

    The code for one target determines which names the program registers, and other targets may count other kernels.
    """
    bodies = {f.name: f for f in module.functions() if f.body is not None}
    relabel = any(isinstance(item, Section) for item in module.items)
    copies = []
    for name in (f.name for f in layout.functions if f.kernel and not f.counted):
        body = bodies[name].body or ()
        copies.append(replace(bodies[name], name=name + COUNTED, body=relabelled(body) if relabel else body))
    if not copies:
        return module
    last = max(i for i, item in enumerate(module.items) if isinstance(item, Function))
    return Module((*module.items[: last + 1], *copies, *module.items[last + 1 :]))


@dataclass
class _Instrumenting:
    module: Module
    counted: Counted
    how: Counting

    def module_and_layout(self) -> tuple[Module, Layout]:
        counted = self.counted
        refused = [FunctionLayout(name, True, why) for name, why in counted.refused.items()]
        if not counted.copied:
            return self.module, Layout(functions=tuple(refused))
        flows = {name: Flow(counted.bodies[name].body or (), self._leaves) for name in counted.copied}
        choices = {name: self._choice(name, flows[name]) for name in counted.copied}
        crowded = self._crowded(choices)
        if crowded:
            # A kernel with many registers has few resident warps, which hide little of the cost of counting.
            rarer = _RARER if self.how.every > 1 or not self.how.limits.keys().isdisjoint(crowded) else 1
            every = rarer * max(self.how.every, _CROWDED)
            self.how = replace(self.how, registers=min(self.how.registers, _FEW), every=every)
            choices = {name: self._choice(name, flows[name]) for name in counted.copied}
        watched = {
            name: watch(flows[name], choices[name].end, wanted=self.how.watch) for name in counted.copied
        }
        memories = self._memories(choices, watched)
        files = Files(self.module)
        functions = [
            function_layout(
                files,
                self.module,
                counted.bodies[name],
                flows[name],
                choices[name],
                watched[name],
                memories[name],
            )
            for name in counted.copied
        ]
        some = next(iter(memories.values()))
        marked = any(is_annotation(s) for f in self.module.functions() for s in f.body or ())
        text = print_module(self.module) if marked else ""
        layout = Layout(
            some.copies,
            some.row,
            files.names,
            (*functions, *refused),
            text,
            some.every,
            self.how.watch,
            crowded[0] if crowded else "",
            tuple(filter(counted.recurs, counted.copied)),
        )
        copies = [
            item
            for name in counted.copied
            for item in self._copies(name, flows[name], choices[name], watched[name], memories[name])
        ]
        return self._with(layout, copies, memories), layout

    def _leaves(self, call: Instruction) -> bool:
        return callee_of(call) in self.counted.may_exit

    def _choice(self, name: str, flow: Flow) -> Choice:
        # A called function that ends the thread does not know the counters that the thread has in this one. A recursive
        # one would have its own at each depth, on a stack of fixed size, and adding them up branches.
        counted = self.counted
        leaves = name in counted.may_exit or counted.calls_may_exit(name)
        kernel = counted.bodies[name].kind == "entry"
        private = not leaves and name not in counted.around_recursion
        most = self.how.registers
        if kernel and (counted.runs_unknown(name) or name in self.how.limits):
            most = _FEW  # it has no register limit that lets all blocks start, or a limit of its own
        elif kernel:
            most = counters_in_registers(registers_of_thread(counted.bodies[name]))
        return choose(flow, kernel, min(most, self.how.registers), private=private)

    def _crowded(self, choices: Mapping[str, Choice]) -> list[str]:
        """The functions with too many counters for so many warps to be counted."""
        if self.how.watch:
            return []
        found = []
        for name, choice in choices.items():
            most = self.how.local
            if most is None:
                registers = registers_of_thread(self.counted.bodies[name])
                most = counters_in_local_memory(registers, choice.registers)
            if choice.private - choice.registers > most:
                found.append(name)
        return found

    def _memories(self, choices: Mapping[str, Choice], watched: Mapping[str, Watched]) -> dict[str, Memory]:
        """The counters of each function."""
        counted = self.counted
        row = sum(watched[name].end for name in choices)
        copies = self.how.copies
        room = _ROOM if self.how.every == 1 else _ROOM_OF_GROUPS
        while copies > 1 and 8 * copies * row > room:
            copies //= 2
        found: dict[str, Memory] = {}
        first = 0
        for name, choice in choices.items():
            kernel = counted.bodies[name].kind == "entry"
            memory = Memory(
                f"{name}__ccc_shared" if kernel else None,
                kernel,
                first,
                watched[name].end,
                choice.private,
                choice.registers,
                f"{name}__ccc_own",
                COUNTS,
                row,
                copies,
                self.how.every,
                choice.nests,
                _FOLDED,
                # docs/decisions/0040-counting-around-recursion-does-not-branch.md
                by_all=name in counted.around_recursion,
            )
            if self.how.every > 1 or (
                kernel and not counted.has_room(name, 4 * memory.words, self.how.dynamic)
            ):
                memory = replace(memory, name=None)
            found[name] = memory
            first += memory.counters
        return found

    def _copies(
        self, name: str, flow: Flow, choice: Choice, watched: Watched, memory: Memory
    ) -> Iterator[Function]:
        counted = self.counted
        function = counted.bodies[name]
        kernel = function.kind == "entry"
        redux = counted.language.target >= 80 and counted.language.version >= (7, 0)
        leave = f"{name}__ccc_leave"
        copy = counted_copy(
            Copying(
                function,
                name + COUNTED,
                flow,
                choice,
                watched,
                memory,
                {n: n + COUNTED for n in counted.copied if counted.bodies[n].kind == "func"},
                leave,
                apart=kernel and counted.has_barriers(name),
                redux=redux,
                limit=0 if counted.runs_unknown(name) else self.how.limits.get(name),
                moved=self._moved if not kernel else frozenset(),
                relabel=any(isinstance(item, Section) for item in self.module.items),
            )
        )
        if leave in callees(copy):
            yield leave_function(memory, leave, redux)
        # docs/decisions/0042-loops-around-recursion-keep-their-values-in-lanes.md
        apart = kernel and (
            counted.runs_unknown(name) or not counted.around_recursion.isdisjoint(counted.reached(name))
        )
        yield with_own_values(copy) if apart else copy

    @cached_property
    def _moved(self) -> frozenset[str]:
        return frozenset(variable.name for variable in self.counted.moved)

    def _plain(self, item: Item) -> Item:
        """An item of the module, without the moved variables."""
        if not isinstance(item, Function) or item.kind != "func" or item.body is None or not self._moved:
            return item
        kept = tuple(s for s in item.body if not (isinstance(s, Variable) and s.name in self._moved))
        return replace(item, body=kept)

    # --- the module --------------------------------------------------------------------------------------------

    def _with(self, layout: Layout, copies: Sequence[Function], memories: Mapping[str, Memory]) -> Module:
        """The module with the copies after its last function, and all that they name before its first."""
        text = as_bytes(layout)
        head = InitializerList(
            (
                InitializerCall("generic", Symbol(COUNTS)),
                Literal(str(layout.size)),
                InitializerCall("generic", Symbol(LAYOUT)),
                Literal(str(len(text))),
            )
        )
        items = [self._plain(item) for item in self.module.items]
        heads = [i for i, item in enumerate(items) if _is_head(item)]
        for index in heads:
            variable = items[index]
            assert isinstance(variable, Variable)
            items[index] = replace(variable, initializer=head)
        ahead: list[Item] = [
            Variable("global", ".u64", COUNTS, (layout.copies * layout.counters,), 8),
            _words(text),
            *self.counted.moved,
            *(m.variable() for m in memories.values() if m.name is not None),
            *(replace(f, body=None) for f in copies if f.kind == "func"),
        ]
        if not heads:
            ahead.append(Variable("global", ".u64", HEAD, (4,), 8, ("visible",), head))
        ahead.append(Variable("global", ".u64", MODULE_HEAD, (4,), 8, ("weak",), head))
        first = min(i for i, item in enumerate(items) if isinstance(item, Function | Variable))
        last = max(i for i, item in enumerate(items) if isinstance(item, Function))
        return Module((*items[:first], *ahead, *items[first : last + 1], *copies, *items[last + 1 :]))


def _is_head(item: Item) -> bool:
    return (
        isinstance(item, Variable)
        and HEAD in item.name
        and item.space == "global"
        and "extern" not in item.linkage
    )


def _words(text: bytes) -> Variable:
    padded = text + bytes(-len(text) % 8)
    numbers = [int.from_bytes(padded[i : i + 8], "little") for i in range(0, len(padded), 8)]
    values = InitializerList(tuple(Literal(str(n)) for n in numbers))
    return Variable("global", ".u64", LAYOUT, (len(numbers),), 8, (), values)


__all__ = ["COUNTED", "HEAD", "Counting", "instrumented", "with_all_names"]
