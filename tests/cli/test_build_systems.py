"""``ccc-nvcc`` as the CUDA compiler of build systems, by the commands of docs/build-systems.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import cccopt
from cccopt.cli.main import main as cccopt_main
from cccopt.toolchain.discovery import find_nvcc
from cccopt.version import __version__
from tests.cli.builds import copy_project, documented, is_rewritten, make_command, run

pytestmark = pytest.mark.nvcc

needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="CMake is not installed")
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
needs_ninja = pytest.mark.skipif(shutil.which("ninja") is None, reason="Ninja is not installed")
needs_meson = pytest.mark.skipif(shutil.which("meson") is None, reason="Meson is not installed")
needs_ccache = pytest.mark.skipif(shutil.which("ccache") is None, reason="ccache is not installed")


def folder_of_cmake() -> Path:
    return Path(cccopt.__file__).parent / "cmake"


MADE = (".o", ".a", "program")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy_project(tmp_path / "project")


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment with ``ccc-nvcc`` on PATH, beside the nvcc that these tests use."""
    command, nvcc = make_command(tmp_path / "bin"), find_nvcc()
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CCACHE_", "CMAKE_", "CUDA"))
    }
    path = os.pathsep.join([str(command.parent), str(nvcc.path.parent), ours["PATH"]])
    # Without compression the PTX in an object can be read.
    return {**ours, "PATH": path, "NVCC_APPEND_FLAGS": "-no-compress"}


def made(folder: Path) -> dict[str, int]:
    """What a build has made, and when (ns)."""
    files = (path for path in folder.rglob("*") if path.name.endswith(MADE) and "CompilerId" not in str(path))
    return {path.name: path.stat().st_mtime_ns for path in files if path.is_file()}


def change_an_annotation(project: Path) -> None:
    header = project / "include/work.cuh"
    header.write_text(header.read_text().replace("#pragma ccc if", "#pragma ccc if off"))


@needs_cmake
@pytest.mark.parametrize(
    "form",
    [
        "COMPILER=ccc-nvcc -DCMAKE_CUDA_FLAGS",
        "COMPILER_LAUNCHER=ccc-nvcc",
    ],
)
@pytest.mark.parametrize(
    "generator",
    [pytest.param("Ninja", marks=needs_ninja), pytest.param("Unix Makefiles", marks=needs_make)],
)
def test_cmake(form: str, generator: str, project: Path, shell: dict[str, str]) -> None:
    build = project / "build"
    said = run(f"{documented(form)} -G '{generator}'", project, shell)
    assert f"The CUDA compiler identification is NVIDIA {find_nvcc().version}" in said
    said = run(documented("cmake --build"), project, shell)
    assert "warning" not in said.lower()
    assert run("build/program", project, shell) == "ran\n"
    (kernel,) = build.rglob("work.cu.o")
    assert is_rewritten(kernel.read_bytes(), texts=2)

    first = made(build)
    assert {"work.cu.o", "scale.cu.o", "main.cu.o", "libwork.a", "cmake_device_link.o", "program"} <= set(
        first
    )
    run("cmake --build build", project, shell)
    assert made(build) == first

    change_an_annotation(project)
    run("cmake --build build", project, shell)
    second = made(build)
    rebuilt = {name for name in second if second[name] != first.get(name)}
    assert rebuilt == {"work.cu.o", "libwork.a", "cmake_device_link.o", "program"}
    assert not is_rewritten(kernel.read_bytes(), texts=2)


@needs_cmake
def test_cmake_finds_it_by_a_variable(project: Path, shell: dict[str, str]) -> None:
    run(documented("CUDACXX"), project, shell)
    cache = (project / "build/CMakeCache.txt").read_text()
    ours = shutil.which("ccc-nvcc", path=shell["PATH"])
    assert re.findall("^CMAKE_CUDA_COMPILER:.*=(.*)$", cache, re.MULTILINE) == [ours]
    # The toolkit is the real one, for `find_package(CUDAToolkit)` as well.
    (found,) = (project / "build").rglob("CMakeCUDACompiler.cmake")
    assert f'set(CMAKE_CUDA_COMPILER_TOOLKIT_ROOT "{find_nvcc().root}")' in found.read_text()


