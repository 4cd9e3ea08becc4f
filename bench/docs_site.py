"""Puts the pages of the documentation, and the files that they link to, where mkdocs finds them: `make site`.

They keep their places in the repository, so that links between them hold as they are. A notebook lies there, too, and
beside it the page that it makes, to which links lead instead.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from bench import notebook_page

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build/pages"
TOP = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "samples/README.md",
    "bench/README.md",
    "bench/real/README.md",
)
STYLE = ROOT / "docs/site.css"
LINK = re.compile(r"(?:\]\(|src=\"|srcset=\")([^)\s\"#]+)")
NOTEBOOK_LINK = re.compile(r"(\]\([^)\s]+)\.ipynb\)")


def pages() -> list[Path]:
    """All pages."""
    return [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md"))]


def linked(page: Path) -> Iterator[Path]:
    """The files that a page links to and that are no pages."""
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        file = (page.parent / target).resolve()
        if ":" not in target and file.suffix != ".md" and file.is_file() and file.is_relative_to(ROOT):
            yield file


def notebooks() -> list[Path]:
    """All notebooks."""
    return sorted((ROOT / "docs").glob("*.ipynb"))


def main() -> None:
    """Fill the folder anew."""
    shutil.rmtree(PAGES, ignore_errors=True)
    found = pages()
    for file in dict.fromkeys(
        [*found, *notebooks(), STYLE, *(file for page in found for file in linked(page))]
    ):
        copy = PAGES / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        if file in found:
            text = copy.read_text(encoding="utf-8")
            copy.write_text(NOTEBOOK_LINK.sub(r"\1.md)", text), encoding="utf-8")
    for notebook in notebooks():
        made = notebook_page.page(notebook)
        beside = (PAGES / notebook.relative_to(ROOT)).parent
        (beside / f"{notebook.stem}.md").write_text(made.text, encoding="utf-8")
        for name, drawing in made.drawings.items():
            (beside / name).write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
