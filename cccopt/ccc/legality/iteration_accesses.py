"""The memory accesses in the iterations of a loop, and the statements that may access unknown memory."""

from __future__ import annotations

from dataclasses import dataclass

from cccopt.analysis import effects
from cccopt.analysis.affine import access_size
from cccopt.analysis.constancy import reads_unchanging_memory
from cccopt.analysis.loops import Loop
from cccopt.ccc.function.calls import HARMLESS_CALLS
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.atomics import commutes_as
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction, TextureAddress
from cccopt.ptx.isa import Control, Memory, callee_of

_OWN = ("param", "const")
_FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")


@dataclass(frozen=True, slots=True)
class Access:
    """A load, store or atomic at a statement, of ``size`` bytes; ``update`` is the operator and type of an atomic whose
    result nothing reads and that may run in any order, empty for others.
    """

    index: int
    memory: Memory
    size: int
    update: str = ""

    @property
    def writes(self) -> bool:
        """Whether the access changes memory."""
        return self.memory is not Memory.LOAD


def accesses_of(view: View, loop: Loop) -> tuple[tuple[Access, ...], tuple[int, ...]]:
    """The accesses in a loop to memory that iterations may share, and the statements about which nothing is known.
    Local memory is excluded: it belongs to one thread.
    """
    found: list[Access] = []
    unclear: list[int] = []
    for block in sorted(loop.blocks):
        for index in view.cfg.blocks[block].statements():
            s = view.body[index]
            if not isinstance(s, Instruction):
                continue
            facts = isa.facts(s)
            if facts.control is Control.CALL:
                if not all(_is_harmless(view, i) for i in view.with_callees(s)):
                    unclear.append(index)
            elif not facts.known:
                unclear.append(index)
            elif facts.memory is not Memory.NONE and not _is_own(view, s):
                addresses = [o for o in s.operands if isinstance(o, Address)]
                size = access_size(s)
                if len(addresses) == 1 and size and not facts.waits:
                    found.append(Access(index, facts.memory, size, updates_as(view, index)))
                else:
                    unclear.append(index)
    return tuple(found), tuple(unclear)


def updates_as(view: View, index: int) -> str:
    """The operator and type of an atomic whose result nothing reads, and that commutes with others of its kind."""
    return commutes_as(view, index) or sums_as(view, index)


def sums_as(view: View, index: int) -> str:
    """The same for sums of floating-point numbers, whose last digits depend on the order."""
    s = view.body[index]
    assert isinstance(s, Instruction)
    facts = isa.facts(s)
    type = next((part for part in reversed(s.parts) if part in _FLOATS), "")
    read = effects.writes(s) & view.liveness.live_after(index)
    added = facts.memory is Memory.ATOMIC and facts.reduction == "+" and type and not read
    return f"+.{type}" if added else ""


def _is_own(view: View, s: Instruction) -> bool:
    """Whether an instruction reads what nothing changes, or uses memory that belongs to the thread."""
    facts = isa.facts(s)
    if facts.space in _OWN or facts.space == "local":
        return True
    if facts.memory is not Memory.LOAD:
        return False
    textures = any(isinstance(o, TextureAddress) for o in s.operands)
    # A kernel may not write what it reads as a texture.
    return (textures and s.base.startswith(("tex", "tld4"))) or reads_unchanging_memory(s, view.function)


def _is_harmless(view: View, s: Instruction) -> bool:
    """Whether an instruction of a call, or the call itself, uses no memory that iterations may share."""
    facts = isa.facts(s)
    if facts.control is Control.CALL:
        callee = callee_of(s)
        seen = any(f.name == callee and f.body is not None for f in view.module.functions())
        return callee is not None and (seen or callee in HARMLESS_CALLS)
    if not facts.known:
        return False
    return facts.memory is Memory.NONE or facts.space in (*_OWN, "local") or _is_nc(s)


def _is_nc(s: Instruction) -> bool:
    return s.base == "ld" and "nc" in s.parts
