"""The notebook runs, what it shows is what a run gives, and its page in the documentation has all of it."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from bench.notebook import NOTEBOOK, executed
from bench.notebook_page import page
from cccopt.toolchain.discovery import find_nvcc


def cells(notebook: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return found


def shown(cell: dict[str, Any]) -> list[Any]:
    """What a code cell shows, lines of one text joined, without the numbers of executions."""

    def joined(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: joined(item) for key, item in value.items() if key != "execution_count"}
        return "".join(value) if isinstance(value, list) else value

    return [joined(output) for output in cell.get("outputs", ())]


@pytest.mark.nvcc
def test_what_it_shows_is_what_a_run_gives() -> None:
    ran = executed(NOTEBOOK)
    if find_nvcc().version != "13.0.88":
        pytest.skip("it shows the figures of nvcc 13.0.88")
    assert [shown(cell) for cell in ran.cells] == [shown(cell) for cell in cells(NOTEBOOK)]


def test_it_shows_text_and_a_drawing_and_names_no_folder_of_a_machine() -> None:
    outputs = [output for cell in cells(NOTEBOOK) for output in shown(cell)]
    assert {output["output_type"] for output in outputs} == {"stream", "execute_result"}
    assert {output.get("name", "stdout") for output in outputs} == {"stdout"}
    text = json.dumps(outputs)
    assert "<svg" in text
    for folder in (tempfile.gettempdir(), str(Path.home()), str(NOTEBOOK.parents[1])):
        assert folder not in text


def test_its_page_has_text_code_and_what_was_shown(tmp_path: Path) -> None:
    made = page(NOTEBOOK)
    for cell in cells(NOTEBOOK):
        assert "".join(cell["source"]).rstrip() in made.text
        for output in shown(cell):
            assert output.get("text", "").rstrip() in made.text
    (name,) = re.findall(r'<img src="([^"]+)" alt="One warp at level 3">', made.text)
    assert made.drawings[name].startswith("<svg ")


def test_an_output_without_text_is_no_page(tmp_path: Path) -> None:
    picture = {"output_type": "display_data", "data": {"image/png": "AA"}, "metadata": {}}
    cell = {"cell_type": "code", "id": "a", "source": [], "outputs": [picture]}
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": [cell]}))
    with pytest.raises(KeyError):
        page(tmp_path / "n.ipynb")
