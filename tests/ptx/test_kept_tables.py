"""The parser's tables on disk: the same parser, whatever is found there."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cccopt.ptx import parser
from cccopt.ptx.errors import PtxError
from tests.ptx.conftest import HERE

FEATURES = (HERE / "features.ptx").read_text()
WRONG = ".version 8.0\n.target sm_90\n.entry k () {\nadd.s32 %r1, 4\n}\n"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test makes its parsers anew, and leaves none."""
    monkeypatch.setattr(parser, "_tables", None)
    parser._parser.cache_clear()
    yield
    parser._parser.cache_clear()


def parse_with(tables: Path) -> tuple[object, str]:
    """A module and an error's text, by a new parser."""
    parser._parser.cache_clear()
    parser.keep_tables(tables)
    module = parser.parse(FEATURES)
    with pytest.raises(PtxError) as caught:
        parser.parse(WRONG)
    return module, str(caught.value)


def test_tables_from_disk_parse_as_new_ones_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = parse_with(tmp_path / "tables")
    assert made[0] == _without_tables()
    monkeypatch.setattr("lark.lark.load_grammar", None)  # nothing makes tables any more
    assert parse_with(tmp_path / "tables") == made


@pytest.mark.parametrize("keep", [0, 1, 100, 20_000, -1])
def test_damaged_tables_are_made_again(tmp_path: Path, keep: int) -> None:
    tables = tmp_path / "tables"
    made = parse_with(tables)
    whole = tables.read_bytes()
    tables.write_bytes(whole[:keep])
    assert parse_with(tables) == made
    assert tables.stat().st_size > len(whole) * 0.9


def test_tables_of_another_grammar_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = tmp_path / "ptx.lark"
    grammar.write_text('start: "a"\n%ignore " "\n')
    monkeypatch.setattr(parser, "folder", lambda name: tmp_path)
    parser.keep_tables(tmp_path / "tables")
    parser._parser()
    monkeypatch.undo()
    assert parse_with(tmp_path / "tables")[0] == _without_tables()


@pytest.mark.parametrize("tables", ["absent/tables", "folder"])
def test_a_place_that_takes_no_tables_is_no_error(tmp_path: Path, tables: str) -> None:
    (tmp_path / "folder").mkdir()
    assert parse_with(tmp_path / tables)[0] == _without_tables()


def test_many_programs_at_once_share_one_file(tmp_path: Path) -> None:
    code = (
        "import sys; from cccopt.ptx.parser import keep_tables, parse; keep_tables(sys.argv[1]);"
        "print(hash(repr(parse(open(sys.argv[2]).read()))))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "tables"), str(HERE / "features.ptx")]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    found: list[str] = []

    def program() -> None:
        found.append(
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        )

    threads = [threading.Thread(target=program) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1


def _without_tables() -> object:
    parser._parser.cache_clear()
    parser._tables = None
    return parser.parse(FEATURES)
