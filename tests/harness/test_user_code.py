"""Workloads that do not work: one diagnostic with the file and its line, exit status 1, no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from cccopt.cli.main import main
from cccopt.diagnostic import CccError
from cccopt.harness.workload import Sample, load

RIGHT = """\
import numpy as np
from cccopt.harness.workload import Launch, Zeros
SIZES = ("small", "demo")
def inputs(size, seed):
    return {"n": 4, "x": np.arange(4), "y": Zeros(4, np.int32)}
def launches(state):
    yield Launch("work", (1, 1, 1), (32, 1, 1), (np.int32(4), state["x"]))
def reference(inputs):
    return {}
def check(result, expected):
    return ""
"""
LAUNCH = 'Launch("work", (1, 1, 1), (32, 1, 1), (np.int32(4), state["x"]))'

# What stands in RIGHT, what stands there instead, and what is said: the line and a part of the message.
AT_LOADING = {
    "syntax": ("return {}", "return {", 9, "SyntaxError: '{' was never closed"),
    "exception": ("SIZES =", "SIZES = 1 / 0 or", 3, "failed with ZeroDivisionError: division by zero"),
    "exit": ("SIZES =", "SIZES = exit(3) or", 3, "failed with SystemExit: 3"),
    "import": (
        "import numpy as np",
        "import no_such as np",
        1,
        "ModuleNotFoundError: No module named 'no_such'",
    ),
    "missing": ("def check", "def checks", 1, "it does not define `check`"),
    "no function": ("def launches(state):\n    yield", "launches =", 6, "failed with NameError"),
    "a number": (
        "def reference(inputs):\n    return {}",
        "reference = 7",
        8,
        "`reference` is not a function",
    ),
    "sizes": ('("small", "demo")', '"demo"', 3, "`SIZES` is not a tuple of names"),
    "null": ("SIZES", "\0SIZES", None, "null bytes"),
}
AT_RUNNING = {
    "inputs raise": ("return {", "return state or {", 5, "NameError: name 'state' is not defined"),
    "inputs": ("np.arange(4)", "[1, 2]", 4, "`inputs` has a value of type `list` for 'x'"),
    "no inputs": ('return {"n"', 'return 7 or {"n"', 4, "`inputs` returns a value of type `int`"),
    "launches raise": ('["x"]', '["z"]', 7, "failed with KeyError: 'z'"),
    "late": (LAUNCH, LAUNCH + "\n    1 / 0", 8, "ZeroDivisionError"),
    "no generator": ("yield", "return", 6, "returns a value of type `Launch` and yields no launches"),
    "no launch": (LAUNCH, "7", 6, "`launches` yields a value of type `int`, not a `Launch`"),
    "block": ("(32, 1, 1)", '"32"', 6, "whose block is '32', not three positive numbers"),
    "grid": ("(1, 1, 1)", "(0, 1, 1)", 6, "whose grid is (0, 1, 1), not three positive numbers"),
    "argument": ("np.int32(4)", "None", 6, "a launch of `work` whose argument 0 is None"),
    "check": ('return ""', "return None", 10, "`check` returns None, not a string"),
    "reference": ("return {}", "return []", 8, "`reference` returns a value of type `list`"),
}


def workload(folder: Path, old: str, new: str) -> Path:
    made = folder / "mine"
    made.mkdir()
    (made / "mine.cu").write_text('extern "C" __global__ void work(int n, int* x) {}\n')
    assert old in RIGHT
    (made / "workload.py").write_text(RIGHT.replace(old, new, 1))
    return made


def said_of(problem: CccError, line: int | None, part: str, folder: Path) -> None:
    said = str(problem)
    assert said.startswith("error[CCC090]: ")
    assert part in said
    assert str(folder / "workload.py") in said
    if line is not None:
        assert f"--> {folder / 'workload.py'}:{line}:" in said


@pytest.mark.parametrize("case", AT_LOADING)
def test_loading(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, line, part = AT_LOADING[case]
    folder = workload(tmp_path, old, new)
    with pytest.raises(CccError) as caught:
        load(str(folder))
    said_of(caught.value, line, part, folder)
    assert main(["bench", str(folder)]) == 1
    assert capsys.readouterr() == ("", f"{caught.value}\n")


def use(sample: Sample) -> None:
    """All that runners ask of a workload."""
    state = dict(sample.inputs("small", 1))
    list(sample.launches(state, "plain"))
    sample.workload.check({}, sample.workload.reference(state))


@pytest.mark.parametrize("case", AT_RUNNING)
def test_running(case: str, tmp_path: Path) -> None:
    old, new, line, part = AT_RUNNING[case]
    folder = workload(tmp_path, old, new)
    with pytest.raises(CccError) as caught:
        use(load(str(folder)))
    said_of(caught.value, line, part, folder)


def test_a_right_one_is_left_alone(tmp_path: Path) -> None:
    use(load(str(workload(tmp_path, "SIZES", "SIZES"))))


def test_what_a_library_raises_is_shown_at_both_places(tmp_path: Path) -> None:
    folder = workload(tmp_path, '{"n": 4, "x": np.arange(4)', '{"x": np.fft.fft([])')
    with pytest.raises(CccError) as caught:
        load(str(folder)).inputs("small", 1)
    said_of(caught.value, 5, "failed with ValueError", folder)
    assert ": raised here" in str(caught.value)


def test_an_interrupt_passes(tmp_path: Path) -> None:
    folder = workload(tmp_path, 'return {"n"', 'raise KeyboardInterrupt\n    return {"n"')
    with pytest.raises(KeyboardInterrupt):
        load(str(folder)).inputs("small", 1)
