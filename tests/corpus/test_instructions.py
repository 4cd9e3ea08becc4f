"""Every row of the instruction table in front of ptxas: taken, as old as the row says, refused where we refuse."""

from __future__ import annotations

import re
from collections import defaultdict
from zlib import crc32

import pytest

from cccopt.ptx.errors import PtxError
from cccopt.ptx.ir import Instruction, Register
from cccopt.ptx.isa import definitions, facts, reads, rename
from cccopt.ptx.isa_rows import introduced, row_of
from cccopt.ptx.isa_table import ROWS, Row
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module, print_statement
from cccopt.ptx.special import SPECIAL_TYPES
from cccopt.ptx.verifier import verify
from tests.corpus.instructions import GAPS, Sample, coverage, instruction, module, refusals, samples, verdicts
from tests.ptx.tokens import tokens

VERSIONS = [
    f"{major}.{minor}" for major, newest in ((6, 5), (7, 8), (8, 8), (9, 0)) for minor in range(newest + 1)
][3:]
FIRST = {
    "sm_75": "6.3", "sm_80": "7.0", "sm_86": "7.1", "sm_89": "7.8", "sm_90": "7.8", "sm_90a": "8.0",
    "sm_100": "8.6", "sm_100a": "8.6", "sm_103a": "8.8", "sm_120a": "8.7",
}  # fmt: skip
"""The PTX version that brought each target."""
BELOW = {"sm_80": "sm_75", "sm_90": "sm_89", "sm_90a": "sm_90", "sm_100": "sm_90", "sm_100a": "sm_100"}
BELOW |= {"sm_120a": "sm_120"}


def by_row() -> dict[Row, list[Sample]]:
    """The samples of each row, for plain targets."""
    rows: dict[Row, list[Sample]] = defaultdict(list)
    for sample in samples():
        row = row_of(instruction(sample).opcode, len(instruction(sample).operands))
        assert row is not None, sample
        if sample.target in FIRST:
            rows[row].append(sample)
    return rows


def test_every_sample_is_known_verifies_and_prints_as_it_is() -> None:
    for sample in samples():
        text, _ = module([sample.text], sample.target)
        parsed = parse(text)
        assert facts(instruction(sample)).known, sample
        verify(parsed, sample.text)
        printed = print_module(parsed)
        assert tokens(printed) == tokens(text)
        assert parse(printed) == parsed


@pytest.mark.nvcc
def test_ptxas_takes_an_instruction_of_every_row() -> None:
    told = verdicts(samples())
    assert {sample: message for sample, message in told.items() if message} == {}
    uncovered = {row.opcode for row, mine in coverage(told).items() if not mine}
    assert uncovered == set(GAPS)


@pytest.mark.nvcc
def test_ptxas_knows_a_row_from_its_version_on() -> None:
    """The version before takes none of a row's samples, its own takes one; older rows are out of ptxas' reach."""
    rows = by_row()
    for version in VERSIONS[1:]:
        mine = {row: found for row, found in rows.items() if row.since.partition(" ")[0] == version}
        for target in FIRST:
            before = VERSIONS[VERSIONS.index(version) - 1]
            lines = [(row, s.text) for row, found in mine.items() for s in found if s.target == target]
            texts = [text for _, text in lines]
            if texts and VERSIONS.index(before) >= VERSIONS.index(FIRST[target]):
                assert set(refusals(texts, target, before)) == set(range(len(texts))), (before, target)
        for row, found in mine.items():
            targets = {s.target for s in found if VERSIONS.index(FIRST[s.target]) <= VERSIONS.index(version)}
            taken = 0
            for target in targets:
                texts = [s.text for s in found if s.target == target]
                taken += len(texts) - len(refusals(texts, target, version))
            assert taken > 0, row


