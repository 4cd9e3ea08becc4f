"""What the last search found: it is believed as long as nothing it rests on has changed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from cccopt.toolchain import cache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def answer(folder: Path) -> str:
    nvcc = folder / "toolkits/key/bin/nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.touch()
    return str(nvcc)


def test_an_answer_holds_until_its_evidence_changes(answer: str, tmp_path: Path) -> None:
    there, absent = tmp_path / "there", tmp_path / "absent"
    there.write_text("1")
    assert cache.recall(None) is None
    cache.remember(None, answer, "", [str(there), str(absent)])
    assert cache.recall(None) == (answer, "")
    assert cache.recall("/other/nvcc") is None
    absent.touch()
    assert cache.recall(None) is None
    absent.unlink()
    assert cache.recall(None) == (answer, "")
    there.write_text("22")
    assert cache.recall(None) is None


def test_an_answer_is_of_its_environment(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.remember(None, answer, "", [])
    assert cache.recall(None) == (answer, "")
    for variable in ("CCC_NVCC", "PATH", "CUDA_HOME", "CONDA_PREFIX"):
        with monkeypatch.context() as changed:
            changed.setenv(variable, "/elsewhere")
            assert cache.recall(None) is None
    with monkeypatch.context() as changed:
        changed.setattr(cache, "__version__", "0.0.0")
        assert cache.recall(None) is None


def test_a_relative_place_is_of_the_folder_it_was_said_in(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cache.remember("bin/nvcc", answer, "", [])
    assert cache.recall("bin/nvcc") == (answer, "")
    monkeypatch.chdir("/")
    assert cache.recall("bin/nvcc") is None


@pytest.mark.parametrize("damage", ["", "nonsense", "\0", "a\0b\0c"])
def test_a_damaged_note_is_no_answer(answer: str, folder: Path, damage: str) -> None:
    cache.remember(None, answer, "", [])
    (note,) = (folder / "searches").iterdir()
    note.write_text(damage)
    assert cache.recall(None) is None


def test_a_removed_shadow_is_searched_for_again(answer: str) -> None:
    cache.remember(None, answer, "", [])
    Path(answer).unlink()
    assert cache.recall(None) is None


def test_the_private_folder_is_ours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CCCOPT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    private = tmp_path / f"cccopt-{os.getuid()}"
    assert cache.cache_folders() == [str(tmp_path / "home/cccopt"), str(private)]
    assert not private.exists()
    cache.prepare(str(private))
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert cache.cache_folders() == [str(tmp_path / "home/cccopt"), str(private)]
    # Where others may write, or point us elsewhere, programs of theirs could lie.
    private.chmod(0o777)
    assert cache.cache_folders() == [str(tmp_path / "home/cccopt")]
    with pytest.raises(PermissionError):
        cache.prepare(str(private))
    private.rmdir()
    private.symlink_to(tmp_path)
    assert cache.cache_folders() == [str(tmp_path / "home/cccopt")]
