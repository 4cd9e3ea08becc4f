"""Accesses that surely meet in different iterations: both run in several of them, and the distance between their
addresses is a whole number of steps from one iteration or thread to the next.

        sum[0] += x[i];         the place is the same in all iterations
        a[i + 1] = a[i];        the place of thread t's load is that of thread t - 1's store
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cccopt.analysis import cfg as control_flow
from cccopt.analysis.comparisons import is_comparison
from cccopt.analysis.loops import Loop
from cccopt.analysis.polynomials import Polynomial
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.disjoint import Digits
from cccopt.ccc.legality.iteration_accesses import Access
from cccopt.ccc.legality.symbolic_values import SymbolicValues
from cccopt.ptx.ir import Address, Instruction, Register, Vector
from cccopt.ptx.isa import Memory

_FARTHEST = 1024
_LANES = 32


@dataclass(frozen=True)
class Conflicts:
    """The conflicts between one loop's iterations. ``same`` distinguishes iterations of one thread, ``cross`` those of
    two threads; for the threads of a grid, ``same`` is None.
    """

    view: View
    loop: Loop
    values: SymbolicValues
    same: Digits | None
    cross: Digits | None

    def why(self, a: Access, b: Access) -> str:
        """How ``a``, which writes, surely meets ``b`` in another iteration; empty if that is not certain."""
        if a.update and b.update:
            return ""
        first, second = (self.values.of_address(x.index).number for x in (a, b))
        if self.same is not None and self._always(a.index, self.same) and self._always(b.index, self.same):
            steps = self._steps(first, second, self.same, a, b, _FARTHEST)
            if steps == 0 and self._matters(a, b, self.same):
                return "all iterations of a thread access the same location"
            if steps:
                return f"an iteration accesses the same location as the one {_ordinal(abs(steps))} it"
        if self.cross is not None and self._always(a.index, self.cross) and self._always(b.index, self.cross):
            steps = self._steps(first, second, self.cross, a, b, _LANES - 1)
            if steps == 0 and self.same is None and self._matters(a, b, self.cross):
                return "all threads access the same location"
            if steps:
                return f"a thread accesses the same location as the one {_beside(abs(steps))}"
        return ""

    def _steps(
        self, a: Polynomial, b: Polynomial, how: Digits, x: Access, y: Access, most: int
    ) -> int | None:
        """By how much a digit differs when both access the same bytes; 0 if no digit matters, None if unknown."""
        first, second = a.parts(how.moving), b.parts(how.moving)
        if first is None or second is None:
            return None
        (still, mine), (other, yours) = first, second
        apart = (still - other).number
        if apart is None or mine.keys() != yours.keys() or not mine.keys() <= how.digits:
            return None
        if any(mine[d] != yours[d] for d in mine):
            return None
        if not mine:
            return 0 if -x.size < apart < y.size else None
        digit = self._stepping(mine)
        if digit is None:
            return None
        factor = mine[digit].number
        if not factor:
            return None
        nearest = -apart // factor
        for steps in (nearest, nearest + 1):
            if steps and abs(steps) <= most and -x.size < apart + factor * steps < y.size:
                return steps
        return None

    def _stepping(self, factors: Mapping[int, Polynomial]) -> int | None:
        """The digit in which neighboring iterations differ: the iteration number, or the thread index along x."""
        atoms = self.values.symbols.atoms
        numbers = [d for d in factors if factors[d].number]
        keys = {atoms[d].key: d for d in numbers}
        own = ("iteration", self.loop.header)
        return keys.get(own, keys.get(("special", "%tid.x")))

    def _matters(self, a: Access, b: Access, how: Digits) -> bool:
        """Whether it matters which of two iterations comes last when both access one location."""
        if Memory.ATOMIC in (a.memory, b.memory):
            # An atomic conflicts with a plain access, but not with another atomic.
            return Memory.ATOMIC not in (a.memory if b.memory is Memory.ATOMIC else b.memory,)
        return any(self._varies(x, how) for x in (a, b) if x.memory is Memory.STORE)

    def _varies(self, store: Access, how: Digits) -> bool:
        """Whether the stored value differs between iterations, as far as the code shows."""
        s = self.view.body[store.index]
        assert isinstance(s, Instruction)
        stored = [o for o in s.operands if not isinstance(o, Address)]
        parts = [part for o in stored for part in (o.elements if isinstance(o, Vector) else (o,))]
        return any(
            how.moving(atom)
            for part in parts
            for atom in self.values.of_operand(store.index, part).number.atoms
        )

    def _always(self, index: int, how: Digits) -> bool:
        """Whether several iterations surely reach a statement: the deciding condition is the same in all of them, or
        compares a digit with a bound that is not a constant.
        """
        s = self.view.body[index]
        assert isinstance(s, Instruction)
        block = self.view.cfg.block_of(index)
        innermost = self.view.innermost(block)
        if s.guard is not None or innermost is None or innermost.header != self.loop.header:
            return False
        leaving = {source for source, _ in self.loop.exits}
        work, seen = [block], {block}
        while work:
            for branch in self.view.control_dependence[work.pop()] & self.loop.blocks - seen:
                seen.add(branch)
                work.append(branch)
                if branch not in leaving and not self._lets_several_pass(branch, how):
                    return False
        return True

    def _lets_several_pass(self, block: int, how: Digits) -> bool:
        end = control_flow.ending(self.view.body, self.view.cfg.blocks[block])
        if end is None or end.guard is None:
            return False
        return self._passes(self.view.cfg.blocks[block].stop - 1, end.guard.register.name, how, 4)

    def _passes(self, use: int, predicate: str, how: Digits, depth: int) -> bool:
        definitions = self.view.reaching.reaching(use, predicate)
        if len(definitions) != 1 or ENTRY in definitions or not depth:
            return False
        (index,) = definitions
        s = self.view.body[index]
        if not isinstance(s, Instruction) or s.guard is not None:
            return False
        if s.base in ("and", "or", "not"):
            return all(
                isinstance(o, Register) and self._passes(index, o.name, how, depth - 1)
                for o in s.operands[1:]
            )
        if not is_comparison(s) or s.parts[-1][0] not in "bsu":
            return False
        sides = [self.values.of_operand(index, o).number for o in s.operands[1:]]
        moving = [{atom for atom in side.atoms if how.moving(atom)} for side in sides]
        if not any(moving):
            return True
        ordered = s.parts[1] not in ("eq", "ne")
        bound = sides[1] if moving[0] else sides[0]
        return ordered and bool(bound.atoms) and not all(moving) and (moving[0] | moving[1]) <= how.digits


def _ordinal(steps: int) -> str:
    return "before or after" if steps == 1 else f"{steps} iterations before or after"


def _beside(steps: int) -> str:
    return "beside it" if steps == 1 else f"{steps} positions away"
