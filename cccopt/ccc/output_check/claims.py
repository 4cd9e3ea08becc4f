"""Where a rewritten loop holds an entry of the pool for its stacks (`cccopt.ccc.codegen.claim`).

@%first atom.acquire.gpu.global.cas.b32 %old, [%entry], 0, 1;        lane 0 tries
shfl.sync.idx.b32 %found, %old, 0, 31, -1;
setp.eq.s32 %free, %found, 0;
@%free bra CLAIMED;                     from here on the warp has it
...
@%first st.release.gpu.global.b32 [%entry], 0;      from here on it has none
"""

from __future__ import annotations

from cccopt.ccc.output_check.accesses import StackAddresses
from cccopt.ccc.output_check.regions import FunctionCode, LoopCode, is_lane
from cccopt.ptx.ir import Address, Guard, Instruction, Literal, Register


class Claims:
    """Finds the claims of one loop, and where it gives the entry back."""

    def __init__(self, loop: LoopCode, addresses: StackAddresses) -> None:
        self.loop = loop
        self.addresses = addresses

    def tries(self, instruction: Instruction) -> bool:
        """Whether lane 0 tries to claim an entry."""
        match instruction.opcode, instruction.operands:
            case "atom.acquire.gpu.global.cas.b32", (_, Address(), Literal("0"), Literal("1")):
                return self._by_lane_0(instruction)
        return False

    def releases(self, instruction: Instruction) -> bool:
        """Whether lane 0 gives the entry back."""
        match instruction.opcode, instruction.operands:
            case "st.release.gpu.global.b32", (Address(), Literal("0")):
                return self._by_lane_0(instruction)
        return False

    def has_claimed(self, block: int) -> bool:
        """Whether the only predecessor of the block has found that the warp has an entry."""
        code = self.loop.code
        sources = code.cfg.predecessors[block]
        if len(sources) != 1 or code.where(sources[0], holds=True) != block:
            return False
        end = code.ending(sources[0])
        if end is None or end.guard is None or code.where(sources[0], holds=False) == block:
            return False
        tried: str | None = None
        shown: str | None = None
        free: str | None = None
        for _, instruction in code.instructions(sources[0]):
            match instruction.opcode, instruction.operands:
                case "atom.acquire.gpu.global.cas.b32", (Register(name), *_) if self.tries(instruction):
                    tried = name
                case "shfl.sync.idx.b32", (Register(name), Register(source), Literal("0"), *_):
                    shown = name if source == tried and self.loop.names_all_lanes(instruction) else shown
                case "setp.eq.s32", (Register(name), Register(found), Literal("0")) if found == shown:
                    free = name
        return free == end.guard.register.name

    def _by_lane_0(self, instruction: Instruction) -> bool:
        return self.addresses.is_claim(instruction) and _is_lane_0(self.loop.code, instruction.guard)


def _is_lane_0(code: FunctionCode, guard: Guard | None) -> bool:
    """Whether a guard holds in lane 0 and in no other lane."""
    if guard is None or guard.negated:
        return False
    made = [code.body[index] for index in code.definitions.get(guard.register.name, ())]
    return bool(made) and all(
        isinstance(s, Instruction)
        and s.opcode == "setp.eq.s32"
        and s.operands[2:] == (Literal("0"),)
        and is_lane(code, s.operands[1])
        for s in made
    )
