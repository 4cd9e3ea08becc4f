"""``ccc-nvcc --ccc-instrument`` with the real nvcc: what is built, and by which names programs register kernels."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from cccopt.cli.nvcc import main
from cccopt.passes import instrument
from cccopt.passes.counting.layout import of_bytes
from cccopt.toolchain import instrument as stubs
from cccopt.toolchain.discovery import find_nvcc
from cccopt.toolchain.ptxas import assemble

pytestmark = [
    pytest.mark.nvcc,
    pytest.mark.skipif(shutil.which("g++") is None, reason="no g++"),
]

KERNELS = """\
#include <cstdio>
extern "C" __global__ void plain_c(int* p, int n) {
  for (int k = 0; k < threadIdx.x; k++) p[threadIdx.x] += k % n;
}
static __global__ void stat(int* p) { p[threadIdx.x] += 1; }
namespace {
__global__ void hidden(int* p) {
#pragma ccc for
  for (int i = threadIdx.x; i < 100; i += 32) p[i] += 2;
}
}
template <class T, int N> __global__ void __launch_bounds__(64) of_type(T* p) { p[threadIdx.x] *= N; }
void launch_all(int* p) {
  plain_c<<<1, 32>>>(p, 3);
  stat<<<1, 32>>>(p);
  hidden<<<1, 32>>>(p);
  of_type<float, -1><<<1, 32>>>((float*)p);
}
"""
MAIN = """\
#include <cstdio>
#include <cuda_runtime.h>
void launch_all(int* p);
int main() {
  int* p = nullptr;
  cudaError_t failed = cudaMalloc(&p, 4096);
  if (failed == cudaSuccess) launch_all(p);
  std::printf("%s\\n", cudaGetErrorName(failed));
}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("kernels.cu").write_text(KERNELS)
    Path("main.cpp").write_text(MAIN)
    return tmp_path


def built(*words: str) -> None:
    assert main(["--ccc-instrument", "-cudart=shared", *words]) == 0


def registered(folder: Path, counted: str | None) -> list[str]:
    """The names that ``./program`` registers, sorted, without their modules' numbers."""
    registry = folder / "registry.so"
    if not registry.exists():
        source = Path(__file__).with_name("fake_registry.cpp")
        subprocess.run(["g++", "-shared", "-fPIC", source, "-o", registry, "-ldl"], check=True)
    root = find_nvcc().root
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": f"{root / 'lib64'}:{root / 'lib'}",
        "LD_PRELOAD": str(registry),
    }
    environment.pop("CCC_PROFILE_COUNT", None)
    if counted is not None:
        environment["CCC_PROFILE_COUNT"] = counted
    done = subprocess.run([folder / "program"], env=environment, capture_output=True, text=True, check=True)
    names = re.findall("^registered (.*)$", done.stderr, re.MULTILINE)
    return sorted(re.sub("_[0-9a-f]{8}_[0-9]+_kernels_cu_[0-9a-f]{8}", "_U_", name) for name in names)


@pytest.mark.parametrize("whole", [True, False], ids=["whole program", "-rdc=true"])
def test_the_environment_says_which_kernels_are_registered(project: Path, whole: bool) -> None:
    mode = [] if whole else ["-rdc=true"]
    built("-arch=sm_90", *mode, "kernels.cu", "main.cpp", "-o", "program")
    plain = registered(project, None)
    assert len(plain) == 4
    assert not any(name.endswith("__ccc_counted") for name in plain)
    assert registered(project, "0") == plain
    assert registered(project, "1") == sorted(f"{name}__ccc_counted" for name in plain)


def test_several_targets_and_threads(project: Path) -> None:
    targets = (
        "-gencode",
        "arch=compute_80,code=sm_80",
        "-gencode",
        "arch=compute_90,code=[sm_90,compute_90]",
    )
    built(*targets, "-t", "2", "-rdc=true", "-c", "kernels.cu")
    built(*targets, "-rdc=true", "kernels.o", "main.cpp", "-o", "program")
    assert len([name for name in registered(project, "1") if name.endswith("__ccc_counted")]) == 4


