"""The ladder on PTX of several producers, and that each rung can be fallen off."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from cccopt.analysis import effects
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction
from cccopt.ptx.printer import print_module
from tests.corpus import ladder, snapshot
from tests.corpus.build import compiled
from tests.corpus.cases import OPTIONS, SLOW, Case, cases, sources
from tests.corpus.ladder import RUNGS, TEXT_ALONE, climb
from tests.ptx.conftest import tool

# Every source that compiles in half a second, every option and every generation, without all products of them.
NVCC = [
    Case("algorithms", "sm_90", "lineinfo"),
    Case("arithmetic", "sm_75", "O3"),
    Case("assembly", "sm_100", "O3"),
    Case("calls", "sm_80", "O0"),
    Case("calls", "sm_90", "rdc"),
    Case("control", "sm_120", "O3"),
    Case("memory", "sm_89", "rdc"),
    Case("memory", "sm_75", "G"),
    Case("separate", "sm_110", "rdc"),
    Case("specific", "sm_90a", "O3"),
    Case("specific", "sm_100a", "O3"),
    Case("specific", "sm_120f", "O3"),
    Case("tensor", "sm_90", "O3"),
    Case("textures", "sm_86", "O3"),
]

KEPT = {name: text for name, text in snapshot.contents().items() if name.endswith(".ptx")}
# One in four takes the rungs that need ptxas; which, is the name's affair alone.
ASSEMBLED = [name for name in KEPT if zlib.crc32(name.encode()) % 4 == 0]


def check(text: str, rungs: tuple[str, ...] = tuple(RUNGS)) -> None:
    tools = () if set(rungs) <= set(TEXT_ALONE) else (tool("ptxas"),)
    assert not [f"{o.rung}: {o.problem}" for o in climb(text, tools, rungs) if o.problem]


@pytest.mark.nvcc
@pytest.mark.parametrize("case", NVCC, ids=lambda case: case.file)
def test_nvcc(case: Case) -> None:
    check(compiled(tool("nvcc"), case))


@pytest.mark.parametrize("name", sorted(KEPT))
def test_kept_text(name: str) -> None:
    check(KEPT[name], TEXT_ALONE)


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ASSEMBLED)
def test_kept_code(name: str) -> None:
    check(KEPT[name], tuple(rung for rung in RUNGS if rung not in TEXT_ALONE))


# --- the snapshot ---


def test_snapshot_is_small_and_names_its_producers() -> None:
    assert snapshot.FILE.stat().st_size <= snapshot.LIMIT
    for producer in snapshot.PRODUCERS:
        files = [name for name in KEPT if name.startswith(producer)]
        assert len(files) >= 30
        assert re.search(r"\d+\.\d+", snapshot.contents()[f"{producer}/version.txt"])
        assert any(name in ASSEMBLED for name in files)


def test_snapshot_names_no_folder_of_a_machine() -> None:
    for name, text in KEPT.items():
        assert not re.search(r"/(tmp|home|root|usr|work)\b", text), name


def test_snapshot_packs_to_the_same_bytes(tmp_path: Path) -> None:
    for name, text in snapshot.contents().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    snapshot.pack(tmp_path, tmp_path / "again.tar.xz")
    assert (tmp_path / "again.tar.xz").read_bytes() == snapshot.FILE.read_bytes()


# --- the cases ---


def test_every_target_has_several_sources_and_every_source_all_options() -> None:
    archs = ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_100f"]
    made = cases(sources(), archs)
    assert set(NVCC) <= {Case(s, a, o) for s in sources() for a in {c.arch for c in NVCC} for o in OPTIONS}
    for arch in archs:
        assert len({case.source for case in made if case.arch == arch}) >= 5
    for source in sources():
        assert {case.option for case in made if case.source == source} == set(OPTIONS)
        assert len({case.arch for case in made if case.source == source}) >= 2 or source in SLOW


# --- each rung can be fallen off ---

SMALL = """\
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_param_0)
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [k_param_0];
	mov.u32 %r1, %tid.x;
	ld.global.u32 %r2, [%rd1+4];
	setp.lt.s32 %p1, %r1, 7;
	mov.u32 %r3, %r1;
	@%p1 add.s32 %r3, %r2, %r1;
	@%p1 bra L;
	add.s32 %r3, %r3, 5;
	st.global.u32 [%rd1+8], %r1;
