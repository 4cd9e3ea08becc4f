"""Whether the inner iterations of a loop have to run in order, because of what they do to memory.

`#pragma ccc for variable` says that they are tasks: they may access what they share with other lanes' inner iterations
in any order. What belongs to one lane is different, because the lane's own inner iterations ran in order in the
original program:

        out[k] = x;             each inner iteration has an address of its own: any order
        levels[u] = next;       the address is found in data, and all lanes may find it: any order
        *changed = 1;           one address, always the same value: any order
        if (!*changed) *changed = 1;        the same, tested first: any order
        total[v] = x;           one address of the lane's own: the last one wins, in order
        bins[8 * v + b] = x;    addresses of the lane's own: in order
        count[u] += x;          a value loaded, changed and stored again: in order (atomicAdd: any)
        a[k] = a[k - 1];        what another inner iteration stores: in order
        a[8 * v + k] = a[8 * v + (k - 1 & 7)];     the lane's own part of an array, not understood: in order

If addresses hide what they have in common, the pragma is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cccopt.analysis import effects
from cccopt.analysis.affine import access_size, combined, may_recur
from cccopt.analysis.constancy import UNIFORM_SPECIAL_REGISTERS, reads_unchanging_memory
from cccopt.analysis.cost import integer
from cccopt.analysis.invariance import LoopInvariance
from cccopt.analysis.reaching import ENTRY
from cccopt.analysis.roots import UNKNOWN
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.atomics import commutes_as
from cccopt.ccc.legality.test_and_set import constant_set
from cccopt.ccc.regions.induction import Induction
from cccopt.ccc.regions.paths import Path
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction, Literal, Operand, Register, TextureAddress, Vector
from cccopt.ptx.isa import Control, Memory

_ELSEWHERE = ("local", "param", "const")
"""State spaces in which no two inner iterations meet."""


@dataclass(frozen=True, slots=True)
class _Access:
    """An access to memory. ``base`` is the register of its address, empty if that is a variable's own. ``fixed`` says
    whether all inner iterations of a lane access one address. ``register`` and ``offset`` give the address as a
    register of the loop's header plus a constant. ``size`` is in bytes, ``value`` is what a store stores. ``variable``
    names the variable at whose address the access is, if ``base`` is empty; ``scalar`` says that it accesses a single
    number.
    """

    index: int
    base: str
    displacement: int | None
    fixed: bool
    size: int
    register: str = ""
    offset: int = 0
    value: tuple[Operand, ...] = ()
    variable: str = ""
    scalar: bool = True


def in_order(view: View, path: Path) -> bool:
    """Whether an inner iteration may depend on an earlier one, as far as can be determined."""
    return InnerIterations(view, path).in_order()


class InnerIterations(Induction):
    """The inner iterations of one loop of tasks, and what they do to memory."""

    def __init__(self, view: View, path: Path) -> None:
        super().__init__(view, path)
        self.path = path
        self.invariance = LoopInvariance(view.function, view.reaching, self.blocks)

    def in_order(self) -> bool:
        stores: list[_Access] = []
        loads: list[_Access] = []
        atomics: list[_Access] = []
        for index, instruction in self.view.instructions(self.path.nodes):
            facts = isa.facts(instruction)
            if facts.control is Control.CALL:
                return True
            if facts.memory is Memory.NONE or facts.space in _ELSEWHERE:
                continue
            if any(isinstance(o, TextureAddress) for o in instruction.operands):
                # Nothing else in a loop accesses what a texture reads; nothing is known about addresses in a surface.
                if facts.memory is not Memory.LOAD:
                    return True
                continue
            access = self._access(index, instruction)
            if facts.memory is Memory.STORE:
                stores.append(access)
            elif facts.memory is Memory.LOAD and not reads_unchanging_memory(instruction, self.view.function):
                loads.append(access)
            elif facts.memory is Memory.ATOMIC:
                if not commutes_as(self.view, index) and self._is_own(access):
                    return True
                atomics.append(access)
        return (
            any(self._keeps_order(store) for store in stores)
            or any(self._meet(store, other) for store in stores for other in stores)
            or any(
                self._meet(store, load) for load in loads for store in self._seen_by(load, stores, atomics)
            )
            or any(self._updates(store, load) for store in stores for load in loads)
            or any(self._share_a_segment(store, load) for store in stores for load in loads)
        )

    def may_meet(self, a: int, b: int, *, copies: bool = False) -> bool:
        """Whether the access ``a`` of one inner iteration may touch what ``b`` touches in another one: not if both
        addresses advance by the same constant and stay apart. With ``copies``, they are in different copies of the
        body of an unrolled loop, and may meet in one iteration of the loop that was made of it.
        """
        found = [
            self._access(i, s)
            for i in (a, b)
            if isinstance(s := self.view.body[i], Instruction) and _plain(s)
        ]
        if len(found) < 2 or not all(access.size for access in found):
            return True
        x, y = found
        if x.register and x.register == y.register:
            return _overlap(x.offset - y.offset, self.step(x.register), max(x.size, y.size), copies=copies)
        if not x.base or x.base != y.base or x.displacement is None or y.displacement is None:
            return True
        reaching = self.view.reaching.reaching
        if reaching(a, x.base) != reaching(b, x.base):
            return True
        apart, growth = x.displacement - y.displacement, self._growth(a, x.base)
        return _overlap(apart, growth, max(x.size, y.size), copies=copies)

    def _access(self, index: int, instruction: Instruction) -> _Access:
        address = next(o for o in instruction.operands if isinstance(o, Address))
        base = address.base.name if isinstance(address.base, Register) else ""
        by = 0 if address.offset is None else integer(address.offset)
        fixed = not base or self.invariance.holds(index, base)
        value = tuple(self._plain(index, o) for o in instruction.operands if o is not address)
        register, offset = "", 0
        if by is not None and (found := self.from_header(index, address.base)) is not None:
            register, offset = found[0], found[1] + by
        return _Access(
            index,
            base,
            by,
            fixed,
            access_size(instruction),
            register,
            offset,
            value,
            "" if base else str(address.base),
            not any(isinstance(operand, Vector) for operand in instruction.operands),
        )

    def _seen_by(
        self, load: _Access, stores: Sequence[_Access], atomics: Sequence[_Access]
    ) -> Iterator[_Access]:
        """The stores that may change what an inner iteration loads, and thereby what it does.

        Stores of a constant are excluded if the load only decides whether that constant is stored. All must have the
        same size, since addresses that are multiples of it are equal or apart, and no atomic operation may change the
        value.
        """
        constants = {
            store.index: store.value[0]
            for store in stores
            if store.fixed
            and store.scalar
            and store.size == load.size
            and isinstance(store.value[0], Literal)
        }
        same = {
            s.index: constants[s.index]
            for s in stores
            if s.index in constants and self._same_address(s, load)
        }
        decides = same and load.size and load.scalar and not any(atomic.fixed for atomic in atomics)
        constant = constant_set(self.view, load.index, same) if decides else None
        return (s for s in stores if constant is None or constants.get(s.index) != constant)

    def _keeps_order(self, store: _Access) -> bool:
        """Whether what a store leaves at an address of the lane's own depends on which inner iteration comes last."""
        if store.fixed:
            statement = self.view.body[store.index]
            guard = statement.guard if isinstance(statement, Instruction) else None
            own = effects.reads(statement) - {store.base} - ({guard.register.name} if guard else set())
            return not all(self.invariance.holds(store.index, name) for name in own)
        growth = self._growth(store.index, store.base)
        if growth is not None and abs(growth) >= store.size:
            return False
        return self._is_own(store)

    def _share_a_segment(self, store: _Access, load: _Access) -> bool:
        """Whether both access the lane's own part of one array, and it is not known how their addresses meet."""
        roots = [self.view.memory.roots(access.index) for access in (store, load)]
        # A parameter of a function, unlike a kernel's, is unknown: two such addresses may be in one array.
        known = [found - {UNKNOWN} for found in roots]
        apart = known[0].isdisjoint(known[1]) and any(known)
        if apart or not self.may_meet(store.index, load.index):
            return False
        return self._is_own(store, counters=True) and self._is_own(load, counters=True)

    def _is_own(self, access: _Access, *, counters: bool = False) -> bool:
        """Whether the address contains the lane's own values, not only data, counters (they count as own if
        ``counters``) and what the warp has in common.
        """
        work = [(access.index, access.base, counters)] if access.base else []
        seen: set[tuple[int, str, bool]] = set()
        while work:
            use, name, counting = state = work.pop()
            if state in seen:
                continue
            seen.add(state)
            if self.unchanged_since_header(use, name):
                counts = self.step(name) is not None and not counting
                if not counts and not self.view.uniformity.is_uniform_use(use, name):
                    return True
                continue
            for index in self.view.reaching.reaching(use, name):
                statement = self.view.body[index]
                assert isinstance(statement, Instruction)
                facts = isa.facts(statement)
                if not effects.special_registers(statement) <= UNIFORM_SPECIAL_REGISTERS:
                    return True
                fixed = all(self.invariance.holds(index, needed) for needed in effects.needs(statement))
                # What is loaded from an address that changes from one inner iteration to the next belongs to no lane.
                if facts.memory is Memory.NONE or (facts.memory is Memory.LOAD and fixed):
                    # After a nonlinear operation, such as a remainder, a counter does not count as the lane's own.
                    linear = counting and facts.linear
                    work += [(index, needed, linear) for needed in effects.needs(statement)]
        return False

    def _growth(self, use: int, name: str, depth: int = 8) -> int | None:
        """By how much a register, as ``use`` reads it, grows from one inner iteration to the next; None if that is not
        known.
        """
        if self.invariance.holds(use, name):
            return 0
        if self.unchanged_since_header(use, name):
            return self.step(name)
        index = self.definition(use, name)
        if index is None or not depth:
            return None
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        sources = statement.operands[1:]
        growth = combined(
            statement,
            sources,
            [self._growth(index, o.name, depth - 1) if isinstance(o, Register) else 0 for o in sources],
        )
        return None if growth is None or may_recur(statement, growth) else growth

    def _meet(self, store: _Access, other: _Access) -> bool:
        """Whether the store of one inner iteration is known to meet the other access in another one."""
        if store.fixed and other.fixed:
            return store.value != other.value
        step = self.step(store.register) if store.register and store.register == other.register else None
        return step is not None and _overlap(store.offset - other.offset, step, max(store.size, other.size))

    def _updates(self, store: _Access, load: _Access) -> bool:
        """Whether a store writes back a changed value that the load read from the same place, and inner iterations may
        share that place. One of both may access several elements at once.
        """
        if not store.base or not self._same_place(store, load):
            return False
        growth = self._growth(store.index, store.base)
        if growth is not None and abs(growth) >= store.size:
            return False
        values = [r.name for o in store.value for r in isa.registers_in(o) if isinstance(r, Register)]
        return any(self._reads(store.index, name, load.index) for name in values)

    def _same_place(self, store: _Access, load: _Access) -> bool:
        """Whether both access bytes that they have in common in an inner iteration, as in `_same_address`."""
        if store.displacement is None or load.displacement is None or not (store.size and load.size):
            return self._same_address(store, load)
        apart = store.displacement - load.displacement
        near = replace(store, displacement=load.displacement)
        return -store.size < apart < load.size and self._same_address(near, load)

    def _same_address(self, store: _Access, load: _Access) -> bool:
        """Whether both access one address in an inner iteration, as far as registers and constants show."""
        if (store.base, store.variable, store.displacement) != (load.base, load.variable, load.displacement):
            return False
        reaching = self.view.reaching.reaching
        return not store.base or reaching(store.index, store.base) == reaching(load.index, load.base)

    def _reads(self, use: int, register: str, source: int) -> bool:
        """Whether a value that ``use`` reads is computed from what the statement ``source`` of the same inner iteration
        loads.
        """
        work, seen = [(use, register)], set[int]()
        while work:
            at, name = work.pop()
            for index in self.view.reaching.reaching(at, name) & self.statements:
                if index == source:
                    return True
                if index not in seen and index != ENTRY:
                    seen.add(index)
                    work += [(index, needed) for needed in effects.needs(self.view.body[index])]
        return False

    def _plain(self, index: int, operand: Operand) -> Operand:
        """The literal that a register holds at a statement, or the operand as it is."""
        found = self.definition(index, operand.name) if isinstance(operand, Register) else None
        statement = None if found is None else self.view.body[found]
        if isinstance(statement, Instruction) and statement.base == "mov":
            (_, source) = statement.operands
            return source if isinstance(source, Literal) else operand
        return operand


def _plain(instruction: Instruction) -> bool:
    """Whether an instruction is a memory instruction with one address."""
    addresses = [o for o in instruction.operands if isinstance(o, Address)]
    return len(addresses) == 1 and isa.facts(instruction).control is not Control.CALL


def _overlap(apart: int, step: int | None, size: int, *, copies: bool = False) -> bool:
    """Whether accesses of ``size`` bytes, ``apart`` bytes apart in one iteration, touch in different ones or, with
    ``copies``, in the same one. Both addresses grow by ``step`` from one to the next; None means unknown.
    """
    if not step:
        return True
    nearest = apart // step
    distances = (n for n in (nearest, nearest + 1) if n or copies)
    return any(abs(apart - iterations * step) < size for iterations in distances)
