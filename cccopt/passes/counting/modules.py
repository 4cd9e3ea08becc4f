"""Which functions of a module get counted copies, and where their counters may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis.cfg import build, ending
from cccopt.ccc.function.calls import HARMLESS_CALLS, callees, shared_variables, static_shared_bytes
from cccopt.ptx.ir import Body, Function, Instruction, Module, SpecialRegister, Variable
from cccopt.ptx.isa import Control, callee_of, facts
from cccopt.ptx.language import Language

STATIC_LIMIT = 48 * 1024
"""Bytes of static shared memory that ptxas allows in a kernel."""

_SLACK = 1024  # for alignment, and what the system reserves

_CLUSTERS = (".reqnctapercluster", ".explicitcluster")
_SIZES = ("%total_smem_size", "%aggr_smem_size")


@dataclass(frozen=True)
class Counted:
    """The functions of a module. ``refused`` says why a kernel has no counted copy."""

    module: Module

    @cached_property
    def bodies(self) -> Mapping[str, Function]:
        """The functions with bodies."""
        return {f.name: f for f in self.module.functions() if f.body is not None}

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """The kernels, in file order."""
        return tuple(name for name, f in self.bodies.items() if f.kind == "entry")

    @cached_property
    def language(self) -> Language:
        """The PTX version and target of the module."""
        return Language.of(self.module)

    @cached_property
    def _callees(self) -> Mapping[str, tuple[str, ...]]:
        return {
            name: tuple(
                dict.fromkeys(c for c in callees(f) if c in self.bodies and self.bodies[c].kind == "func")
            )
            for name, f in self.bodies.items()
        }

    def reached(self, name: str) -> tuple[str, ...]:
        """The function and those with bodies that it calls by name, directly or not, in file order."""
        found = {name}
        work = [name]
        while work:
            new = set(self._callees[work.pop()]) - found
            found |= new
            work += sorted(new)
        return tuple(f for f in self.bodies if f in found)

    def recurs(self, name: str) -> bool:
        """Whether a function may call itself, directly or not."""
        return any(name in self.reached(callee) for callee in self._callees[name])

    @cached_property
    def around_recursion(self) -> frozenset[str]:
        """The device functions that may call themselves, those that call such functions, and those called by them.

        Functions called through a pointer or defined in another module may call themselves.
        """
        recursive = [name for name in self.bodies if self.recurs(name)]
        called = {name for one in recursive for name in self.reached(one)}
        functions = (name for name, f in self.bodies.items() if f.kind == "func")
        return frozenset(
            n
            for n in functions
            if n in called or not called.isdisjoint(self.reached(n)) or self.runs_unknown(n)
        )

    @cached_property
    def may_exit(self) -> frozenset[str]:
        """The device functions that may end the thread, by themselves or through what they call."""
        found = {n for n, f in self.bodies.items() if f.kind == "func" and _has(f, Control.EXIT)}
        while True:
            more = {n for n, called in self._callees.items() if found.intersection(called)} - found
            more = {n for n in more if self.bodies[n].kind == "func"}
            if not more:
                return frozenset(found)
            found |= more

    def calls_may_exit(self, name: str) -> bool:
        """Whether a function calls one that may end the thread."""
        return not self.may_exit.isdisjoint(self._callees[name])

    @cached_property
    def refused(self) -> Mapping[str, str]:
        """Why kernels are not counted."""
        found = {name: self._why_not(name) for name in self.kernels}
        return {name: why for name, why in found.items() if why}

    def _why_not(self, kernel: str) -> str:
        if self.language.target < 70:
            return "targets before sm_70 are not counted"
        if self.language.version < (6, 3):
            return "PTX before version 6.3 lacks the instructions that counting needs"
        for directive in self.bodies[kernel].directives:
            if directive.name in _CLUSTERS:
                return "its blocks are in clusters"
        statements = (s for name in self.reached(kernel) for s in self.bodies[name].body or ())
        if any(isinstance(s, Instruction) and facts(s).grouped for s in statements):
            return "it has instructions of warpgroups (`wgmma`, `setmaxnreg`) or of tensor memory (`tcgen05`)"
        if self.has_barriers(kernel) and _leaves_by_table(self.bodies[kernel].body or ()):
            # What they do last would be code after the jump, where ptxas may make them wait.
            return "threads leave it through a jump table while others may wait for each other"
        return ""

    @cached_property
    def copied(self) -> tuple[str, ...]:
        """The functions that get copies, in file order."""
        wanted = {n for kernel in self.kernels if kernel not in self.refused for n in self.reached(kernel)}
        return tuple(name for name in self.bodies if name in wanted)

    @cached_property
    def moved(self) -> tuple[Variable, ...]:
        """The shared variables of device functions that become the module's: the copy of a function and the plain one,
        which may be called through a pointer, share them.

        Variables whose name occurs twice are left out. In nvcc's output none does, because names contain the
        function's.
        """
        names = Counter(item.name for item in self.module.items if isinstance(item, Function | Variable))
        names.update(v.name for f in self.bodies.values() for v in own_shared(f))
        return tuple(
            v
            for name in self.copied
            if self.bodies[name].kind == "func"
            for v in own_shared(self.bodies[name])
            if names[v.name] == 1
        )

    def runs_unknown(self, kernel: str) -> bool:
        """Whether a kernel, or a function that it calls, calls through a pointer or into another module."""
        return self._runs_unknown(self.reached(kernel))

    def _runs_unknown(self, names: Iterable[str]) -> bool:
        known = self.bodies.keys() | HARMLESS_CALLS
        calls = (
            s
            for name in names
            for s in self.bodies[name].body or ()
            if isinstance(s, Instruction) and facts(s).control is Control.CALL
        )
        return any(callee_of(call) not in known for call in calls)

    def has_barriers(self, kernel: str) -> bool:
        """Whether threads of a block or warp may wait for each other in a kernel or what it calls, as far as known."""
        return self._runs_unknown(self.reached(kernel)) or any(
            isinstance(s, Instruction) and (facts(s).barrier or facts(s).collective)
            for name in self.reached(kernel)
            for s in self.bodies[name].body or ()
        )

    def has_room(self, kernel: str, ours: int, dynamic: bool) -> bool:
        """Whether ``ours`` bytes of a kernel's counters may be in shared memory.

        They may not if a function that it calls may end the thread, which would have to add the thread's counts to
        them. Nor may they if the program reads the size of shared memory, if unknown code may use some, or if ours may
        not fit beside the program's own. Unless ``dynamic``, the launch must not decide how much that is.
        """
        reached = self.reached(kernel)
        if not self.may_exit.isdisjoint(reached) or self._asks_for_size(reached):
            return False
        if self._runs_unknown(reached):
            return False
        function = self.bodies[kernel]
        shared = shared_variables(self.module, function)
        if not dynamic and any(None in variable.dimensions for variable in shared):
            return False
        return ours + static_shared_bytes(self.module, function) + _SLACK <= STATIC_LIMIT

    def _asks_for_size(self, names: Iterable[str]) -> bool:
        return any(
            isinstance(operand, SpecialRegister) and operand.name in _SIZES
            for name in names
            for s in self.bodies[name].body or ()
            if isinstance(s, Instruction)
            for operand in s.operands
        )


def _leaves_by_table(body: Body) -> bool:
    """Whether a jump table leads to an exit."""
    cfg = build(body)
    exits = set()
    for block in cfg.blocks:
        run = [s for i in block.statements() if isinstance(s := body[i], Instruction)]
        if len(run) == 1 and facts(run[0]).control in (Control.RETURN, Control.EXIT):
            exits.add(block.index)
    ends = ((block, ending(body, block)) for block in cfg.blocks)
    tables = (b for b, last in ends if last is not None and facts(last).control is Control.INDEXED)
    return any(not exits.isdisjoint(cfg.successors[block.index]) for block in tables)


def _has(function: Function, control: Control) -> bool:
    return any(isinstance(s, Instruction) and facts(s).control is control for s in function.body or ())


def own_shared(function: Function) -> tuple[Variable, ...]:
    """The shared variables that a function declares."""
    return tuple(s for s in function.body or () if isinstance(s, Variable) and s.space == "shared")
