"""Work folders, copies of the tree, and what a resumed `cccopt tune` goes on from."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cccopt.ccc.profitability import decisions
from cccopt.ccc.profitability.decisions import Decision, Decisions
from cccopt.diagnostic import CccError
from cccopt.tuning.builds import DECIDED, PLAIN, flags_of
from cccopt.tuning.runs import Observed
from cccopt.tuning.state import State, is_work_folder, load
from cccopt.tuning.tree import check_compared, check_work, copy, fingerprint
from cccopt.tuning.tuner import Task, Tuner
from tests.tuning.test_tune import BUILD, FASTER, Machine, task, tuned

__all__ = ["task"]  # a fixture


def state_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    State({}).save(folder)
    return folder


# --- folders ---


def test_a_work_folder_is_new_empty_or_ours(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "full").mkdir(parents=True)
    (source / "full" / "file").touch()
    (source / "tab\there").mkdir()
    (tmp_path / "link").symlink_to(source / "tab\there")
    (tmp_path / "empty").mkdir()
    for work, why in (
        (source, "is the source folder or contains it"),
        (tmp_path, "is the source folder or contains it"),
        (source / "full", "are not from `cccopt tune`"),
        (source / "full/file", "is not a folder"),
        (tmp_path / "link/work", "which is split at spaces"),
    ):
        with pytest.raises(CccError, match=f"CCC116[^$]*{why}"):
            check_work(source, work)
    for work in (source / "new", tmp_path / "empty", state_in(tmp_path / "ours")):
        check_work(source, work)


def test_compared_files_are_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "source" / "folder").mkdir(parents=True)
    (tmp_path / "source" / "out").symlink_to(tmp_path)
    for name in ("/tmp/a", "../a", "folder/../../a", "out/a", "folder", ".", ".."):
        with pytest.raises(CccError, match=r"CCC116.*cannot be compared"):
            check_compared(tmp_path / "source", name)
    check_compared(tmp_path / "source", "folder/new.bin")


def test_copies_hold_the_program_alone(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for work in (source / "work", source / "deeper/earlier"):
        (state_in(work) / "tree").mkdir()
    for name in ("a.cu", "decisions.json", "deeper/out.bin", "deeper/b.cu"):
        (source / name).write_text(name)
    (source / "link").symlink_to("a.cu")
    os.mkfifo(source / "fifo")
    here = os.getcwd()
    os.chdir(source)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
    os.chdir(here)
    task = Task("make", "./a", source, source / "work", (), 3, ("deeper/out.bin",), source / "decisions.json")
    copy(source, tmp_path / "copy", task.without)
    found = {str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*")}
    assert found == {"a.cu", "deeper", "deeper/b.cu", "link"}
    first = fingerprint(source, task.without)
    (source / "decisions.json").write_text("other")
    (source / "deeper/out.bin").write_text("other")
    (source / "work/more").touch()
    assert fingerprint(source, task.without) == first
    # A build line that names the decisions reads them.
    reads = replace(task, build="make FLAGS=--ccc-decisions=decisions.json")
    assert fingerprint(source, reads.without) != first
    (source / "a.cu").write_text("longer than it was")
    assert fingerprint(source, task.without) != first


def test_what_cannot_be_copied_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.cu").touch()

    def failing(*_: object, **__: object) -> None:
        raise shutil.Error([(str(tmp_path / "source/a.cu"), "there", "[Errno 13] Permission denied")])

    monkeypatch.setattr(shutil, "copytree", failing)
    with pytest.raises(CccError, match=r"CCC116.*a\.cu` cannot be copied[^$]*Permission denied"):
        copy(tmp_path / "source", tmp_path / "copy", ())


# --- states ---


@pytest.mark.parametrize("built", ["3", '[], "runs": 3', '[], "runs": {"tried": {"plain": [{}]}}'])
def test_other_states_are_none(tmp_path: Path, built: str) -> None:
    (tmp_path / "state.json").write_text(f'{{"tool": "cccopt tune", "key": {{}}, "built": {built}}}')
    assert load(tmp_path, {}) == State({})
    assert is_work_folder(tmp_path)
    (tmp_path / "state.json").write_text("[]")
    assert not is_work_folder(tmp_path)


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = Observed(0, {"k": 2.5}, "Fake GPU", ("hash",))
    state = State({"run": "./a"}, ["plain"], {"tried": {"plain": [run]}})
    state.save(tmp_path)
    assert load(tmp_path, {"run": "./a"}) == state
    assert load(tmp_path, {"run": "./b"}) == State({"run": "./b"})


@pytest.mark.nvcc
def test_what_failed_is_not_kept(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    machine.failing = {PLAIN}
    with pytest.raises(CccError, match="the plain program fails"):
        tuned(task, machine)
    assert machine.runs == [PLAIN]  # known at once
    gate = task.work.parent / "gate"
    gated = replace(task, build=f"case $NVCC_APPEND_FLAGS in *=in-lane*) test -e {gate} ;; esac && {BUILD}")
    assert "in-lane" in tuned(gated, Machine(always=FASTER, decided=FASTER)).left_out
    gate.touch()
    again = Machine(always=FASTER, decided=FASTER)
    assert tuned(gated, again).left_out == {}
    assert len(again.runs) == 4 * 4 + 2 * 4  # all by turns again
    # A build whose tree is gone is made again.
    shutil.rmtree(task.work / DECIDED)
    again = Machine(decided=FASTER)
    assert tuned(gated, again).chosen[0].build == "always"
    assert again.runs == [PLAIN, DECIDED] * 4
    # So is all of it in other circumstances.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert Tuner(gated, lambda _: None).state.built == []


class Moving(Machine):
    def __call__(self, command: str, tree: Path, outputs: Sequence[str]) -> Observed:
        run = super().__call__(command, tree, outputs)
        return replace(run, device="Another GPU") if len(self.runs) > 5 else run


@pytest.mark.nvcc
def test_runs_that_cannot_be_compared(task: Task) -> None:
    with pytest.raises(CccError, match=r"CCC116.*different devices[^$]*`Another GPU` and `Fake GPU`"):
        tuned(task, Moving())


class Untimed(Machine):
    """Builds that leave no times, or none of `walk`."""

    def __init__(self, *none: str, without: str, **speed: Sequence[float]) -> None:
        super().__init__(**speed)
        self.none, self.without = none, without

    def __call__(self, command: str, tree: Path, outputs: Sequence[str]) -> Observed:
        run = super().__call__(command, tree, outputs)
        if tree.parent.name in self.none:
            return replace(run, times={}, device="", untimed="it ran no kernel")
        return replace(run, times={"other": 500.0}) if tree.parent.name == self.without else run


@pytest.mark.nvcc
def test_builds_and_kernels_without_times(task: Task) -> None:
    found = tuned(task, Untimed("in-lane", without=DECIDED, always=FASTER))
    assert found.left_out == {"in-lane": "it has no times: it ran no kernel"}
    (walk,) = found.chosen
    assert (walk.build, walk.tried["always"].is_gain) == ("plain", True)
    shutil.rmtree(task.work)
    assert tuned(task, Untimed(without="auto", always=FASTER)).chosen == ()
    shutil.rmtree(task.work)
    with pytest.raises(CccError, match=r"there are no times for `\./walk`"):
        tuned(task, Untimed(PLAIN, without=""))


# --- builds ---


def test_options_of_the_build_line_do_not_reach_builds() -> None:
    for build in (PLAIN, "auto", "always", "in-lane", DECIDED):
        words = flags_of(build, Path("/builds/file.json"))
        assert words[-2:] == ["--ccc-keep-going", "--ccc-decisions=/builds/file.json"]
        assert ("--ccc-form=auto" in words) == (build != "in-lane")
    assert "--ccc=off" in flags_of(PLAIN, Path("x"))
    assert {"--ccc=always", "--ccc-form=in-lane"} < set(flags_of("in-lane", Path("x")))


@pytest.mark.nvcc
def test_a_build_line_with_options_of_ours_builds_the_same(task: Task, tmp_path: Path) -> None:
    found = tuned(task, Machine(always=FASTER, decided=FASTER))
    plain = found.digests["walk"]
    file = tmp_path / "file.json"
    decisions.write(file, Decisions(kernels={"walk": Decision(plain, "plain", 1.0, 1.0, 1.0)}))
    texts = [(task.work / build / "tree/walk.ptx").read_text() for build in ("always", DECIDED)]
    shutil.rmtree(task.work)
    leaking = replace(task, build=f"{BUILD} --ccc-form=in-lane --ccc-decisions={file}")
    tuned(leaking, Machine(always=FASTER, decided=FASTER))
    again = [(task.work / build / "tree/walk.ptx").read_text() for build in ("always", DECIDED)]
    assert [_code(text) for text in again] == [_code(text) for text in texts]


def _code(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("//")]


@pytest.mark.nvcc
def test_a_build_that_does_not_follow_decisions_is_told(task: Task) -> None:
    # A kernel that is another one in each build.
    changing = f'sed -i "s/k < 40/k < $((RANDOM * 32768 + RANDOM))/" walk.cu; {BUILD}'
    with pytest.raises(CccError, match=r"CCC116.*does not follow them[^$]*`walk` is stale"):
        tuned(replace(task, build=changing), Machine(always=FASTER))
    data = json.loads((task.work / "proposed.json").read_text())
    assert len(data["kernels"]["walk"]["digests"]) == len(task.builds)
