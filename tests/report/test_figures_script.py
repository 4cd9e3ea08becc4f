"""The documentation's figures can be drawn anew, and show what they claim."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cccopt.toolchain.discovery import find_nvcc


@pytest.mark.nvcc
def test_the_figure_shows_fewer_and_fuller_instructions_after(tmp_path: Path, repository: Path) -> None:
    subprocess.run([sys.executable, repository / "bench" / "figures.py", tmp_path], check=True)
    document = (tmp_path / "warp.svg").read_text(encoding="utf-8")
    said = re.findall(r"(before|after): ([\d,]+) warp instructions, (\d+) % of the lanes active", document)
    (_, before, share_before), (_, after, share_after) = said
    assert int(after.replace(",", "")) < int(before.replace(",", ""))
    assert int(share_after) > 90 > 60 > int(share_before)
    colours = re.findall(r'<path fill="(#\w+)"', document)
    # Nothing is added by CCC in the first panel.
    assert colours == ["#6baed6", "#e6550d", "#6baed6", "#e6550d", "#636363"]
    if find_nvcc().version == "13.0.88":
        for figure in ("warp.svg", "warp-narrow.svg"):
            assert (tmp_path / figure).read_text() == (repository / "docs/figures" / figure).read_text(), (
                figure
            )
