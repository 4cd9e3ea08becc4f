"""Runs the notebook and stores what it shows: ``python -m bench.notebook``, after a change to it or to the rewrite."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "docs/first-look.ipynb"


def executed(file: Path) -> Any:
    """The notebook in a file as it is after a run in an empty folder.

    Raises CellExecutionError for a cell that fails.
    """
    notebook = nbformat.read(file, as_version=4)
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        client = NotebookClient(
            notebook,
            timeout=300,
            record_timing=False,  # or each run would store other times
            coalesce_streams=True,  # or a slow run would store a text in parts
            resources={"metadata": {"path": folder}},
        )
        client.execute(env={**os.environ, "PYTHONPATH": path})
    return notebook


def main() -> None:
    """Store the outputs; what the notebook says of the Python that ran it stays as it was."""
    metadata = nbformat.read(NOTEBOOK, as_version=4).metadata
    notebook = executed(NOTEBOOK)
    notebook.metadata = metadata
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    main()