L:
	mul.lo.s32 %r4, %r3, %r2;
	st.global.u32 [%rd1], %r4;
	ret;
}
"""


def fallen(text: str = SMALL) -> set[str]:
    return {outcome.rung for outcome in climb(text, (tool("ptxas"),)) if outcome.problem}


@pytest.mark.nvcc
def test_a_text_that_is_right() -> None:
    assert fallen() == set()


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("old", "new", "rungs"),
    [
        (
            "mul.lo.s32 %r4",
            "mul.lo.s32 %r9",
            {"verified", "code", "rebuilt", "renamed", "clobbered"},
        ),
        ("bra L", "bra M", {"verified", "flow", "code", "rebuilt", "renamed", "clobbered"}),
        (
            "mul.lo.s32 %r4, %r3, %r2;",
            "strange.s32 %r4, %r3;",
            set(RUNGS) - {"tokens", "nodes", "verified", "defined", "flow"},
        ),
        ("ret;", "ret", set(RUNGS)),
    ],
)
def test_a_text_that_is_wrong(old: str, new: str, rungs: set[str]) -> None:
    assert old in SMALL
    assert fallen(SMALL.replace(old, new)) == rungs


@pytest.mark.nvcc
def test_a_printer_that_loses_something(monkeypatch: pytest.MonkeyPatch) -> None:
    def lossy(module: object) -> str:
        return print_module(module).replace("+8]", "]")  # type: ignore[arg-type]

    monkeypatch.setattr(ladder, "print_module", lossy)
    assert fallen() >= {"tokens", "nodes", "code", "rebuilt"}


@pytest.mark.nvcc
def test_an_operand_that_no_role_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    real = isa.substitute

    def blind(operand, new):  # type: ignore[no-untyped-def]
        return operand if isinstance(operand, Address) else real(operand, new)

    monkeypatch.setattr(isa, "substitute", blind)
    assert fallen() == {"renamed"}


@pytest.fixture
def forgetful() -> Iterator[None]:
    """What is known of instructions is asked anew, in the test and after it."""
    effects._effects_of.cache_clear()
    yield
    effects._effects_of.cache_clear()


@pytest.mark.nvcc
@pytest.mark.usefixtures("forgetful")
def test_a_read_that_no_role_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    real = isa.reads

    def blind(instruction: Instruction):  # type: ignore[no-untyped-def]
        return () if instruction.base == "mul" else real(instruction)

    monkeypatch.setattr(isa, "reads", blind)
    assert fallen() == {"clobbered"}


@pytest.mark.nvcc
@pytest.mark.usefixtures("forgetful")
def test_a_write_that_no_role_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    real = isa.definitions

    def blind(instruction: Instruction):  # type: ignore[no-untyped-def]
        return () if instruction.opcode == "ld.global.u32" else real(instruction)

    monkeypatch.setattr(isa, "definitions", blind)
    assert fallen() == {"defined"}


@pytest.mark.nvcc
@pytest.mark.usefixtures("forgetful")
def test_a_guarded_write_taken_for_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isa, "is_conditional_write", lambda instruction: False)
    assert fallen() == {"clobbered"}


@pytest.mark.nvcc
def test_a_branch_that_no_edge_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isa, "targets", lambda instruction, body: ())
    tail = "mul.lo.s32 %r4, %r3, %r2;\n\tret;\nM: st.global.u32 [%rd1+12], %r1;"
    text = SMALL.replace("mul.lo.s32 %r4, %r3, %r2;", tail).replace("bra L;", "bra M;")
    assert fallen(text) == {"clobbered"}
