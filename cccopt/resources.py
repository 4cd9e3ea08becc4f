"""Where the grammar, the headers, the samples and the benchmark sets are: in the wheel, or in a source checkout."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def folder(name: str) -> Path:
    """The folder ``name`` (``ptx_grammar``, ``cte_templates``, ``samples`` or ``bench``) of this installation."""
    package = Path(str(files("cccopt")))
    packaged = package / "data" / name
    return packaged if packaged.is_dir() else package.parent / name