@pytest.mark.nvcc
@pytest.mark.parametrize(("target", "below"), BELOW.items())
def test_ptxas_refuses_a_row_below_its_target(target: str, below: str) -> None:
    texts = [s.text for row, found in by_row().items() if row.since.endswith(f" {target}") for s in found]
    assert texts
    assert set(refusals(texts, below)) == set(range(len(texts)))


def test_introduced() -> None:
    assert introduced(Instruction("redux.sync.add.s32", instruction(samples()[0]).operands)) == (
        "7.0",
        "sm_80",
    )
    assert introduced(Instruction("exit")) == ("1.0", "")
    assert introduced(Instruction("frobnicate")) is None
    for row in (row for family in ROWS.values() for row in family):
        version, _, target = row.since.partition(" ")
        assert version in VERSIONS or VERSIONS[0] > version
        assert target.startswith("sm_") or not target


@pytest.mark.nvcc
def test_a_wrong_sample_would_be_seen() -> None:
    wrong = [Sample("add.s32 %r0, %r1, %rd2", "sm_75"), Sample("wgmma.fence.sync.aligned", "sm_90")]
    right = Sample("add.s32 %r0, %r1, %r2", "sm_75")
    told = verdicts([*wrong, right])
    assert all(told[sample] for sample in wrong)
    assert not told[right]


WRONG = {"%p": "%p7", "%h": "%h7", "%r": "%r7", "%rd": "%rd7", "%q": "%q7", "%f": "%f7", "%fd": "%fd7"}
"""A register of each kind, by the letters of its kind."""


LAX = re.compile(
    r"\{.*%p7.*\}|^(fence|tcgen05)\..*\[%(p|f|fd)7\]|ue8m0x2\.bf16x2 .*%p7|^(sured\.p.*%fd7|mma\.sp.*, %p7)"
)
"""What ptxas takes against the ISA: predicates as packed numbers, metadata and in vectors, floats as some addresses."""


def mutants() -> dict[str, list[str]]:
    """Samples with one register in the place of one of another kind, by target; a tenth of what there is."""
    found: dict[str, list[str]] = defaultdict(list)
    for sample in samples():
        for old in dict.fromkeys(re.findall(r"%[a-z]+\d+", sample.text.partition(" ")[2])):
            for kind, new in WRONG.items():
                mutant = re.sub(rf"{old}\b", new, sample.text)
                # A checksum, so that a new sample does not move the choice among the others.
                if kind != old.rstrip("0123456789") and crc32(mutant.encode()) % 10 == 0:
                    found[sample.target].append(mutant)
    return found


def refused_here(line: str, target: str) -> bool:
    text, _ = module([line], target)
    try:
        verify(parse(text))
    except PtxError:
        return True
    return False


@pytest.mark.nvcc
def test_the_verifier_agrees_with_ptxas_on_wrong_registers() -> None:
    """What we refuse ptxas refuses, but for what it should not take; of what it refuses we see most."""
    wrong, seen, too_strict = 0, 0, []
    for target, lines in mutants().items():
        said = refusals(lines, target)
        assert -1 not in said
        for index, line in enumerate(lines):
            ours = refused_here(line, target)
            wrong += index in said
            seen += ours and index in said
            if ours and index not in said:
                too_strict.append(line)
    assert [line for line in too_strict if not LAX.search(line)] == []
    assert wrong > 500
    assert seen > 0.85 * wrong


def test_every_register_is_read_or_written_and_can_be_renamed() -> None:
    for sample in samples():
        node = instruction(sample)
        named = set(re.findall(r"%[a-z]+\d+|\bv4\b", sample.text.replace(node.opcode, ""))) - set(
            SPECIAL_TYPES
        )
        told = {r.name for r in (*reads(node), *definitions(node))}
        assert {name for name in told if name not in SPECIAL_TYPES} == named, sample
        fresh = {name: Register(f"%new_{name.lstrip('%')}") for name in named}
        text = print_statement(rename(node, fresh, fresh))
        assert set(re.findall(r"%new_\w+", text)) == {register.name for register in fresh.values()}
