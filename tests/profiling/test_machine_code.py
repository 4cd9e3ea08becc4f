"""The machine code of cubins, as nvcc makes them."""

import subprocess
from pathlib import Path

import pytest

from cccopt.passes.instrument import instrumented
from cccopt.profiling.counts import FunctionCounts, WarpsAndLanes
from cccopt.profiling.machine_code import MachineCode, machine_code
from cccopt.profiling.machine_lines import machine_lines, ptx_origins
from cccopt.ptx.parser import parse
from cccopt.toolchain.discovery import find_nvcc

SOURCE = """__device__ int half(int n) {
  return n / 2;
}
__global__ void walk(int* p, int n) {
  int sum = 0;
  for (int i = threadIdx.x; i < p[n]; i += p[i])
    sum += half(p[i + 1]);
  if (sum > 7)
    p[1] = sum;
  p[2] = sum;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the PTX and the cubins of the program."""
    made = tmp_path_factory.mktemp("cubins")
    (made / "walk.cu").write_text(SOURCE)
    nvcc = str(find_nvcc().path)
    for target in ("sm_80", "sm_90"):
        command = [nvcc, "-O3", "-lineinfo", f"-arch={target}", "-cubin", "walk.cu", "-o", f"{target}.cubin"]
        subprocess.run(command, cwd=made, check=True)
    command = [nvcc, "-O3", "-lineinfo", "-arch=sm_90", "-ptx", "walk.cu", "-o", "walk.ptx"]
    subprocess.run(command, cwd=made, check=True)
    return made


def code(folder: Path, target: str) -> MachineCode:
    return machine_code((folder / f"{target}.cubin").read_bytes())


NAME = "_Z4walkPii"


@pytest.mark.nvcc
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_each_instruction_has_its_lines(folder: Path, target: str) -> None:
    found = code(folder, target)
    lines = found.ptx.split("\n")
    instructions = found.functions[NAME]
    assert {Path(i.file).name for i in instructions} == {"walk.cu"}
    assert {i.line for i in instructions} >= {2, 6, 9, 10}
    stores = [i for i in instructions if lines[i.ptx - 1].startswith("st.global")]
    assert {9, 10} <= {i.line for i in stores}


@pytest.mark.nvcc
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_a_loop_is_led_back_to(folder: Path, target: str) -> None:
    instructions = code(folder, target).functions[NAME]
    assert any(i.reached and i.line in (2, 6, 7) for i in instructions)
    # The end is an EXIT; what stands behind it is left out.
    assert instructions[-1].control
    assert any(i.guarded and i.control for i in instructions)


@pytest.mark.nvcc
def test_machine_instructions_get_the_counts_of_the_ptx(folder: Path) -> None:
    found = code(folder, "sm_90")
    _, layout = instrumented(parse((folder / "walk.ptx").read_text()))
    (function,) = layout.functions
    counts = FunctionCounts(function, tuple(WarpsAndLanes(10, 320) for _ in function.units), (), ())
    lines = machine_lines({NAME: counts}, found.functions[NAME], *ptx_origins(found))
    assert sum(line.instructions for line in lines) == len(found.functions[NAME])
    assert all(line.warps == 10 * line.instructions for line in lines)
    assert all(line.lanes == line.on == 32 * line.warps for line in lines)


def test_other_files_are_refused() -> None:
    with pytest.raises(ValueError, match="not a cubin"):
        machine_code(b"\x7fELF")
    with pytest.raises(ValueError, match="not a cubin"):
        machine_code(b"\x7fELF\x02\x01" + bytes(80))
