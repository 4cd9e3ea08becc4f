"""Files that are no PTX, given to each command: one diagnostic, exit status 1, no traceback and no output file."""

from __future__ import annotations

from pathlib import Path

import pytest

from cccopt.cli.main import main
from tests.ptx.conftest import HERE

FEATURES = (HERE / "features.ptx").read_bytes()
LAUNCH = ["k", "--grid", "1", "--block", "32"]
COMMANDS = {
    "transform": ["transform", "FILE", "-o", "OUT"],
    "transform going on": ["transform", "FILE", "-o", "OUT", "--keep-going", "--report", "OUT.json"],
    "explain": ["explain", "FILE", "--dot", "OUT.dot"],
    "emulate": ["emulate", "FILE", *LAUNCH],
    "verify": ["verify", "FILE", "FILE", *LAUNCH],
}
CONTENTS = {
    "zeros": b"\0" * 100_000,
    "no UTF-8": FEATURES + b"\xff\xfe",
    "no UTF-8 at all": bytes(range(256)) * 100,
    "half": FEATURES[: len(FEATURES) // 2],
    "a long line": b".entry k () { add.s32 " + b"x, " * 100_000 + b"; } }",
    "nested": b".entry k () {" + b"{" * 10_000 + b"}" * 10_000 + b"}",
    "UTF-16": FEATURES.decode().encode("utf-16"),
}


def check(command: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = file.parent
    before = set(folder.iterdir())
    words = {"FILE": str(file), "OUT": str(folder / "out"), "OUT.json": str(folder / "out.json")}
    words["OUT.dot"] = str(folder / "out.dot")
    assert main([words.get(word, word) for word in COMMANDS[command]]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error[CCC")
    assert err.count("error[") == 1
    assert "Traceback" not in err
    assert len(err) < 2000
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("content", CONTENTS)
def test_no_ptx(command: str, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.ptx"
    file.write_bytes(CONTENTS[content])
    check(command, file, capsys)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_file(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(command, tmp_path / "missing.ptx", capsys)
    (tmp_path / "folder.ptx").mkdir()
    check(command, tmp_path / "folder.ptx", capsys)


@pytest.mark.parametrize("command", ["emulate", "verify"])
def test_an_empty_file_has_no_kernel(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.ptx").touch()
    check(command, tmp_path / "x.ptx", capsys)
