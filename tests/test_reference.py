"""The API reference: it names what the guides import and what `cccopt` exports, and docstrings name all arguments."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cccopt

DOCS = Path(__file__).resolve().parent.parent / "docs"
ENTRIES = re.findall(r"^::: ([\w.]+)$", (DOCS / "reference.md").read_text(encoding="utf-8"), re.MULTILINE)
GUIDES = ("python.md", "profile.md", "user-guide.md")


def found(entry: str) -> object:
    """What an entry names."""
    module, _, name = entry.rpartition(".")
    return getattr(importlib.import_module(module), name)


def imported(guide: str) -> Iterator[object]:
    """What the snippets of a guide import from modules of cccopt."""
    text = (DOCS / guide).read_text(encoding="utf-8")
    for snippet in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for node in ast.walk(ast.parse(snippet)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cccopt"):
                yield from (found(f"{node.module}.{name.name}") for name in node.names)


def undescribed(function: Callable[..., object]) -> set[str]:
    """The parameters of a function that its docstring does not name."""
    names = inspect.signature(function).parameters
    return {name for name in names if not re.search(rf"``{name}``|^ +{name}: ", function.__doc__ or "", re.M)}


def test_every_export_has_an_entry() -> None:
    exported = {f"cccopt.{name}" for name in cccopt.__all__ if name != "__version__"}
    assert exported - set(ENTRIES) == set()


@pytest.mark.parametrize("guide", GUIDES)
def test_what_guides_import_has_an_entry(guide: str) -> None:
    values = list(imported(guide))
    known = [found(entry) for entry in ENTRIES]
    assert values
    assert [value for value in values if value not in known] == []


@pytest.mark.parametrize("entry", ENTRIES)
def test_docstrings_name_all_arguments(entry: str) -> None:
    value = found(entry)
    assert value.__doc__
    if inspect.isfunction(value):
        assert undescribed(value) == set()
        # Where arguments have a section, so does what comes back.
        assert ("Args:" in value.__doc__) == ("Returns:" in value.__doc__)


def test_an_argument_without_a_word_is_noticed() -> None:
    def function(told: int, untold: int) -> None:
        """Does something with ``told``."""

    assert undescribed(function) == {"untold"}