@needs_cmake
@needs_ninja
def test_cmake_for_single_targets(
    project: Path, shell: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    lists, profile = project / "CMakeLists.txt", project / "work.json"
    profile.write_text('{"schema": 1, "kernels": {}}')
    lists.write_text(
        lists.read_text()
        + "find_package(cccopt REQUIRED)\ntarget_link_libraries(work PRIVATE cccopt::cte)\n"
        + "ccc_target(work always PROFILE work.json REPORT reports)\n"
    )
    (project / "scale.cu").write_text("#include <cte.cuh>\n" + (project / "scale.cu").read_text())
    with pytest.raises(SystemExit):
        cccopt_main(["--cmake-dir"])
    folder = capsys.readouterr().out.strip()
    configure = documented("cccopt_DIR").replace('"$(cccopt --cmake-dir)"', folder)
    run(f"{configure} -G Ninja", project, shell)
    run(documented("cmake --build"), project, shell)
    assert run("build/program", project, shell) == "ran\n"
    (kernel,) = (project / "build").rglob("work.cu.o")
    assert is_rewritten(kernel.read_bytes(), texts=2)
    assert list((project / "build/reports").glob("*.json"))

    first = made(project / "build")
    run("cmake --build build", project, shell)
    assert made(project / "build") == first
    profile.write_text('{"schema": 1, "kernels": {"other": {}}}')
    run("cmake --build build", project, shell)
    second = made(project / "build")
    rebuilt = {name for name in second if second[name] != first.get(name)}
    assert {"work.cu.o", "scale.cu.o"} <= rebuilt
    assert "main.cu.o" not in rebuilt


@needs_cmake
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nothing", "there is no target `nothing`"),
        ("work always off", "contradict each other"),
        ("work sometimes", "unknown words `sometimes`"),
    ],
)
def test_cmake_says_what_is_wrong(words: str, said: str, project: Path, shell: dict[str, str]) -> None:
    lists = project / "CMakeLists.txt"
    lists.write_text(f"{lists.read_text()}find_package(cccopt REQUIRED)\nccc_target({words})\n")
    command = f"cmake -S . -B build -Dcccopt_DIR={folder_of_cmake()}"
    done = subprocess.run(command, shell=True, cwd=project, env=shell, capture_output=True, text=True)
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())


@needs_cmake
@needs_ccache
def test_cmake_with_ccache(project: Path, shell: dict[str, str], tmp_path: Path) -> None:
    shell["CCACHE_DIR"] = str(tmp_path / "ccache")
    run(documented("LAUNCHER=ccache") + " -DCMAKE_CUDA_FLAGS=--ccc=always", project, shell)
    run("cmake --build build --target work", project, shell)
    run("ccache --zero-stats && cmake --build build --target work --clean-first", project, shell)
    counts = dict(line.split("\t") for line in run("ccache --print-stats", project, shell).splitlines())
    assert (counts["direct_cache_hit"], counts["cache_miss"]) == ("2", "0")
    (kernel,) = (project / "build").rglob("work.cu.o")
    assert is_rewritten(kernel.read_bytes(), texts=2)


@needs_make
def test_make(project: Path, shell: dict[str, str]) -> None:
    """Through the Makefile's variable, and then as the ``nvcc`` that PATH offers."""
    command = documented("make NVCC=")
    run(f"{command} -j2", project, shell)
    assert run("./program", project, shell) == "ran\n"
    assert is_rewritten((project / "work.o").read_bytes(), texts=1)
    first = made(project)
    run(command, project, shell)
    assert made(project) == first

    change_an_annotation(project)
    run(f"mkdir bin && {documented('ln -s')} && {documented('make NVCCFLAGS')}", project, shell)
    assert {name for name, time in made(project).items() if time != first[name]} == {"work.o", "program"}
    assert not is_rewritten((project / "work.o").read_bytes(), texts=1)


