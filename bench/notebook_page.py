"""A notebook as a page in Markdown: its text, its code, and what the code printed and drew."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class NotebookPage:
    """The text of a page, and the drawings (SVG) that it shows, by the names of their files."""

    text: str
    drawings: dict[str, str]


def page(notebook: Path) -> NotebookPage:
    """The page of a notebook, to lie beside its drawings. Raises KeyError for an output that is no text or drawing."""
    drawings: dict[str, str] = {}
    parts: list[str] = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else _fenced("python", source))
        for output in cell.get("outputs", ()):
            drawing = "".join(output.get("data", {}).get("image/svg+xml", ()))
            if drawing:
                name = f"{notebook.stem}-{cell['id']}.svg"
                drawings[name] = drawing
                parts.append(f'<div class="drawing"><img src="{name}" alt="{_title(drawing)}"></div>')
            else:
                parts.append(_fenced("{.text .printed}", _printed(output)))
    return NotebookPage("\n\n".join(parts) + "\n", drawings)


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def _printed(output: Mapping[str, Any]) -> str:
    return "".join(output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"])


def _title(drawing: str) -> str:
    """The title of a drawing as the value of an attribute, which it is escaped for."""
    found = re.search(r"<title>(.*?)</title>", drawing)
    return found[1] if found else ""
