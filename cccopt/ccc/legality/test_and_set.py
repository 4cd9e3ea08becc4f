"""Loads that only decide whether a constant is stored to the address that they load from.

        if (*changed == 0) *changed = 1;

Such statements, of the same thread or of others, may run in any order: each leaves the constant or what was there, so
memory holds the constant in the end if any of them would have stored it first. Nothing else depends on what was loaded.
The caller must check that nothing else writes to the address (`InnerIterations`).
"""

from __future__ import annotations

from collections.abc import Mapping

from cccopt.analysis import effects
from cccopt.ccc.function.view import View
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Literal
from cccopt.ptx.isa import Control


def constant_set(view: View, load: int, stores: Mapping[int, Literal]) -> Literal | None:
    """The constant that is stored or not, depending on what the statement ``load`` loads, if that decides nothing else;
    None if it decides more, or nothing. ``stores`` are the constants stored to the same address, by statement.
    """
    found: set[Literal] = set()
    work, seen = [load], {load}
    while work:
        definition = work.pop()
        for name in effects.writes(view.body[definition]):
            for reader in view.readers.get((definition, name), ()):
                stored = _stored(view, reader, name, stores)
                if stored is not None:
                    found |= stored
                elif not effects.is_pure(view.body[reader]):
                    return None
                elif reader not in seen:
                    seen.add(reader)
                    work.append(reader)
    return found.pop() if len(found) == 1 else None


def _stored(view: View, reader: int, name: str, stores: Mapping[int, Literal]) -> frozenset[Literal] | None:
    """The constants that are stored or not depending on ``name`` in the guard of ``reader``; None if it decides
    anything else.
    """
    statement = view.body[reader]
    assert isinstance(statement, Instruction)
    if statement.guard is None or statement.guard.register.name != name:
        return None
    if reader in stores:
        return frozenset({stores[reader]})
    if isa.facts(statement).control is not Control.BRANCH:
        return None
    return _skipped(view, view.cfg.block_of(reader), stores)


def _skipped(view: View, block: int, stores: Mapping[int, Literal]) -> frozenset[Literal] | None:
    """The constants stored by the block that the branch at the end of ``block`` enters or skips; None if there is no
    such block, or if it does anything else.
    """
    cfg = view.cfg
    for inner in cfg.successors[block]:
        others = set(cfg.successors[block]) - {inner}
        if cfg.predecessors[inner] == (block,) and set(cfg.successors[inner]) == others:
            break
    else:
        return None
    own = cfg.blocks[inner].statements()
    found = set[Literal]()
    for index in own:
        statement = view.body[index]
        if not isinstance(statement, Instruction):
            continue
        if index in stores:
            found.add(stores[index])
        elif isa.facts(statement).control is Control.BRANCH:
            if statement.guard is not None:
                return None
        elif not effects.is_pure(statement) or not (_stays(view, index, own) or _repeats(view, index, block)):
            return None
    return frozenset(found)


def _stays(view: View, index: int, block: range) -> bool:
    """Whether what a statement computes is read only in its block."""
    readers = (view.readers.get((index, name), ()) for name in effects.writes(view.body[index]))
    return all(reader in block for found in readers for reader in found)


def _repeats(view: View, index: int, before: int) -> bool:
    """Whether a statement leaves in its registers what the same statement in the block ``before`` has already left
    there: nvcc copies a variable's value once for each way to where it is read.
    """
    reaching, statement = view.reaching, view.body[index]
    return all(
        definition in view.cfg.blocks[before].statements()
        and view.body[definition] == statement
        and all(
            reaching.reaching(definition, n) == reaching.reaching(index, n) for n in effects.reads(statement)
        )
        for name in effects.writes(statement)
        for definition in reaching.reaching_end(before, name)
    )