@needs_meson
@needs_ninja
def test_meson(project: Path, shell: dict[str, str]) -> None:
    (project / "ccc-nvcc.ini").write_text("\n".join(documented(part) for part in ("[binaries]", "cuda = ")))
    said = run(documented("meson setup"), project, shell)
    assert f"ccc-nvcc --ccc=always (nvcc {find_nvcc().version})" in said
    run("ninja -C build", project, shell)
    assert run("build/program", project, shell) == "ran\n"
    (kernel,) = project.rglob("*work.cu.o")
    assert is_rewritten(kernel.read_bytes(), texts=1)
    assert "no work to do" in run("ninja -C build", project, shell)


# What PyTorch writes for an extension with a CUDA file. Its older versions ask for the second kind of dependencies.
EXTENSION = """\
ninja_required_version = 1.3
nvcc = {nvcc}

cuda_cflags = -DTORCH_EXTENSION_NAME=work -DTORCH_API_INCLUDE_EXTENSION_H -isystem {include} \
-D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_BFLOAT16_CONVERSIONS__ \
-D__CUDA_NO_HALF2_OPERATORS__ --expt-relaxed-constexpr -gencode=arch=compute_80,code=sm_80 \
-gencode=arch=compute_90,code=compute_90 -gencode=arch=compute_90,code=sm_90 --compiler-options '-fPIC' -O2 -std=c++20
cuda_post_cflags = {post}
cuda_dlink_post_cflags = --compiler-options ''"'"'-fPIC'"'"'' -gencode=arch=compute_90,code=sm_90 -dlink

rule cuda_compile
  depfile = $out.d
  deps = gcc
  command = $nvcc {dependencies} $cuda_cflags -c $in -o $out $cuda_post_cflags

rule cuda_devlink
  command = $nvcc $in -o $out $cuda_dlink_post_cflags

build work.cuda.o: cuda_compile {source}
build dlink.o: cuda_devlink work.cuda.o
"""


@needs_ninja
@pytest.mark.parametrize(
    ("dependencies", "post"),
    [
        ("-MD -MF $out.d", ""),
        # CUDAExtension quotes twice.
        (
            "--generate-dependencies-with-compile --dependency-output $out.d",
            """--compiler-options ''"'"'-fPIC'"'"''""",
        ),
    ],
)
def test_an_extension_of_pytorch(dependencies: str, post: str, project: Path, shell: dict[str, str]) -> None:
    variable, _, value = documented("PYTORCH_NVCC").removeprefix("export ").partition("=")
    assert variable == "PYTORCH_NVCC"
    source = project / "extension.cu"
    source.write_text("#include <work.cuh>\nvoid run(float* x) { work<<<1, 128>>>(1, x, x); }\n")
    text = EXTENSION.format(
        nvcc=value.strip('"'),
        include=project / "include",
        dependencies=dependencies,
        post=post,
        source=source,
    )
    (project / "build.ninja").write_text(text)
    said = run("ninja -v", project, shell)
    assert "warning" not in said
    assert is_rewritten((project / "work.cuda.o").read_bytes(), texts=1)
    assert str(project / "include/work.cuh") in run("ninja -t deps work.cuda.o", project, shell)
    assert "no work to do" in run("ninja", project, shell)


def test_tools_read_nvccs_version_from_the_answer(shell: dict[str, str]) -> None:
    """What build tools look for in the text of ``--version``."""
    nvcc = find_nvcc()
    theirs = subprocess.run([nvcc.path, "--version"], check=True, capture_output=True, text=True).stdout
    ours = run("ccc-nvcc --version", Path(), shell)
    assert ours.startswith(theirs)
    assert ours.removeprefix(theirs).startswith(f"cccopt {__version__} ")
    release = ".".join(nvcc.version.split(".")[:2])
    assert re.findall(r"release (\d+[.]\d+)", ours) == [release]  # PyTorch
    assert re.findall(r"V([0-9]+\.[0-9]+\.[0-9]+)", ours) == [nvcc.version]  # CMake
    assert ours.strip().rsplit("V", maxsplit=1)[-1].split(maxsplit=1)[0] == nvcc.version  # Meson
    words = ours.split()
    assert words[words.index("release") + 1].rstrip(",") == release  # setup.py files after apex's