def test_a_kernel_that_one_target_alone_counts_has_both_names_for_all(project: Path) -> None:
    """The stub file of the last target says which is registered."""
    Path("group.cu").write_text(
        "__global__ void group(int* p) {\n#if __CUDA_ARCH_FEAT_SM90_ALL\n"
        '  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");\n#endif\n  *p = 1;\n}\n'
        "void start(int* p) { group<<<1, 128>>>(p); }\n"
    )
    targets = ("-gencode", "arch=compute_90a,code=sm_90a", "-gencode", "arch=compute_80,code=sm_80")
    built(*targets, "--ccc-keep=kept", "-c", "group.cu", "-o", "group.o")
    for target in ("90a", "80"):
        text = Path(f"kept/group.compute_{target}.ptx").read_text()
        assert ".entry _Z5groupPi__ccc_counted(" in text
        assert ("ccc_profile_counts[" in text) == (target == "80")


def test_without_a_gpu_it_fails_as_the_plain_program_does(project: Path) -> None:
    assert main(["-arch=sm_90", "kernels.cu", "main.cpp", "-o", "plain"]) == 0
    assert main(["--ccc-instrument", "-arch=sm_90", "kernels.cu", "main.cpp", "-o", "counted"]) == 0
    said = {
        subprocess.run([f"./{name}"], capture_output=True, check=True).stdout for name in ("plain", "counted")
    }
    assert len(said) == 1


