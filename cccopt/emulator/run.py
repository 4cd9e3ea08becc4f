"""Run kernels: a `Program` is a module ready to launch, `emulate` makes a single launch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np

from cccopt.emulator.arguments import Buffers, Resident, parameter_bytes, refuse
from cccopt.emulator.codegen import Generator, compile_code
from cccopt.emulator.collect_counters import collected
from cccopt.emulator.decode import Decoder
from cccopt.emulator.kernel import LoadedKernel
from cccopt.emulator.launch_counters import Profile
from cccopt.emulator.launch_memory import LaunchMemory, MemorySizes
from cccopt.emulator.layout import Frames, KernelLayout, ModuleMemory
from cccopt.emulator.machine import LaunchOptions, Machine
from cccopt.emulator.memory import GlobalMemory
from cccopt.emulator.places import Places
from cccopt.emulator.record import Record
from cccopt.emulator.schedule import LockStep
from cccopt.emulator.shape import Shape
from cccopt.emulator.shuffle import Shuffled
from cccopt.emulator.trace import Trace
from cccopt.ptx.call_promotion import promoted
from cccopt.ptx.constants import with_constants
from cccopt.ptx.ir import Function, Instruction, Module, Statement, Symbol, Variable
from cccopt.ptx.parser import parse
from cccopt.text import SourceText

Size: TypeAlias = "int | Sequence[int]"

MAX_STEPS = 10_000_000
"""The most steps (pieces of code run by a group of lanes) that a launch may take."""


class Program:
    """A module whose kernels can be launched many times; its global variables keep their values between launches.

    `cccopt.compile` returns a different class of the same name: the text before and after the rewrite.

    Args:
        ptx: PTX, or the module that `cccopt.parse` returned for it.
        name: The name of the text in messages.
        record: Records what iterations do to memory, for `cccopt.check`.

    Raises:
        PtxError: For text that is not PTX.
        EmulatorError: For inconsistent PTX (CCC079).
    """

    def __init__(self, ptx: str | Module, name: str = "<ptx>", *, record: Record | None = None) -> None:
        given = parse(ptx, name) if isinstance(ptx, str) else ptx
        self.module = promoted(with_constants(given), alone=True)
        self._places = Places(self.module, SourceText(name, ptx) if isinstance(ptx, str) else None)
        self._memory = GlobalMemory()
        self._record = record
        self._variables = ModuleMemory(self.module, self._memory)
        self._functions: dict[str, Function] = {}
        for function in self.module.functions():
            if function.body is not None or function.name not in self._functions:
                self._functions[function.name] = function
        self._kernels: dict[str, LoadedKernel] = {}
        self._known: dict[tuple[int, int], Resident] = {}

    @property
    def places(self) -> Places:
        """The lines of CUDA or PTX that the statements of the module come from."""
        return self._places

    def kernel_name(self, kernel: str) -> str:
        """The PTX name of a kernel.

        Args:
            kernel: That name, or the demangled one if only one kernel has it.

        Raises:
            EmulatorError: If no kernel has this name, or several have it (CCC076).
        """
        entries = [f.name for f in self._functions.values() if f.kind == "entry" and f.body is not None]
        if kernel in entries:
            return kernel
        found = [name for name in entries if unmangled(name) == kernel]
        if len(found) == 1:
            return found[0]
        if found:
            raise refuse(f"several kernels are called `{kernel}`", help=f"name one of {', '.join(found)}")
        known = ", ".join(f"`{name}`" for name in entries)
        close = get_close_matches(kernel, [unmangled(name) for name in entries], n=1)
        choice = f"did you mean `{close[0]}`? " if close else ""
        help = f"{choice}name one of {known}" if entries else "give it PTX with an `.entry`"
        raise refuse(f"no kernel `{kernel}` in the module", help=help)

    def launch(
        self,
        kernel: str,
        grid: Size,
        block: Size,
        args: Sequence[Any],
        *,
        shared_bytes: int = 0,
        shuffle: int | None = None,
        hazards: bool = True,
        check_uninitialized_shared: bool = False,
        max_steps: int = MAX_STEPS,
        trace: Trace | None = None,
    ) -> Profile:
        """Runs a kernel to its end. All arguments except ``trace`` are those of `cccopt.emulate`.

        Args:
            kernel: The kernel's name.
            grid: The number of blocks.
            block: The number of threads in a block.
            args: The kernel's arguments; arrays are updated in place.
            shared_bytes: Dynamic shared memory of a block.
            shuffle: A seed for the order of lanes.
            hazards: Report unordered accesses to shared memory.
            check_uninitialized_shared: Report reads of shared memory that was never written.
            max_steps: The most steps that the launch may take.
            trace: Filled with what one warp issues.

        Returns:
            The counters of this launch.

        Raises:
            EmulatorError: For errors of the kernel, and for an invalid launch (CCC070 to CCC079).
        """
        name = self.kernel_name(kernel)
        if name not in self._kernels:
            self._kernels[name] = self._load(name)
        ready = self._kernels[name]
        shape = Shape(_size(grid, "grid"), _size(block, "block"))
        self._check_shape(shape, self._functions[name], shared_bytes, ready)
        buffers = Buffers(self._memory, self._known)
        parameters = parameter_bytes(ready.parameters, ready.sizes.parameters, args, buffers)
        sizes = replace(ready.sizes, shared=ready.sizes.shared + shared_bytes)
        constants = self._variables.constants
        memory = LaunchMemory(sizes, shape, self._places, self._memory, constants, parameters)
        options = LaunchOptions(hazards, check_uninitialized_shared, max_steps, trace)
        machine = Machine(ready, memory, options)
        if self._record is not None:
            self._record.begin(machine)
        if shuffle is None:
            LockStep(machine).run()
        else:
            Shuffled(machine, shuffle).run()
        buffers.copy_out()
        if self._record is not None:
            self._record.end()
        return collected(machine)

    def _load(self, name: str) -> LoadedKernel:
        layout = KernelLayout(self._variables)
        self._lay_out_shared(layout, name)
        events = {} if self._record is None else self._record.events
        decoder = Decoder(self._functions, layout, self._places, events)
        decoder.decode(name)
        deep = decoder.recursive()
        frames = Frames.of(layout.frame_sizes, list(decoder.entries), deep)
        slots = decoder.resolver.slots
        generator = Generator(self._places, slots, frames, layout.parameters_size, self._record)
        formals = decoder.resolver.formals
        passed = [operand for lists in formals.values() for operands in lists for operand in operands]
        code = generator.generate(decoder.pieces, passed)
        return LoadedKernel(
            name,
            tuple(decoder.pieces),
            tuple(slots),
            code,
            compile_code(code),
            decoder.entries,
            deep,
            formals,
            layout.shared_variables,
            tuple(layout.parameters),
            tuple(layout.parameter_variables),
            MemorySizes(layout.shared_size, layout.parameters_size, frames.single, frames.per_depth),
        )

    def _lay_out_shared(self, layout: KernelLayout, kernel: str) -> None:
        """Gives addresses to the shared variables that the kernel and the functions it calls name."""
        names: set[str] = set()
        todo, seen = [kernel], {kernel}
        while todo:
            function = self._functions[todo.pop()]
            for statement in function.body or ():
                if isinstance(statement, Variable) and statement.space == "shared":
                    layout.shared_variable(f"{function.name}:{statement.name}", statement)
                mentioned = _names(statement)
                names |= mentioned
                called = {n for n in mentioned if n in self._functions} - seen
                seen |= called
                todo += sorted(called)
        layout.reserve_shared(names)

    def _check_shape(self, shape: Shape, function: Function, shared_bytes: int, kernel: LoadedKernel) -> None:
        if shape.threads > 1024 or shape.block[2] > 64:
            raise refuse(
                f"a block of {' x '.join(map(str, shape.block))} threads cannot be launched",
                why="a block has at most 1024 threads, and at most 64 in z",
            )
        for directive in function.directives:
            if directive.name not in (".maxntid", ".reqntid"):
                continue
            sizes = [int(n) for argument in directive.arguments for n in str(argument).split(",")]
            limit = int(np.prod(sizes))
            if shape.threads > limit or (directive.name == ".reqntid" and shape.threads != limit):
                raise refuse(
                    f"a block of {shape.threads} threads does not fit `{kernel.name}`",
                    why=f"the kernel declares {directive.name} {', '.join(map(str, sizes))}",
                )
        if kernel.sizes.shared > 48 * 1024:
            raise refuse(
                f"{kernel.sizes.shared} bytes of static shared memory in `{kernel.name}` are too many",
                why="ptxas accepts at most 49,152 bytes; more must be dynamic",
            )
        if shared_bytes < 0 or kernel.sizes.shared + shared_bytes > 227 * 1024:
            raise refuse(
                f"{kernel.sizes.shared + shared_bytes} bytes of shared memory per block are too many",
                why="at most 232,448 are available",
            )


def emulate(
    ptx: str | Module,
    kernel: str,
    *,
    grid: Size,
    block: Size,
    args: Sequence[Any],
    shared_bytes: int = 0,
    shuffle: int | None = None,
    hazards: bool = True,
    check_uninitialized_shared: bool = False,
    max_steps: int = MAX_STEPS,
) -> Profile:
    """Run one kernel on the emulator and count what its warps do.

    The arguments are those of a launch, followed by settings of the emulator.

    Args:
        ptx: PTX, or the module that `cccopt.parse` returned for it.
        kernel: The kernel's PTX name, or the demangled one if only one kernel has it.
        grid: The number of blocks: one number, or up to three of them.
        block: The number of threads in a block, likewise.
        args: The kernel's arguments. numpy arrays are device buffers, updated in place. Numbers take the parameter's
            type after a range check. Bytes are structs passed by value.
        shared_bytes: Dynamic shared memory of a block.
        shuffle: A seed. Lanes then run one at a time between the points where they meet, in an order drawn from it.
        hazards: Report accesses of two lanes to shared memory that no barrier orders.
        check_uninitialized_shared: Report reads of shared memory that was never written.
        max_steps: The most steps that the launch may take; a step is a piece of code run by a group of lanes.

    Returns:
        The counters of the launch.

    Raises:
        EmulatorError: For errors of the kernel, and for an invalid launch (CCC070 to CCC079).
        PtxError: For text that is not PTX.
    """
    return Program(ptx).launch(
        kernel,
        grid,
        block,
        args,
        shared_bytes=shared_bytes,
        shuffle=shuffle,
        hazards=hazards,
        check_uninitialized_shared=check_uninitialized_shared,
        max_steps=max_steps,
    )


def _size(value: Size, what: str) -> tuple[int, int, int]:
    sizes = [int(value)] if isinstance(value, int | np.integer) else [int(v) for v in value]
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise refuse(
            f"`{value}` is not a valid {what}", help=f"give one to three positive numbers as the {what}"
        )
    x, y, z = [*sizes, 1, 1][:3]
    return x, y, z


def _names(statement: Statement) -> set[str]:
    """The names of variables and functions that an instruction mentions."""
    if not isinstance(statement, Instruction):
        return set()
    found: set[str] = set()
    todo: list[Any] = list(statement.operands)
    while todo:
        operand = todo.pop()
        if isinstance(operand, Symbol):
            found.add(operand.name)
        todo += [getattr(operand, "base", None)] if hasattr(operand, "base") else []
        todo += list(getattr(operand, "elements", ()))
    return found


def unmangled(name: str) -> str:
    """The plain name in an Itanium-mangled one (``_Z3bfsiPi``: ``bfs``), the last part of a nested name."""
    match = re.match(r"_Z(?:(N)[rVK]*|L)?", name)
    if match is None:
        return name
    rest, plain = name[match.end() :], name
    while (number := re.match(r"\d+", rest)) is not None:
        length = int(number[0])
        plain = rest[number.end() : number.end() + length]
        rest = rest[number.end() + length :]
        if match[1] is None:
            break  # parameters follow, which may be structures
    return plain
