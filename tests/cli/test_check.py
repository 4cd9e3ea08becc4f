"""``cccopt check``: what it prints, its exit status, its JSON, and input that it cannot use."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cccopt.checking import Checked
from cccopt.cli import check
from cccopt.cli.main import main
from cccopt.diagnostic import CccError, error
from tests.checking.loops import checked, loop

COLLIDES = loop("st.global.u32 [%rd1], %i;")
MEETS = loop("st.global.u32 [%rd1], 7;")
LAUNCH = ["--grid", "1", "--block", "32", "--arg", "zeros:u32:64", "--arg", "i32:64"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "k.ptx"


def test_a_conflict_is_exit_status_1(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(COLLIDES)
    assert main(["check", str(file), "k", *LAUNCH]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    head, *rest = out.split("\n")
    assert head == (
        "error[CCC102]: the result depends on the order of iterations of a marked loop: two iterations store different"
        " values (in `k`)"
    )
    assert "  --> k.cu:3:1" in rest
    line = COLLIDES[: COLLIDES.index("st.global.u32 [%rd1]")].count("\n") + 1
    at = f"  --> {file}:{line}:5: iteration"
    assert f"{at} 0 of thread (0, 0, 0) of block (0, 0, 0) stores 0" in rest
    assert f"{at} 1 of thread (31, 0, 0) of block (0, 0, 0) stores 63" in rest
    assert "element 0 of argument 0 in launch 1; these lines conflict at 1 location in 1 launch" in out
    assert f"`k` of {file}: 1 conflict in 1 launch, 64 iterations of marked loops" in rest


def test_benign_meetings_are_listed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(MEETS)
    assert main(["check", str(file), "k", *LAUNCH]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert f"`k` of {file}: no conflict in 1 launch, 64 iterations of marked loops" in out
    assert "benign races" in out
    assert "k.cu:3, for" in out
    assert "iterations store the same value" in out


def test_arrays_of_files_go_by_their_names(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(COLLIDES)
    array = file.with_name("levels.npy")
    np.save(array, np.zeros(64, np.int32))
    assert main(["check", str(file), "k", "--grid=1", "--block=32", "--arg", str(array), "--arg=i32:64"]) == 1
    assert f"element 0 of argument 0 (`{array}`)" in capsys.readouterr().out


def test_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(COLLIDES)
    report = file.with_name("report.json")
    assert main(["check", str(file), "k", *LAUNCH, "--json", str(report)]) == 1
    data = json.loads(report.read_text())
    (entry,) = data["checks"]
    assert data["schema"] == check.SCHEMA
    assert (entry["subject"], entry["launches"], entry["iterations"]) == (str(file), 1, 64)
    assert entry["meetings"] == []
    (conflict,) = entry["conflicts"]
    assert conflict["kind"] == "two iterations store different values"
    assert conflict["loop"]["pragma"] == "for"
    assert [conflict[which]["value"] for which in ("first", "second")] == ["0", "63"]
    assert [i["number"] for i in conflict["second"]["iterations"]] == [1]


def test_some_of_many_conflicts_are_printed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stores = "\n".join(f"st.global.u32 [%rd1+{4 * n}], %i;" for n in range(12))
    file.write_text(loop(stores))
    launch = ["check", str(file), "k", *LAUNCH]
    for options, shown in (([], 10), (["--most", "3"], 3), (["--most", "12"], 12)):
        assert main([*launch, *options]) == 1
        out = capsys.readouterr().out
        assert out.count("error[CCC102]") == shown
        assert "12 conflicts" in out
        assert (f"{12 - shown} of them not shown" in out) == (shown < 12)


# --- workloads ---


def of_workload(
    monkeypatch: pytest.MonkeyPatch, results: dict[str, Checked | CccError]
) -> list[tuple[str, ...]]:
    """Workloads are not run, but come to ``results``; the arguments of each call."""
    calls: list[tuple[str, ...]] = []

    def stand_in(sample: object, size: str, *, seed: int, arch: str) -> Checked:
        name: str = sample.name  # type: ignore[attr-defined]
        calls.append((name, size, str(seed), arch))
        result = results[name]
        if isinstance(result, CccError):
            raise result
        return result

    monkeypatch.setattr(check, "check_sample", stand_in)
    return calls


def test_workloads(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    calls = of_workload(monkeypatch, {"bfs": checked(MEETS), "ff": checked(COLLIDES)})
    assert main(["check", "bfs"]) == 0
    assert main(["check", "ff", "bfs", "--size", "small", "--seed", "3", "--arch", "sm_80"]) == 1
    assert calls == [
        ("bfs", "demo", "1", "sm_90"),
        ("ff", "small", "3", "sm_80"),
        ("bfs", "small", "3", "sm_80"),
    ]
    out = capsys.readouterr().out
    assert "bfs (demo): no conflict" in out
    assert "ff (small): 1 conflict in" in out


def test_one_workload_that_fails_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken = CccError(error("CCC071", "store out of bounds"))
    of_workload(monkeypatch, {"bfs": checked(MEETS), "ff": broken, "rt": checked(MEETS)})
    report = tmp_path / "report.json"
    assert main(["check", "bfs", "ff", "rt", "--json", str(report)]) == 1
    out, err = capsys.readouterr()
    assert err.startswith("error[CCC071]")
    assert ("bfs (demo)" in out, "ff (demo)" in out, "rt (demo)" in out) == (True, False, True)
    assert [entry["subject"] for entry in json.loads(report.read_text())["checks"]] == ["bfs", "rt"]


# --- bad input ---


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["k.ptx"], "CCC089"),
        (["k.ptx", "k", "another", *LAUNCH], "CCC089"),
        (["k.ptx", "k", "--grid", "1"], "CCC089"),
        (["k.ptx", "k", "--block", "32"], "CCC089"),
        (["k.ptx", "k", "--size", "small", *LAUNCH], "CCC089"),
        (["k.ptx", "k", "--seed", "0", *LAUNCH], "CCC089"),
        (["k.ptx", "k", "--nvcc=-O3", *LAUNCH], "CCC089"),
        (["k.ptx", "k", "--arch", "sm_80", *LAUNCH], "CCC089"),
        (["k.ptx", "no_such_kernel", *LAUNCH], "CCC076"),
        (["k.ptx", "k", *LAUNCH[:4]], "CCC076"),
        (["k.ptx", "k", *LAUNCH[:6], "--arg", "i32:65"], "CCC071"),
        (["k.ptx", "k", *LAUNCH[:6], "--arg", "i32:0"], "CCC103"),
        (["plain.ptx", "k", *LAUNCH], "CCC103"),
        (["missing.ptx", "k", *LAUNCH], "CCC086"),
        (["bfs", *LAUNCH], "CCC089"),
        (["bfs", "--shared", "64"], "CCC089"),
        (["no_such_workload"], "CCC090"),
        (["bfs", "--size", "huge"], "CCC091"),
    ],
)
def test_bad_input(
    words: list[str],
    code: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = "st.global.u32 [%rd5], %i;"
    (tmp_path / "k.ptx").write_text(loop(own))
    (tmp_path / "plain.ptx").write_text(loop(own).replace("// ccc", "//"))
    monkeypatch.chdir(tmp_path)
    assert main(["check", *words, "--json", "report.json"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error[{code}]")
    assert err.count("error[") == 1
    assert not (tmp_path / "report.json").exists()
    if code == "CCC103":
        assert ("give it an annotated .cu file" in err) == (words[0] == "plain.ptx")


def test_a_workload_is_required() -> None:
    with pytest.raises(SystemExit) as stop:
        main(["check"])
    assert stop.value.code == 2


@pytest.mark.nvcc
def test_a_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "last.cu"
    source.write_text(
        "__global__ void __launch_bounds__(32) last(int n, int* out) {\n"
        "#pragma ccc for\n"
        "  for (int i = threadIdx.x; i < n; i += 32) {\n"
        "#pragma ccc if\n"
        "    if (i % 3 == 0) out[i % STRIDE] = i;\n"
        "  }\n"
        "}\n"
    )
    launch = [
        "check",
        str(source),
        "last",
        "--grid",
        "1",
        "--block",
        "32",
        "--arg",
        "i32:96",
        "--arg",
        "zeros:i32:96",
    ]
    assert main([*launch, "--nvcc=-DSTRIDE=96"]) == 0
    assert main([*launch, "--nvcc=-DSTRIDE=48"]) == 1
    out = capsys.readouterr().out
    assert "5 |     if (i % 3 == 0) out[i % STRIDE] = i;" in out
    assert "iteration 1 of thread (16, 0, 0) of block (0, 0, 0) stores 48" in out


@pytest.mark.nvcc
def test_a_source_without_annotations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "plain.cu"
    source.write_text("__global__ void k(int* out) { out[threadIdx.x] = 1; }\n")
    assert main(["check", str(source), "k", "--grid=1", "--block=32", "--arg=zeros:i32:32"]) == 1
    assert "error[CCC103]" in capsys.readouterr().err
