"""The origin of an instruction: the CUDA line from `.loc`, else the PTX line with its text."""

from __future__ import annotations

from functools import cached_property

from cccopt.diagnostic import error
from cccopt.emulator.errors import EmulatorError
from cccopt.emulator.pieces import Decoded
from cccopt.ptx.ir import Function, Module
from cccopt.ptx.lines import SourceLine, source_lines
from cccopt.text import Place, Position, SourceText


class Places:
    """The places of a module's statements; ``source`` is the PTX text, if there is one."""

    def __init__(self, module: Module, source: SourceText | None) -> None:
        self._functions: dict[str, Function] = {}
        for function in module.functions():
            if function.body is not None or function.name not in self._functions:
                self._functions[function.name] = function
        self._source = source
        self._module = module
        self._lines: dict[str, tuple[SourceLine | None, ...]] = {}

    @cached_property
    def name(self) -> str:
        """The name of the PTX text."""
        return "<ptx>" if self._source is None else self._source.name

    def ptx(self, function: str, statement: int) -> Place:
        """The place of a statement in the PTX text (line 0 if it was built, not parsed)."""
        position = self._position(function, statement)
        return (
            Place(self.name, position)
            if self._source is None or not position.line
            else self._source.place(position)
        )

    def _position(self, function: str, statement: int) -> Position:
        body = self._functions[function].body or ()
        position = getattr(body[statement], "position", None) if statement < len(body) else None
        return Position(0) if position is None else position

    def cuda(self, function: str, statement: int) -> Place | None:
        """The CUDA line of a statement, if a `.loc` gives it."""
        if function not in self._lines:
            self._lines[function] = source_lines(self._module, self._functions[function])
        line = self._lines[function][statement]
        return None if line is None else Place(line.file, Position(line.line, line.column))

    def line(self, function: str, statement: int) -> tuple[str, int]:
        """The file and line in CUDA if known, else in the PTX text."""
        place = self.cuda(function, statement)
        # No message quotes this line, and finding it in a large text takes long.
        return (
            (self.name, self._position(function, statement).line)
            if place is None
            else (place.file, place.position.line)
        )

    def error(
        self,
        code: str,
        message: str,
        item: Decoded | None = None,
        *,
        function: str = "",
        statement: int | None = None,
        why: str = "",
        help: str = "",
        others: tuple[tuple[str, Decoded], ...] = (),
    ) -> EmulatorError:
        """An error at an instruction, with its PTX line beside the CUDA line; ``others`` become notes.

        The arguments are the parts of a diagnostic that `cccopt.diagnostic.error` takes, and two ways to name
        an instruction.
        """
        if item is not None:
            function, statement = item.function, item.statement
        place = None
        notes: list[tuple[str, Place]] = []
        if statement is not None:
            place = self.cuda(function, statement)
            ptx = self.ptx(function, statement)
            if place is None:
                place = ptx
            else:
                notes.append(("in PTX", ptx))
        for label, other in others:
            notes.append(
                (
                    label,
                    self.cuda(other.function, other.statement) or self.ptx(other.function, other.statement),
                )
            )
        if function:
            message = f"{message} (in `{function}`)"
        return EmulatorError(error(code, message, place, why=why, help=help, notes=tuple(notes)))
