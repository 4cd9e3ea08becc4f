"""Put a device function's code in place of a call to it, with its parameters and results in registers.

    {                                               before
    .param .b32 param0;
    st.param.b32 [param0+0], %r1;                   mov.b32 %p, %r1;            the parameter's register
    .param .b32 retval0;
    call (retval0), f, (param0);                    ...                         the body of f: mov.b32 %r7, %p
                                                    mov.b32 %q, %r9;            for `st.param [ret+0], %r9`
                                                    DONE:                       for `ret`
    ld.param.b32 %r2, [retval0+0];                  mov.b32 %r2, %q;
    }

Caller and callee may access a parameter in pieces of different sizes: structures are passed as bytes. If a function
ends with a call of itself and returns its results unchanged, that call becomes a jump to the beginning, with new
parameters.

Declined (`Unfit`): parameters whose address is taken or computed, shared memory of the function, local memory in a
function that calls itself (a caller may have passed on its address), memory that it allocates on its stack, guarded
calls.

PTX ISA 9.0, 7.1 (function declarations), 5.1.6.4 (device function parameters). Safety: EXACT.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace

from cccopt.ccc.function.call_sequences import (
    CallPiece,
    CallSequence,
    ParameterAccess,
    Unfit,
    accesses,
    is_last,
    require_apart,
    self_calls,
    sequence_of,
    symbols_of,
)
from cccopt.ccc.function.code import op
from cccopt.ccc.function.names import Names
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Address,
    Body,
    BranchTargets,
    CallPrototype,
    Function,
    Guard,
    Instruction,
    Label,
    Literal,
    Location,
    Operand,
    Register,
    RegisterDeclaration,
    Statement,
    Symbol,
    Variable,
)

Pieces = Mapping[CallPiece, Register]


def inline(caller: Function, call: int, callee: Function) -> Function:
    """``caller`` with the code of ``callee`` in place of the call at statement ``call``. Raises Unfit.

    The names of registers and labels must be unique within each function (`cccopt.ptx.scopes`).
    """
    return _Inlining(caller, call, callee).function()


class _Inlining:
    def __init__(self, caller: Function, call: int, callee: Function) -> None:
        if caller.body is None or callee.body is None:
            raise ValueError("a function without a body")
        self.caller, self.callee = caller, callee
        self.body: Body = caller.body
        self.own: Body = callee.body
        self.sequence = sequence_of(self.body, call)
        self.names = Names(
            (*self.body, *self.own), {**isa.register_types(caller), **isa.register_types(callee)}
        )
        self.types = dict(isa.register_types(caller))
        self.renamed = self._registers()
        self.symbols = {s.name: self.names.label("inlined") for s in self.own if isinstance(s, Label)}
        self.symbols |= {
            s.label: self.names.label("list")
            for s in self.own
            if isinstance(s, BranchTargets | CallPrototype)
        }
        self.symbols |= {
            s.name: self.names.label("local")
            for s in self.own
            if isinstance(s, Variable) and s.space == "local"
        }
        self.head, self.done = self.names.label("call"), self.names.label("behind")
        if any(v.space != "param" for v in (*callee.parameters, *callee.returns)):
            raise Unfit("its parameters are registers")
        self.parameters = [p.name for p in callee.parameters]
        self.returns = [r.name for r in callee.returns]
        self.slots = self._slots(self.parameters, "ld")
        self.given = self._slots(self.returns, "st")
        self.unchanged = self._unchanged()
        require_apart(self.given)

    def function(self) -> Function:
        """The caller with the callee's code in it."""
        sequence = self.sequence
        before = self.body[: sequence.start]
        location = next((s for s in reversed(before) if isinstance(s, Location)), None)
        code: list[Statement] = []
        sent: dict[CallPiece, Register] = {}
        for index in range(sequence.start + 1, sequence.stop):
            statement = self.body[index]
            if index == sequence.call:
                code += [*self._set(sent), *self._inside()]
                code += [] if location is None else [location]
            else:
                code += self._around(statement, sequence, sent)
        body = (*self.names.declarations(), *before, *code, *self.body[sequence.stop + 1 :])
        return replace(self.caller, body=body)

    def _registers(self) -> dict[str, Register]:
        """A register of the caller for each register of the callee."""
        renamed: dict[str, Register] = {}
        for name, type in isa.register_types(self.callee).items():
            if "." in type:
                raise Unfit("it has vector registers")
            renamed[name] = self._register(type)
        return renamed

    def _register(self, type: str) -> Register:
        register = self.names.register(type)
        self.types[register.name] = type
        return register

    def _slots(self, variables: Sequence[str], base: str) -> dict[CallPiece, Register]:
        """A register for each piece of the variables that the callee accesses with ``base``."""
        found: dict[CallPiece, Register] = {}
        for statement in self.own:
            if isinstance(statement, Instruction) and statement.base == base:
                for access in accesses(statement, variables):
                    if access.piece not in found:
                        found[access.piece] = self._register(_holder(access.piece.bits))
        return found

    def _unchanged(self) -> dict[str, CallPiece]:
        """The callee's registers, by their new names, that only ever hold a parameter."""
        found: dict[str, CallPiece] = {}
        written = Counter(r.name for s in self.own if isinstance(s, Instruction) for r in isa.definitions(s))
        for statement in self.own:
            if isinstance(statement, Instruction) and statement.base == "ld":
                for access in accesses(statement, self.parameters):
                    own = access.operand
                    if isinstance(own, Register) and written[own.name] == 1:
                        found[self.renamed[own.name].name] = access.piece
        return found

    # --- the two sides of a call ---

    def _around(
        self,
        statement: Statement,
        sequence: CallSequence,
        sent: dict[CallPiece, Register],
        kept: Collection[ParameterAccess] = (),
    ) -> list[Statement]:
        """Rewrite a statement of a call sequence other than the call: stores go to ``sent`` unless ``kept``, loads read
        what the callee returns.
        """
        names = {*sequence.arguments, *sequence.results}
        if isinstance(statement, Variable) and statement.name in names:
            return []
        if not isinstance(statement, Instruction):
            return [statement]
        if statement.base == "st" and (stored := accesses(statement, sequence.arguments)):
            # Nothing reads a slot before the callee's code begins again: what fits goes there at once.
            for access in stored:
                bits = access.piece.bits
                sent[access.piece] = self.slots.get(access.piece) or self._register(_holder(bits))
            return [i for a in stored if a not in kept for i in self._store(sent[a.piece], a)]
        if statement.base == "ld" and (loaded := accesses(statement, sequence.results)):
            return [i for access in loaded for i in self._load(access, self.given)]
        if names & set(symbols_of(statement)):
            raise Unfit("the caller does more with the parameters than store them")
        return [statement]

    def _set(self, sent: Pieces) -> list[Statement]:
        """Set the callee's parameters to what a caller has ``sent``."""
        require_apart(sent)
        return [
            instruction
            for piece, slot in self.slots.items()
            if sent.get(piece) != slot
            for instruction in self._load(ParameterAccess(piece, slot, f"u{piece.bits}"), sent)
        ]

    def _inside(self) -> list[Statement]:
        """The callee's code, from its beginning to where its caller continues."""
        own = {*self.parameters, *self.returns}
        sequences = {call: sequence_of(self.own, call) for call in self_calls(self.callee)}
        for call in sequences:
            if not is_last(self.callee, call):
                raise Unfit("it continues after calling itself")
        own_memory = ("shared", "local") if sequences else ("shared",)
        around = {i: s for s in sequences.values() for i in range(s.start, s.stop + 1)}
        sent: dict[CallPiece, Register] = {}
        code: list[Statement] = [Label(self.head)]
        for index, statement in enumerate(self.own):
            sequence = around.get(index)
            if sequence is not None and (index > sequence.call or index in (sequence.start, sequence.stop)):
                continue
            if isinstance(statement, RegisterDeclaration):
                continue
            if isinstance(statement, Variable) and statement.space in own_memory:
                raise Unfit(f"it has {statement.space} memory of its own")
            if isinstance(statement, Instruction) and statement.base == "alloca":
                raise Unfit("it allocates memory on its stack, which only its return frees")
            if sequence is not None and index == sequence.call:
                code += [*self._set(sent), op("bra", Symbol(self.head))]
                sent = {}
            elif sequence is not None:
                passed = self._renamed(statement)
                code += self._around(passed, sequence, sent, self._passed_through(passed, sequence))
            else:
                code += self._own(statement, own)
        return [*code, Label(self.done)]

    def _passed_through(self, statement: Statement, sequence: CallSequence) -> list[ParameterAccess]:
        """The parameters that a statement of a recursive call passes on unchanged."""
        if not isinstance(statement, Instruction) or statement.base != "st":
            return []
        stored = accesses(statement, sequence.arguments)
        return [
            a
            for a in stored
            if isinstance(a.operand, Register) and self.unchanged.get(a.operand.name) == a.piece
        ]

    def _own(self, statement: Statement, own: Set[str]) -> list[Statement]:
        """A statement of the callee with the caller's names, and with parameters and results in registers."""
        renamed = self._renamed(statement)
        if not isinstance(renamed, Instruction):
            return [renamed]
        if renamed.base == "ret":
            return [Instruction("bra", (Symbol(self.done),), renamed.guard, renamed.position)]
        if renamed.base == "ld" and (loaded := accesses(renamed, self.parameters)):
            return [_guarded(i, renamed.guard) for a in loaded for i in self._load(a, self.slots)]
        if renamed.base == "st" and (stored := accesses(renamed, self.returns)):
            return [_guarded(i, renamed.guard) for a in stored for i in self._store(self.given[a.piece], a)]
        if own & set(symbols_of(renamed)):
            raise Unfit("it does more with its parameters than load them")
        return [renamed]

    def _renamed(self, statement: Statement) -> Statement:
        match statement:
            case Label(name):
                return Label(self.symbols[name])
            case BranchTargets(label, _, targets):
                return replace(
                    statement,
                    label=self.symbols[label],
                    targets=tuple(self.symbols[target] for target in targets),
                )
            case CallPrototype(label):
                return replace(statement, label=self.symbols[label])
            case Variable(name=name):
                return replace(statement, name=self.symbols.get(name, name))
            case Instruction():
                guard = statement.guard
                if guard is not None:
                    guard = Guard(self.renamed[guard.register.name], guard.negated)
                return replace(statement, guard=guard, operands=tuple(map(self._operand, statement.operands)))
        return statement

    def _operand(self, operand: Operand) -> Operand:
        if isinstance(operand, Symbol):
            return Symbol(self.symbols.get(operand.name, operand.name))
        if isinstance(operand, Address) and isinstance(operand.base, Symbol):
            return replace(operand, base=Symbol(self.symbols.get(operand.base.name, operand.base.name)))
        return isa.substitute(operand, lambda r: self.renamed[r.name] if isinstance(r, Register) else r)

    # --- values of all widths ---

    def _store(self, target: Register, access: ParameterAccess) -> list[Instruction]:
        """Set ``target``, which holds the piece of the access, to what the access stores."""
        source, bits = access.operand, access.piece.bits
        width = isa.width(self.types[source.name]) if isinstance(source, Register) else max(bits, 16)
        if bits == 8:
            first = op("mov.b16", target, source) if width == 16 else op(f"cvt.u16.u{width}", target, source)
            return [first, op("and.b16", target, target, 255)]
        if width == bits:
            # A number's spelling may require its type: `mov.f32 %r1, 0f3F800000`.
            is_float = isinstance(source, Literal) and access.type in ("f32", "f64")
            return [op(f"mov.{access.type if is_float else f'b{bits}'}", target, source)]
        return [op(f"cvt.u{bits}.u{width}", target, source)]

    def _load(self, access: ParameterAccess, pieces: Pieces) -> list[Instruction]:
        """Set the register of the access to its bytes in ``pieces``; bytes that were never stored are 0."""
        wanted = access.piece
        if wanted in pieces:
            return self._extended(access, pieces[wanted])
        touching = {piece: holder for piece, holder in pieces.items() if piece.overlaps(wanted)}
        for piece, holder in touching.items():
            if piece.offset <= wanted.offset and wanted.end <= piece.end:
                return self._part(access, piece, holder)
        if any(piece.offset < wanted.offset or piece.end > wanted.end for piece in touching):
            raise Unfit("its parameters are stored and loaded in pieces that overlap")
        holder = self._register(_holder(wanted.bits))
        code = [op(f"mov.b{max(wanted.bits, 16)}", holder, 0)]
        for piece, part in touching.items():
            wide = self._register(_holder(wanted.bits))
            held = max(piece.bits, 16)
            code += [
                op(f"mov.b{held}" if held == wanted.bits else f"cvt.u{wanted.bits}.u{held}", wide, part),
                op(f"shl.b{wanted.bits}", wide, wide, 8 * (piece.offset - wanted.offset)),
                op(f"or.b{wanted.bits}", holder, holder, wide),
            ]
        return [*code, *self._extended(access, holder)]

    def _part(self, access: ParameterAccess, piece: CallPiece, holder: Register) -> list[Instruction]:
        """Set the register of the access to some bytes of a larger piece."""
        held = max(piece.bits, 16)
        shifted, narrow = self._register(f"b{held}"), self._register(_holder(access.piece.bits))
        code = [op(f"shr.u{held}", shifted, holder, 8 * (access.piece.offset - piece.offset))]
        kept = ParameterAccess(access.piece, shifted, access.type)
        return [*code, *self._store(narrow, kept), *self._extended(access, narrow)]

    def _extended(self, access: ParameterAccess, holder: Register) -> list[Instruction]:
        """Set the register of the access to ``holder``, extended to its width according to the type of the load."""
        target, bits = access.operand, access.piece.bits
        if not isinstance(target, Register):
            return []
        width = isa.width(self.types[target.name])
        sign = "s" if access.type.startswith("s") else "u"
        if width == max(bits, 16) and not (bits == 8 and sign == "s"):
            return [op(f"mov.b{width}", target, holder)]
        return [op(f"cvt.{sign}{width}.{sign}{bits}", target, holder)]


def _holder(bits: int) -> str:
    """The type of the register that holds a piece; a byte is in the low half of 16 bits."""
    if bits not in (8, 16, 32, 64):
        raise Unfit(f"a parameter has a piece of {bits} bits")
    return f"b{max(bits, 16)}"


def _guarded(instruction: Instruction, guard: Guard | None) -> Instruction:
    return replace(instruction, guard=guard)
