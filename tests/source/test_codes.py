"""Every code that the source modifier uses has a page, and no page is left over."""

from __future__ import annotations

import re
from pathlib import Path


def test_every_code_has_its_page(repository: Path) -> None:
    sources = (repository / "cccopt" / "source").glob("*.py")
    used = {code for file in sources for code in re.findall(r'"(CCC\d+)"', file.read_text())}
    pages = {page.stem for page in (repository / "docs" / "codes").glob("CCC01?.md")}
    assert used - {"CCC043"} == pages  # that one is the passes', too
    for code in used:
        assert (repository / "docs" / "codes" / f"{code}.md").read_text().startswith(f"# {code}: ")