def test_a_shared_library_hands_over_its_unit_when_it_is_loaded(project: Path) -> None:
    """`dlopen` after the start, and the end of the unit with `dlclose`."""
    built("-arch=sm_90", "-shared", "-Xcompiler", "-fPIC", "kernels.cu", "-o", "libkernels.so")
    Path("agent.cpp").write_text(
        '#include <cstdio>\nextern "C" void ccc_profile_unit(void*) { std::puts("unit"); }\n'
        'extern "C" void ccc_profile_unit_gone(void*) { std::puts("gone"); }\n'
    )
    Path("loads.cpp").write_text(
        '#include <cstdio>\n#include <dlfcn.h>\nint main() { std::puts("start"); '
        'void* l = dlopen("./libkernels.so", RTLD_NOW); if (!l) std::puts(dlerror()); dlclose(l); std::puts("end"); }\n'
    )
    subprocess.run(["g++", "-shared", "-fPIC", "agent.cpp", "-o", "agent.so"], check=True)
    subprocess.run(["g++", "loads.cpp", "-o", "loads", "-ldl"], check=True)
    root = find_nvcc().root
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": f"{root / 'lib64'}:{root / 'lib'}",
        "LD_PRELOAD": str(project / "agent.so"),
    }
    said = subprocess.run(["./loads"], env=environment, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["start", "unit", "gone", "end"]


def test_no_warnings_come_of_it(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("kernels.cu").write_text(KERNELS.replace("k < threadIdx.x", "k < int(threadIdx.x)"))
    strict = ("-Xcompiler", "-Wall,-Wextra,-Wconversion,-Werror", "-Werror", "all-warnings")
    built("-arch=sm_90", *strict, "-c", "kernels.cu", "-o", "kernels.o")
    assert capfd.readouterr() == ("", "")


def test_annotations_are_left_out_and_lines_are_told(project: Path) -> None:
    built("-arch=sm_90", "-ptx", "kernels.cu", "-o", "kernels.ptx")
    ptx = Path("kernels.ptx").read_text()
    assert "ccc for" not in ptx
    assert ".loc" in ptx
    assert "ccc_profile_head" in ptx
    assert ptx.rstrip().rpartition("\n")[2].startswith("// cccopt ")


@pytest.mark.parametrize(("option", "counted"), [("--ccc-instrument", 16), ("--ccc-instrument=all", 1)])
def test_of_very_many_branches_all_warps_are_counted_on_demand(
    project: Path, option: str, counted: int
) -> None:
    arms = "\n".join(
        f"    if (x % {n} == 1) {{ p[i + {n}] += x; x = x * {n} + p[i]; }}" for n in range(3, 90)
    )
    Path("many.cu").write_text(
        f"__global__ void many(unsigned* p, int n) {{\n  for (int i = threadIdx.x; i < n; i += 32) {{\n"
        f"    unsigned x = p[i];\n{arms}\n  }}\n}}\n"
    )
    assert main([option, "-arch=sm_90", "-ptx", "many.cu", "-o", "many.ptx"]) == 0
    (array,) = re.findall(r"ccc_profile_layout\[\d+\] = \{([^}]*)\}", (project / "many.ptx").read_text())
    words = np.array([int(number) for number in array.split(",")], np.uint64)
    layout = of_bytes(words.tobytes())
    assert (layout.every, bool(layout.crowded)) == (counted, counted > 1)


def test_copies_have_the_registers_of_kernels_that_have_many(project: Path) -> None:
    """Blocks of 1024 threads leave each of them 64 registers. No program launches such blocks of a kernel with more."""
    kernels = "\n".join(
        f"__global__ void k{n}(const float* a, float* out, int rounds) {{\n  float v[{n}];\n"
        f"#pragma unroll\n  for (int i = 0; i < {n}; ++i) v[i] = a[i * 32 + threadIdx.x];\n"
        "  for (int k = 0; k < rounds; ++k) {\n"
        f"#pragma unroll\n    for (int i = 0; i < {n}; ++i) v[i] = v[i] * v[(i + 1) % {n}] + k;\n  }}\n"
        f"#pragma unroll\n  for (int i = 0; i < {n}; ++i) out[i * 32 + threadIdx.x] = v[i];\n}}"
        for n in (8, 100)
    )
    Path("wide.cu").write_text(kernels)
    built("-arch=sm_90", "-ptx", "wide.cu", "-o", "wide.ptx")
    text = (project / "wide.ptx").read_text()
    few, many = (int(n) for n in re.findall(r"__ccc_counted\([^{]*?\.maxnreg (\d+)", text))
    assert few == 64
    plain = assemble(text, "sm_90").resources
    (needed,) = (
        of.registers for name, of in plain.items() if name.startswith("_Z4k100") and "__ccc" not in name
    )
    assert needed <= many < needed + 8
    (spilled,) = (
        of.spill_stores for name, of in plain.items() if name.startswith("_Z4k100") and "__ccc" in name
    )
    assert spilled < 100


def test_a_report_has_the_unit(project: Path) -> None:
    built("-arch=sm_90", "-c", "kernels.cu", "-o", "kernels.o", "--ccc-report=report.json")
    (unit,) = json.loads(Path("report.json").read_text())["units"]
    assert (unit["file"], unit["regions"]) == ("kernels.cu", [])


def test_host_files_are_left_alone(project: Path) -> None:
    built("-c", "main.cpp", "-o", "ours.o", "-MD", "-MF", "ours.d")
    assert b"ccc_profile" not in Path("ours.o").read_bytes()
    assert "ccc_profile" not in Path("ours.d").read_text()


@pytest.mark.parametrize(
    "words", [["-dlto", "-arch=sm_90"], ["-gencode", "arch=compute_90,code=lto_90", "-rdc=true"]]
)
def test_link_time_code_is_refused(
    project: Path, words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--ccc-instrument", *words, "-c", "kernels.cu"]) == 1
    assert (
        "error[CCC087]: code that is not generated from PTX cannot be given counters"
        in capfd.readouterr().err
    )
    assert not Path("kernels.o").exists()


def test_a_mistake_in_the_program_is_told_by_nvcc(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("kernels.cu").write_text(KERNELS.replace("+= 2", "+= m"))
    assert main(["--ccc-instrument", "-arch=sm_90", "-c", "kernels.cu"]) not in (0, 1)
    said = capfd.readouterr().err
    assert 'kernels.cu(9): error: identifier "m" is undefined' in said
    assert "ccc_profile" not in said


def test_the_stamp_differs(capfd: pytest.CaptureFixture[str]) -> None:
    stamps = set()
    for words in ([], ["--ccc-instrument"]):
        assert main([*words, "--version"]) == 0
        stamps.add(capfd.readouterr().out.splitlines()[-1])
    assert len(stamps) == 2


def test_the_pass_and_the_stub_agree_on_names() -> None:
    assert stubs.COUNTED == instrument.COUNTED
