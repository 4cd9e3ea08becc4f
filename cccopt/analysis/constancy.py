"""What never changes while a kernel runs: some special registers, parameters, constant and read-only memory.

        mov.u32 %r1, %ctaid.x;              one value for the warp, forever
        mov.u32 %r2, %laneid;               each lane its own value, forever
        mov.u32 %r3, %clock;                another value each time
        ld.param.u32 %r4, [f_param_0];      a parameter of this function: unchanging
        ld.param.b32 %r5, [retval0];        what a call has returned: may change
        ld.global.nc.f32 %f1, [%rd1];       the program promises that nothing writes there

PTX ISA 9.0, chapter 10 (special registers), 5.1 (state spaces), 9.7.9 (`ld`, `ld.global.nc`).
"""

from __future__ import annotations

from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Function, Instruction, Symbol

_AXES = ("", ".x", ".y", ".z", ".w")
_WARP_WIDE_VECTORS = ("ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")

UNIFORM_SPECIAL_REGISTERS = frozenset(
    {f"%{name}{axis}" for name in _WARP_WIDE_VECTORS for axis in _AXES}
    | {f"%envreg{number}" for number in range(32)}
    | {"%gridid", "%cluster_ctarank", "%cluster_nctarank", "%is_explicit_cluster", "%current_graph_exec"}
    | {"%total_smem_size", "%dynamic_smem_size", "%aggr_smem_size", "WARP_SZ"}
)
"""Special registers with one constant value in all lanes of a warp."""

CONSTANT_SPECIAL_REGISTERS = (
    UNIFORM_SPECIAL_REGISTERS
    | {"%laneid"}
    | {f"%tid{axis}" for axis in _AXES}
    | {f"%lanemask_{relation}" for relation in ("eq", "le", "lt", "ge", "gt")}
)
"""Special registers that keep their value as long as a thread runs, even if threads have different values."""


def reads_unchanging_memory(instruction: Instruction, function: Function) -> bool:
    """Whether a load reads memory that no store of this launch changes, wherever in it the address points."""
    space = isa.facts(instruction).space
    if space == "const" or (instruction.base == "ld" and "nc" in instruction.parts):
        return True
    return space == "param" and _reads_own_parameter(instruction, function)


def _reads_own_parameter(instruction: Instruction, function: Function) -> bool:
    """Whether a `ld.param` reads a parameter of ``function``, not what a call has returned.

    An address in a register can only point into a kernel's own parameters: those of a call have no address to take.
    """
    own = {parameter.name for parameter in function.parameters}
    bases = [operand.base for operand in instruction.operands if isinstance(operand, Address)]
    named = [base for base in bases if isinstance(base, Symbol)]
    return all(base.name in own for base in named) and (len(named) == len(bases) or function.kind == "entry")
