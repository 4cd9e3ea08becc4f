"""Every code that cccopt can print has a page, and every page a code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cccopt.cli.main import main


def codes_in_source(repository: Path) -> set[str]:
    texts = (path.read_text() for path in (repository / "cccopt").rglob("*.py"))
    return {code for text in texts for code in re.findall(r"\bCCC\d{3}\b", text)}


def test_every_code_has_a_page_with_its_title(repository: Path) -> None:
    pages = {path.stem: path.read_text() for path in (repository / "docs/codes").glob("*.md")}
    assert codes_in_source(repository) - pages.keys() == set()
    assert [code for code, text in pages.items() if not text.startswith(f"# {code}: ")] == []


def test_every_page_has_a_code(repository: Path) -> None:
    pages = {path.stem for path in (repository / "docs/codes").glob("*.md")}
    assert pages - codes_in_source(repository) == set()


def test_explain_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "CCC030"]) == 0
    assert capsys.readouterr().out.startswith("# CCC030: ")


def test_an_unknown_code_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "CCC999"]) == 1
    assert "there is no code `CCC999`" in capsys.readouterr().err
