"""What CTE's policies and forms take: ``python bench/cte_registers.py`` (nvcc, no GPU).

The reference kernels in ``bench/cte_registers.cu`` work on rows of a matrix in CSR format: floats, 32-bit indices,
blocks of 256 threads. `for_each_index` multiplies it by a vector, `for_each` relaxes distances to neighbors,
`exclusive_scan` has the sums before each product, `any` looks for a negative entry. ptxas says what each of them takes:

    registers   of a thread
    shared      bytes of static shared memory of a block, the board of ``automatic`` included
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cccopt import driver, resources
from cccopt.harness.cte.workload import POLICIES
from cccopt.toolchain import ptxas
from cccopt.toolchain.ptxas import Resources

SOURCE, ARCH = Path(__file__).with_suffix(".cu"), "sm_90"
CALLS = ("for_each_index", "for_each", "exclusive_scan", "any")


def measured() -> Mapping[str, Resources]:
    """What ptxas says of each reference kernel. Raises `CccError` if nvcc or ptxas refuses them."""
    flags = ("-std=c++17", "-I", str(resources.folder("cte_templates")))
    ptx = driver.compile(SOURCE, arch=ARCH, ccc="off", nvcc_options=flags).ptx
    return ptxas.resources(ptx, ARCH)


def name_of(call: str, policy: str) -> str:
    """The kernel of a call with a policy of `POLICIES`."""
    return f"{call}__{policy.replace('<', '_').rstrip('>')}"


def forms(kernels: Mapping[str, Resources]) -> tuple[str, ...]:
    """The kernels of the forms for whole kernels."""
    return tuple(sorted(name for name in kernels if "__" not in name))


def by_policy(kernels: Mapping[str, Resources]) -> Table:
    """Registers and shared memory of each policy's kernels, empty for calls that do not take it."""
    table = Table("policy", *(f"{call}\nregs  shared" for call in CALLS), box=None, title="calls, by policy")
    for policy in POLICIES:
        found = (kernels.get(name_of(call, policy)) for call in CALLS)
        table.add_row(policy, *("" if kernel is None else _shown(kernel) for kernel in found))
    return table


def by_form(kernels: Mapping[str, Resources]) -> Table:
    """Registers and shared memory of the forms' kernels."""
    table = Table("kernel", "regs  shared", box=None, title="forms for whole kernels")
    for name in forms(kernels):
        table.add_row(name, _shown(kernels[name]))
    return table


def _shown(kernel: Resources) -> str:
    return f"{kernel.registers:4}  {kernel.shared:6}"


def main() -> None:
    """Print a table of the calls and one of the forms."""
    kernels = measured()
    console = Console(width=110)
    console.print(by_policy(kernels))
    console.print(by_form(kernels))


if __name__ == "__main__":
    main()
