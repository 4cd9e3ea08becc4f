"""Which stack a memory access that a rewrite added belongs to.

The address is traced back to what it is computed from: the variable that holds the stacks (in global memory the pool,
in which each warp has an entry), and the register that counts a stack's tasks. If it contains no counter
(lane k takes the task in slot k), the constant offset identifies the stack.

        add.s32    %slot, %top, %ahead;             the stack whose counter is %top
        mad.lo.s32 %at, %slot, 4, %base;
        st.shared.b32 [%at+1024], %r5;
"""

from __future__ import annotations

from cccopt.ccc.output_check.regions import LoopCode
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction, Literal, Operand, Register, Symbol

OWNED = -1
"""The stack number that stands for the owners' slots of reductions."""


class StackAddresses:
    """Finds the stacks of one loop by address."""

    def __init__(self, loop: LoopCode) -> None:
        self.loop = loop
        self.stacks = loop.facts.stacks
        self.counters = {stack.counter: number for number, stack in enumerate(self.stacks)}
        pool = loop.facts.pool
        self.symbols = {loop.facts.symbol} if pool is None else {loop.facts.symbol, pool.name}
        self._known: dict[Operand, tuple[set[str], set[str]]] = {}

    def are_of(self, access: Instruction) -> bool:
        """Whether a memory access goes to the stacks and is not the program's own. Tasks get the addresses of their
        owners' slots from their contexts.
        """
        where = next((o for o in access.operands if isinstance(o, Address)), None)
        if where is None:
            return False
        owned = isinstance(where.base, Register) and where.base.name in self.loop.facts.owners
        return owned or not self.symbols.isdisjoint(self._roots(where.base)[1])

    def is_claim(self, access: Instruction) -> bool:
        """Whether an access goes to the claim of an entry of the pool."""
        pool = self.loop.facts.pool
        where = next((o for o in access.operands if isinstance(o, Address)), None)
        if pool is None or where is None or where.offset is not None:
            return False
        counters, symbols = self._roots(where.base)
        return not counters and symbols == {pool.name}

    def stack_of(self, access: Instruction) -> int | None:
        """The number of the stack that an `ld` or `st` goes to, `OWNED`, or None if it goes elsewhere."""
        where = next((o for o in access.operands if isinstance(o, Address)), None)
        if where is None:
            return None
        offset = int(where.offset.spelling, 0) if isinstance(where.offset, Literal) else 0
        facts = self.loop.facts
        counters, symbols = self._roots(where.base)
        if self.symbols.isdisjoint(symbols) or len(counters) > 1:
            return None
        if facts.symbol in symbols and not counters and 0 <= offset < facts.owned_bytes:
            return OWNED
        if facts.pool is not None and facts.pool.name not in symbols:
            return None
        for name in counters:
            stack = self.stacks[self.counters[name]]
            # A pop counts slots from 1, so its array begins a word earlier.
            return self.counters[name] if stack.start - 8 <= offset < stack.stop else None
        return next((n for n, stack in enumerate(self.stacks) if stack.start <= offset < stack.stop), None)

    def _roots(self, base: Operand) -> tuple[set[str], set[str]]:
        """The counters and the symbols that an address is computed from."""
        if base not in self._known:
            self._known[base] = self._followed(base)
        return self._known[base]

    def _followed(self, base: Operand) -> tuple[set[str], set[str]]:
        code = self.loop.code
        counters: set[str] = set()
        symbols: set[str] = set()
        seen: set[str] = set()
        work = [base]
        while work:
            item = work.pop()
            if isinstance(item, Symbol):
                symbols.add(item.name)
            if not isinstance(item, Register) or item.name in seen:
                continue
            seen.add(item.name)
            if item.name in self.counters:
                counters.add(item.name)
                continue
            for index in code.definitions.get(item.name, ()):
                instruction = code.body[index]
                assert isinstance(instruction, Instruction)
                work += _sources(instruction)
        return counters, symbols


def _sources(instruction: Instruction) -> tuple[Operand, ...]:
    """The operands that a number is computed from; for a shuffle, the shuffled value."""
    if instruction.base == "shfl":
        return instruction.operands[1:2]
    if instruction.base == "setp" or not isa.facts(instruction).pure:
        return ()
    return instruction.operands[1:]
