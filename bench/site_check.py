"""Says what the built site loads from elsewhere, and what it loads that is not there: ``python -m bench.site_check``.

Links that a reader follows may lead anywhere; mkdocs checks those within the site.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SITE = Path(__file__).resolve().parents[1] / "build/site"
LOADED = {"src", "poster", "data", "background", "xlink:href"}
"""Attributes whose targets a browser loads unasked. ``href`` is one, too, but of these:"""
FOLLOWED = {"a", "area", "base"}
NAMED = {"canonical", "next", "prev", "alternate"}
"""Relations of a ``<link>`` that only name a page."""
IN_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class _Page(HTMLParser):
    """Collects what a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._in_style = tag == "style"
        self.loaded += [value for name, value in given.items() if name in LOADED]
        self.loaded += [candidate.split()[0] for candidate in given.get("srcset", "").split(",") if candidate]
        self.loaded += in_style(given.get("style", ""))
        if tag not in FOLLOWED and given.get("rel") not in NAMED and "href" in given:
            self.loaded.append(given["href"])
        # The theme's script fetches what draws such an element from a server.
        if "mermaid" in given.get("class", "").split():
            self.loaded.append("https://mermaid")

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.loaded += in_style(data)


def in_style(text: str) -> list[str]:
    """What a style sheet loads."""
    return [first or second for first, second in IN_STYLE.findall(text)]


def loaded(file: Path) -> list[str]:
    """What a page, a drawing or a style sheet loads, each once."""
    text = file.read_text(encoding="utf-8")
    page = _Page()
    page.loaded = in_style(text) if file.suffix == ".css" else []
    if file.suffix != ".css":
        page.feed(text)
    return list(dict.fromkeys(page.loaded))


def complaints(site: Path) -> Iterator[str]:
    """What files of the site load from elsewhere, and what they load that is not there."""
    for file in sorted(file for file in site.rglob("*") if file.suffix in (".html", ".css", ".svg")):
        for target in loaded(file):
            parts = urlsplit(target)
            if parts.scheme == "data" or not (parts.scheme or parts.netloc or parts.path):
                continue
            # The page for errors is shown anywhere, so it names its parts from the top.
            folder = site if parts.path.startswith("/") else file.parent
            if parts.scheme or parts.netloc:
                yield f"{file.relative_to(site)} loads {target} from elsewhere"
            elif not (folder / unquote(parts.path).lstrip("/")).is_file():
                yield f"{file.relative_to(site)} loads {target}, which is not there"


def main() -> int:
    """Print what is wrong; the exit status is 1 if anything is."""
    found = list(complaints(SITE))
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
