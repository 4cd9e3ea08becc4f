"""The agent in a program without CUDA: what it writes of units, devices, kernels, forks and ends of all kinds."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from cccopt.device.facts import DeviceFacts
from cccopt.diagnostic import CccError
from cccopt.profiling import agent as building
from cccopt.profiling import running
from cccopt.profiling.running import KernelTime, ProgramRun, UnitCounts, run_program

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the fake program and the fake CUPTI."""
    folder = tmp_path_factory.mktemp("fakes")
    for source, made, *options in (
        ("fake_program.cpp", "fake_program", "-rdynamic"),
        ("fake_cupti.cpp", "libcupti_of_tests.so", "-shared", "-fPIC", "-Wl,-soname,libcupti_of_tests.so"),
    ):
        command = ["g++", "-std=c++17", HERE / source, "-o", folder / made, *options, "-ldl"]
        subprocess.run(command, check=True)
    return folder


@pytest.fixture(autouse=True)
def _own_cupti(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCC_PROFILE_CUPTI", str(built / "libcupti_of_tests.so"))


def ran(built: Path, folder: Path, *words: str, counted: bool = True, timed: bool = False) -> ProgramRun:
    return run_program([str(built / "fake_program"), *words], folder, counted=counted, timed=timed)


def numbers(unit: UnitCounts) -> tuple[int, ...]:
    return struct.unpack(f"<{len(unit.counts) // 8}Q", unit.counts)


def test_each_unit_is_read_at_the_end(built: Path, tmp_path: Path) -> None:
    run = ran(built, tmp_path, "unit", "empty", "cuda", "another", "exit3")
    assert (run.status, run.instrumented, run.used_cuda, run.lost) == (3, True, True, ())
    found = {unit.layout: (unit.name, unit.device, numbers(unit)) for unit in run.units}
    assert found == {b"layoutA": ("a.cu", "GPU 0", (1, 2)), b"layoutB": ("b.cu", "GPU 0", (10, 20))}


@pytest.mark.parametrize("end", [[], ["quick_exit"]])
def test_main_and_quick_exit_are_ends(built: Path, tmp_path: Path, end: list[str]) -> None:
    run = ran(built, tmp_path, "unit", "cuda", *end)
    assert (len(run.units), run.lost) == (1, ())


def test_each_device_is_read(built: Path, tmp_path: Path) -> None:
    run = ran(built, tmp_path, "unit", "two-devices", "cuda")
    assert sorted((unit.device, numbers(unit)) for unit in run.units) == [
        ("GPU 0", (1, 2)),
        ("GPU 1", (100, 200)),
    ]


def test_a_library_is_read_before_it_is_unloaded(built: Path, tmp_path: Path) -> None:
    run = ran(built, tmp_path, "unit", "cuda", "another", "unload")
    assert sorted(unit.layout for unit in run.units) == [b"layoutA", b"layoutB"]


@pytest.mark.parametrize(("code", "lost"), [(209, 0), (2, 1)])
def test_a_unit_that_gives_nothing_does_not_keep_others_from_it(
    built: Path, tmp_path: Path, code: int, lost: int
) -> None:
    """One without code for the device (209) has lost nothing there."""
    run = ran(built, tmp_path, "unit", "another", f"refuses-{code}", "cuda")
    assert sorted(unit.layout for unit in run.units) == [b"layoutA", b"layoutB"]
    assert len(run.lost) == lost


def test_a_library_may_be_loaded_as_cuda_starts(built: Path, tmp_path: Path) -> None:
    """Its unit waits for the agent while its thread has the loader's lock, for which the agent waits then."""
    source, library, left = tmp_path / "library.cpp", tmp_path / "library.so", tmp_path / "left"
    source.write_text(
        "#include <dlfcn.h>\n#include <unistd.h>\n"
        "static int empty(int, void *, unsigned long long, unsigned long long) { return 209; }\n"
        "__attribute__((constructor)) static void load() {\n"
        '  void *agent = dlsym(RTLD_DEFAULT, "ccc_profile_unit");\n'
        "  usleep(300000);\n"
        '  if (agent) ((void (*)(decltype(&empty), const char *))agent)(empty, "c.cu");\n}\n'
    )
    subprocess.run(["g++", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
    left.mkdir()
    environment = running.environment_for(left, counted=True, timed=False)
    subprocess.run(
        [built / "fake_program", "unit", f"beside={library}"], env=environment, check=True, timeout=20
    )
    assert running.left_in(left, 0, 0, counted=True).lost == ()


def test_a_reset_that_goes_unseen_is_told(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not ran(built, tmp_path, "unit", "cuda").blind
    monkeypatch.setenv("CCC_PROFILE_CUPTI", "none")
    assert ran(built, tmp_path, "unit", "cuda").blind


def test_a_device_is_read_before_it_is_reset(built: Path, tmp_path: Path) -> None:
    """And what it counts afterwards comes in addition; the other device is read once."""
    run = ran(built, tmp_path, "unit", "two-devices", "cuda", "reset")
    assert sorted(map(numbers, run.units)) == [(1, 2), (50, 2), (100, 200)]


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("kill", "it was killed by signal 9, SIGKILL"),
        ("throw", "it was killed by signal 6, SIGABRT"),
        ("_exit", "it did not return from `main` or call `exit`"),
        ("fault", "reading the counts: error 700, CUDA_ERROR_ILLEGAL_ADDRESS"),
    ],
)
def test_lost_counts_are_told(built: Path, tmp_path: Path, end: str, why: str) -> None:
    run = ran(built, tmp_path, "unit", "cuda", end)
    (lost,) = run.lost
    assert "(`fake_program`) are lost: " in lost
    assert lost.startswith("the counts of process ")
    assert why in lost


def test_a_fork_after_cuda_leaves_the_counts_to_its_parent(built: Path, tmp_path: Path) -> None:
    run = ran(built, tmp_path, "unit", "cuda", "fork")
    assert (len(run.units), run.lost) == (1, ())


def test_a_fork_before_cuda_has_its_own_counts(built: Path, tmp_path: Path) -> None:
    run = ran(built, tmp_path, "unit", "fork-and-go-on", "cuda")
    assert (len(run.units), run.lost) == (1, ())
    assert len({log.name.partition(".")[0] for log in tmp_path.glob("*.process")}) == 2


def test_each_process_has_its_own_files(built: Path, tmp_path: Path) -> None:
    program = built / "fake_program"
    run = run_program(
        ["sh", "-c", f"{program} unit cuda & {program} another cuda; wait; {program} unit cuda kill; exit 0"],
        tmp_path,
        counted=True,
        timed=False,
    )
    assert sorted(unit.layout for unit in run.units) == [b"layoutA", b"layoutB"]
    assert len(run.lost) == 1


def test_times_are_by_kernel_and_device(built: Path, tmp_path: Path) -> None:
    run = ran(built, tmp_path, "cuda", "launch", counted=False, timed=True)
    assert (run.untimed, run.lost) == ("", ())
    assert sorted(run.times, key=lambda time: time.nanoseconds) == [
        KernelTime("cub_kernel", False, 1, 7, 32, 64, 24, "GPU 0", (5, 5, 5), 7),
        KernelTime("_Z1fPi", True, 1, 9, 32, 64, 24, "GPU 1", (5, 5, 5), 9),
        KernelTime("_Z1fPi", False, 2, 1500, 32, 64, 48, "GPU 0", (25, 5, 5), 1000),
    ]
    assert sorted(run.devices, key=lambda device: device.name) == [
        DeviceFacts("GPU 0", 16, 13, 36, 37, 38, 39, 81, 82, 106),
        DeviceFacts("GPU 1", 1016, 1013, 1036, 1037, 1038, 1039, 1081, 1082, 1106),
    ]


def test_a_device_issues_and_holds_so_much() -> None:
    h100 = DeviceFacts("H100", 132, 1_980_000, 2_619_000, 5120, 50 << 20, 2048, 233472, 65536, 32)
    assert round(h100.slots_per_ns) == 1045
    assert h100.warps == 132 * 64


def test_without_times_none_are_taken(built: Path, tmp_path: Path) -> None:
    assert ran(built, tmp_path, "unit", "cuda", "launch").times == ()


def test_a_cupti_that_refuses_is_told(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUPTI_REFUSES", "1")
    run = ran(built, tmp_path, "unit", "cuda", "launch", timed=True)
    assert run.untimed == "cuptiActivityEnable gives error 39, CUPTI_ERROR_OF_TESTS"
    assert (len(run.units), run.lost) == (1, ())


def test_without_cupti_the_counts_come(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCC_PROFILE_CUPTI", "none")
    run = ran(built, tmp_path, "unit", "cuda", timed=True)
    assert (run.untimed, len(run.units)) == ("there is no libcupti", 1)


def test_a_program_without_counters_or_cuda_is_told_apart(built: Path, tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    assert not ran(built, tmp_path / "1", "cuda").instrumented
    run = ran(built, tmp_path / "2", "unit")
    assert (run.instrumented, run.used_cuda, run.lost) == (True, False, ())


def test_only_the_counted_run_prints_and_counts(
    built: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran(built, tmp_path, "print")
    assert capfd.readouterr().out == "1\n"
    ran(built, tmp_path, "print", counted=False)
    assert capfd.readouterr().out == ""


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CccError, match=r"CCC086.*cannot run `./nowhere`: no such program"):
        run_program(["./nowhere"], tmp_path, counted=True, timed=False)


# --- building it ---


def test_it_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "cache"))
    first = building.agent()
    state = first.stat()
    assert building.agent() == first
    assert first.stat().st_mtime_ns == state.st_mtime_ns
    assert [file.name for file in first.parent.iterdir()] == [first.name]


def test_it_needs_no_cpp_library(tmp_path: Path) -> None:
    needed = subprocess.run(["ldd", building.agent()], capture_output=True, text=True, check=True).stdout
    assert "libstdc++" not in needed


def test_without_a_compiler_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(CccError, match=r"CCC110.*no C\+\+ compiler"):
        building.agent()


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "cache"))
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho out of order >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(CccError, match="out of order"):
        building.agent()


def test_a_cache_with_a_space_can_be_preloaded(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "a cache"))
    (tmp_path / "files").mkdir()
    assert len(ran(built, tmp_path / "files", "unit", "cuda").units) == 1
    assert os.listdir(tmp_path / "a cache" / "agents")


def test_a_path_that_cannot_be_preloaded_is_told(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "our cache"))
    (tmp_path / "left").mkdir()
    assert len(ran(built, tmp_path / "left", "unit", "cuda").units) == 1
    (tmp_path / "left here").mkdir()
    with pytest.raises(CccError, match="cannot be preloaded"):
        ran(built, tmp_path / "left here", "unit", "cuda")
