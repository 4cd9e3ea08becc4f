"""The check of the built site notices what a page loads from elsewhere, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.site_check import complaints


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://elsewhere.example/x.js"></script>',
        '<link rel="stylesheet" href="//elsewhere.example/x.css">',
        '<img src="http://elsewhere.example/x.png">',
        '<source srcset="here.svg 1x, https://elsewhere.example/x.svg 2x">',
        '<p style="background: url(https://elsewhere.example/x.png)">',
        "<style>@import 'https://elsewhere.example/x.css'; a { color: red }</style>",
        '<svg><image xlink:href="https://elsewhere.example/x.png"/></svg>',
        '<pre class="mermaid">graph</pre>',
    ],
)
def test_what_is_loaded_from_elsewhere_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "here.svg").write_text("<svg/>")
    (tmp_path / "page.html").write_text(text)
    (complaint,) = complaints(tmp_path)
    assert complaint.startswith("page.html loads ")
    assert complaint.endswith(" from elsewhere")


def test_fonts_of_style_sheets_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.css").write_text("@font-face { src: url(https://elsewhere.example/f.woff2) }")
    assert list(complaints(tmp_path)) == ["x.css loads https://elsewhere.example/f.woff2 from elsewhere"]


def test_links_to_follow_may_lead_anywhere(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "x y.css").write_text("a { background: url(data:image/png;base64,AA) }")
    (tmp_path / "a/page.html").write_text(
        '<link rel="next" href="https://elsewhere.example"><link rel="stylesheet" href="../x%20y.css?v=1">'
        '<a href="https://elsewhere.example">there</a><svg><use href="#arrow"/></svg><script src="/x y.css"></script>'
    )
    assert list(complaints(tmp_path)) == []


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text('<img src="no.svg">')
    assert list(complaints(tmp_path)) == ["page.html loads no.svg, which is not there"]
