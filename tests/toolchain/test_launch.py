"""Running a program in our place: its status is ours, and our signals are its."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cccopt.toolchain.launch import launch

SHELL = "/bin/sh"
PROGRAM = """
import sys
from cccopt.toolchain.launch import launch
sys.exit(launch("/bin/sh", ["-c", sys.argv[1]], {}))
"""
WAIT = "trap 'echo cleaned; exit 7' TERM; echo started; while :; do sleep 0.05; done"


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)])
def test_the_status_is_the_programs(script: str, status: int) -> None:
    assert launch(SHELL, ["-c", script], {}) == status


def test_environment_and_arguments_arrive(tmp_path: Path) -> None:
    script = 'printf "%s " "$A" "$@" > out'
    environment = {"A": "a b", "PWD": str(tmp_path)}
    assert launch(SHELL, ["-c", f"cd '{tmp_path}'; {script}", "name", "x y", ""], environment) == 0
    assert (tmp_path / "out").read_text() == "a b x y  "


def started(script: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, script],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Shells have what they start in the background ignore it, and a shell that starts so cannot trap it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


def test_a_request_to_end_reaches_the_program_which_ends_in_its_own_way() -> None:
    process = started(WAIT)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=30) == ("cleaned\n", None)
    assert process.returncode == 7


def test_an_interrupt_of_all_waits_for_the_program() -> None:
    process = started("trap 'sleep 0.2; echo late; exit 9' INT; echo started; while :; do sleep 0.05; done")
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=30) == ("late\n", None)
    assert process.returncode == 9


def test_what_our_parent_ignores_stays_ignored() -> None:
    script = "echo started; sleep 0.3; echo finished"
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", sys.executable, "-c", PROGRAM, script],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGHUP)
    time.sleep(0.05)
    assert process.communicate(timeout=30) == ("finished\n", None)
    assert process.returncode == 0


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert launch(SHELL, ["-c", "exit 0"], {}) == 0
    assert signal.getsignal(signal.SIGTERM) is before
