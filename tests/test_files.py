"""Files are whole or absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from cccopt.diagnostic import CccError
from cccopt.files import read_text, require_writable, write_all, write_text


def test_bytes_and_line_ends_come_back_as_they_were(tmp_path: Path) -> None:
    content = b"// caf\xe9\r\nint a;\n"
    (tmp_path / "in.cu").write_bytes(content)
    write_text(tmp_path / "out.cu", read_text(tmp_path / "in.cu"))
    assert (tmp_path / "out.cu").read_bytes() == content


def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.ptx"
    target.write_text("before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(CccError) as caught:
        write_text(target, "after")
    assert "no space left on device" in caught.value.diagnostics[0].message
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("out.ptx", "before")]


def test_a_link_is_followed_and_kept(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "text"


def test_what_is_no_plain_file_takes_the_text() -> None:
    write_text(Path("/dev/null"), "text")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("name", ["absent/file", "folder"])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    for use in (read_text, lambda path: write_text(path, "x")):
        with pytest.raises(CccError) as caught:
            use(tmp_path / name)
        assert caught.value.diagnostics[0].code == "CCC086"
        assert str(tmp_path / name) in caught.value.diagnostics[0].message


def test_of_several_files_all_are_written_or_none(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("before")
    with pytest.raises(CccError, match="no such file or directory"):
        write_all({first: b"after", tmp_path / "absent/second": b"x"})
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("first", "before")]
    write_all({first: b"after", second: b"x"})
    assert (first.read_text(), second.read_text()) == ("after", "x")


@pytest.mark.parametrize("name", ["absent/file", "folder", "file/below", "/proc/x"])
def test_an_output_is_tried_before_the_work(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("before")
    there = sorted(tmp_path.iterdir())
    require_writable(None, "/dev/null", "/dev/stderr", tmp_path / "new", tmp_path / "file")
    with pytest.raises(CccError) as caught:
        require_writable(tmp_path / "new", tmp_path / name)
    assert caught.value.diagnostics[0].code == "CCC086"
    assert f"cannot write `{tmp_path / name}`: " in caught.value.diagnostics[0].message
    assert sorted(tmp_path.iterdir()) == there
    assert (tmp_path / "file").read_text() == "before"


def test_two_outputs_are_two_files(tmp_path: Path) -> None:
    with pytest.raises(CccError, match="another output of this command is written there"):
        require_writable(tmp_path / "x", tmp_path / "y" / ".." / "x")
