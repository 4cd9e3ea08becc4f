"""Is local memory that was saved on a stack put back where it was?

        push:  ld.local.b32  %r1, [depot+8];            pop:   ld.shared.b32 %r2, [%at+1020];
               st.shared.b32 [%at+1024], %r1;                  st.local.b32  [depot+8], %r2;

If a block fills a word of a stack from local memory, each block that loads the word must put it back to the same bytes,
under the guard of the load. The program itself may store to local memory what a task found in other words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cccopt.analysis import effects
from cccopt.ccc.output_check.accesses import StackAddresses
from cccopt.ccc.output_check.regions import LoopCode, Violation
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction, Literal, Register

_Word = tuple[int, int]
"""The number of a stack, and the offset in the stacks at which the word's array begins."""

_Place = tuple[str, Address]
"""The type of an access to local memory, and its address."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy between a word of a stack and a place in local memory: the load, and the statement that stores."""

    load: Instruction
    store: Instruction
    statement: int
    word: _Word
    place: _Place


def local_violations(loop: LoopCode) -> Iterator[Violation]:
    """Words of local memory that are not put back where they were."""
    stacks = StackAddresses(loop)
    copies = [copy for block in loop.blocks for copy in _copies(loop, block, stacks)]
    filled = _by_word(copies, local=False)
    emptied = _by_word(copies, local=True)
    for copy in (copy for copy in copies if filled[copy.word]):
        if not filled[copy.word] == emptied[copy.word] == {copy.place}:
            yield Violation(copy.statement, "this word of local memory is not put back where it was")
        elif _is_local(copy.store) and copy.load.guard != copy.store.guard:
            yield Violation(copy.statement, "some lanes may store here what they have not loaded")


def _by_word(copies: Iterable[_Copy], *, local: bool) -> Mapping[_Word, set[_Place]]:
    """For each word, the places where copies put it (``local``), or from which they take it."""
    found: dict[_Word, set[_Place]] = defaultdict(set)
    for copy in copies:
        found[copy.word].update([copy.place] if _is_local(copy.store) == local else [])
    return found


def _copies(loop: LoopCode, block: int, stacks: StackAddresses) -> Iterator[_Copy]:
    """The copies that a block makes."""
    loads: dict[str, Instruction] = {}
    for index, instruction in loop.code.instructions(block):
        value = instruction.operands[-1] if instruction.base == "st" else None
        load = loads.get(value.name) if isinstance(value, Register) else None
        if load is not None and _is_local(load) != _is_local(instruction):
            local, waiting = (load, instruction) if _is_local(load) else (instruction, load)
            word = _word(stacks, waiting)
            if word is not None:
                yield _Copy(load, instruction, index, word, (local.parts[-1], _address(local)))
        for name in effects.writes(instruction):
            loads.pop(name, None)
            if instruction.base == "ld":
                loads[name] = instruction


def _is_local(access: Instruction) -> bool:
    return isa.facts(access).space == "local"


def _word(stacks: StackAddresses, access: Instruction) -> _Word | None:
    """The word of a stack that an access goes to. Pops count slots from 1: their arrays seem to begin
    a word earlier.
    """
    stack = stacks.stack_of(access) if stacks.are_of(access) else None
    offset = _address(access).offset
    start = int(offset.spelling, 0) if isinstance(offset, Literal) else 0
    size = isa.width(access.parts[-1]) // 8
    return None if stack is None else (stack, start + (size if access.base == "ld" else 0))


def _address(access: Instruction) -> Address:
    return next(o for o in access.operands if isinstance(o, Address))
