"""What messages say about statements: the CUDA line that each comes from, if ``.loc`` gives it, and its variables.

Names do not survive into PTX. A line shows a name if it assigns to it: `r = f(v);`, `float r = v;`, `sum += x;`.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cccopt.ccc.function.source_text import source_text
from cccopt.ptx import isa
from cccopt.ptx.ir import Function, Instruction, Module, Statement
from cccopt.ptx.isa import Memory
from cccopt.ptx.lines import SourceLine, source_chains
from cccopt.ptx.printer import print_statement
from cccopt.text import Place, Position, SourceText, shortened

Note = tuple[str, Place]
"""A label and the place that it is about, as a `Diagnostic` has them."""

_COMMENT = re.compile(r"//.*|/\*.*?\*/|\"(?:[^\"\\]|\\.)*\"")
_ASSIGNMENT = re.compile(r"(?:^|[\s*&])([A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)")
_STEP = re.compile(r"(?:\+\+|--)\s*([A-Za-z_]\w*)\s*$|^\s*([A-Za-z_]\w*)\s*(?:\+\+|--)\s*$")
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_JUMP = re.compile(r"\b(break|return|goto|continue)\b")
_REACH = 8
"""The number of lines, from that of a branch onwards, in which its jump is looked for."""
_DOES = {
    Memory.LOAD: "reads memory",
    Memory.STORE: "writes memory",
    Memory.ATOMIC: "updates memory atomically",
}


@dataclass(frozen=True)
class Origins:
    """The CUDA lines of one function's statements, which are given by index; ``files`` are the file names that messages
    use.
    """

    module: Module
    function: Function
    files: frozenset[str] = frozenset()

    @cached_property
    def known(self) -> bool:
        """Whether any statement has a line."""
        return any(line is not None for line in self._lines)

    def place(self, index: int) -> Place | None:
        """The CUDA line of a statement, with its text if the file still exists."""
        line = self._lines[index]
        return None if line is None else self._at(line.file, line.line, max(line.column, 1))

    def own_place(self, index: int) -> Place | None:
        """The innermost CUDA line of a statement that is in one of ``files``, or else simply the innermost: for an
        atomic, the line that calls it, not that of the toolkit.
        """
        files = {os.path.abspath(name) for name in self.files}
        found = next((line for line in self._chains[index] if line.file in files), None)
        return self.place(index) if found is None else self._at(found.file, found.line, max(found.column, 1))

    def text(self, index: int) -> str:
        """The CUDA line of a statement, or else its PTX."""
        return self._text(index, self.place(index))

    def own_text(self, index: int) -> str:
        """The line of `own_place`, or else the statement's PTX."""
        return self._text(index, self.own_place(index))

    def _text(self, index: int, place: Place | None) -> str:
        written = "" if place is None else place.line_text.strip()
        return shortened(written) if written else print_statement(self._statement(index)).strip()

    def access(self, index: int, code: str) -> str:
        """A memory access of ``code`` in words: what it does, and its line or else its PTX."""
        statement = self._statement(index)
        memory = isa.facts(statement).memory if isinstance(statement, Instruction) else Memory.NONE
        return f"{code} {_DOES.get(memory, 'accesses memory')} in `{self.text(index)}`"

    def notes(self, label: str, index: int) -> tuple[Note, ...]:
        """A note at the CUDA line of a statement, if that is known. For a line of another file, such as the toolkit's,
        a second note shows the call in one of ``files``.
        """
        place, own = self.place(index), self.own_place(index)
        if place is None or own is None:
            return ()
        note = (label if place.line_text else f"{label}: {self.text(index)}", place)
        return (note,) if own.file == place.file else (note, ("called here", own))

    def assigned(self, index: int) -> frozenset[str]:
        """The variables that the line of a statement assigns to, as far as its text shows."""
        return frozenset(name for part in self._parts(index) for name in _assigned(part))

    def named(self, index: int) -> frozenset[str]:
        """The names in the line of a statement."""
        return frozenset(name for part in self._parts(index) for name in _WORD.findall(part))

    def jump(self, index: int) -> tuple[Note, ...]:
        """The `break`, `return`, `goto` or `continue` with which the branch at a statement leaves its path."""
        place = self.place(index)
        if place is None:
            return ()
        return self.jump_from(place) or (("control leaves the path here", place),)

    def jump_from(self, start: Place) -> tuple[Note, ...]:
        """The first jump in the lines from a place onwards, up to the next closing brace."""
        for number in range(start.position.line, start.position.line + _REACH):
            place = self._at(start.file, number, 1)
            code = _COMMENT.sub(lambda found: " " * len(found[0]), place.line_text)
            found = _JUMP.search(code)
            if found is not None:
                position = Position(number, found.start() + 1)
                return ((f"this `{found[1]}` leaves the path", replace(place, position=position)),)
            if "}" in code:
                break
        return ()

    # --- lines ---

    def _statement(self, index: int) -> Statement:
        return (self.function.body or ())[index]

    def _parts(self, index: int) -> list[str]:
        """The source statements in the line of a statement."""
        place = self.place(index)
        return [] if place is None else re.split(r"[;{}()]", _COMMENT.sub("", place.line_text))

    @cached_property
    def _lines(self) -> Sequence[SourceLine | None]:
        return [chain[0] if chain else None for chain in self._chains]

    @cached_property
    def _chains(self) -> Sequence[tuple[SourceLine, ...]]:
        return source_chains(self.module, self.function)

    def _at(self, file: str, line: int, column: int) -> Place:
        if file not in self._texts:
            name = next((name for name in self.files if os.path.abspath(name) == file), file)
            self._texts[file] = source_text(name)
        source = self._texts[file]
        return Place(source.name, Position(line, column), source.line(line))

    @cached_property
    def _texts(self) -> dict[str, SourceText]:
        return {}


def _assigned(part: str) -> list[str]:
    found = [match[1] for match in _ASSIGNMENT.finditer(part)]
    step = _STEP.search(part)
    return found if step is None else [*found, step[1] or step[2]]
