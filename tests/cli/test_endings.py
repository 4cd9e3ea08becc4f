"""How programs end that are stopped: by Ctrl-C at any time, by a reader that leaves, by a full disk."""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from cccopt.cli import main as command_line
from cccopt.cli.start import INTERRUPTED
from cccopt.toolchain.shadow import _LAUNCHER

# Presses Ctrl-C when the module NAME is looked for.
PRESS = """
import os, signal, sys
class Finder:
    @staticmethod
    def find_spec(name, *_):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
"""
START = "from cccopt.cli.start import {program}\nsys.exit({program}())\n"


def ended(code: str, *arguments: str, ignored: bool = False) -> tuple[int, str]:
    """The exit status of a Python program and what it says of errors."""
    handler = signal.SIG_IGN if ignored else signal.default_int_handler
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, handler),
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("cccopt", "numpy"),
        ("cccopt", "cccopt.cli.main"),
        ("cccopt", "cccopt.harness.suite"),
        ("ccc_nvcc", "cccopt.toolchain.cache"),
        ("ccc_nvcc", "cccopt.cli.around_nvcc"),
    ],
)
def test_an_interrupt_while_modules_load_is_quiet(program: str, name: str) -> None:
    code = PRESS.format(name=name) + START.format(program=program)
    assert ended(code, "--help") == (INTERRUPTED, "")


def test_an_interrupt_that_is_ignored_stays_ignored() -> None:
    code = PRESS.format(name="numpy") + START.format(program="cccopt")
    assert ended(code, "--help", ignored=True) == (0, "")


@pytest.mark.parametrize("when", ["os.kill(os.getpid(), 2)", "def main(_): os.kill(os.getpid(), 2)"])
def test_an_interrupt_of_a_shim_is_quiet(when: str, tmp_path: Path) -> None:
    """While its modules load, and in its work."""
    package = tmp_path / "cccopt/cli"
    package.mkdir(parents=True)
    (package / "shim_cicc.py").write_text(f"import os\n{when}\n")
    # -I -S: no other cccopt is there.
    launcher = _LAUNCHER.format(version="1", path=[str(tmp_path)], module="shim_cicc")
    (tmp_path / "cicc.py").write_text(launcher)
    command = [sys.executable, "-I", "-S", str(tmp_path / "cicc.py")]
    # What runs in the background of a shell ignores interrupts, and hands that on.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=heed)
    assert (done.returncode, done.stderr) == (INTERRUPTED, "")


@pytest.mark.parametrize("program", ["cccopt", "ccc_nvcc"])
def test_a_reader_may_leave(program: str, tmp_path: Path) -> None:
    code = "import sys\n" + START.format(program=program)
    words = ["explain", "CCC030"] if program == "cccopt" else ["--help"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        running.stdout.close()
        assert running.stderr is not None
        assert running.stderr.read() == ""
        assert running.wait() == 1


@pytest.mark.parametrize("words", ["explain CCC030 >/dev/full", "explain CCC030 >&-"])
def test_output_that_cannot_be_written(words: str) -> None:
    code = "import sys\n" + START.format(program="cccopt")
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {words}', sys.executable, code],
        capture_output=True,
        text=True,
        check=False,
    )
    if "full" in words:
        assert done.returncode == 1
        assert "error[CCC086]: cannot use standard output" in done.stderr
        assert done.stderr.count("\n") == 1
    else:
        assert (done.returncode, done.stderr) == (0, "")


def test_a_mistake_of_ours_has_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def crash(_: object) -> int:
        raise ZeroDivisionError("injected")

    monkeypatch.setattr("cccopt.cli.explain.run", crash)
    assert command_line.main(["explain", "x.ptx"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error[CCC099]: internal error in cccopt")
    assert "Traceback" not in said
    (kept,) = tmp_path.glob("*/cccopt-crash.txt")
    assert "ZeroDivisionError: injected" in kept.read_text()
