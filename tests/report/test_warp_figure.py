"""The drawing covers exactly the active lanes, each once, in the colour of its part."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from hypothesis import given
from hypothesis import strategies as st

from cccopt.report.warp_figure import LANES, Panel, Part, WarpStep, draw

SVG = "{http://www.w3.org/2000/svg}"
BOX = re.compile(r"M([\d.]+) (\d+)h([\d.]+)v(\d+)h-[\d.]+z")
STEPS = st.lists(
    st.builds(WarpStep, st.sampled_from(list(Part)), st.integers(0, 2**LANES - 1)), min_size=1, max_size=12
)


def areas(document: str) -> dict[str, float]:
    """The area that each colour's paths cover."""
    root = ElementTree.fromstring(document)
    covered: dict[str, float] = {}
    for path in root.iter(f"{SVG}path"):
        boxes = BOX.findall(path.attrib["d"])
        assert "".join(f"M{a} {b}h{c}v{d}h-{c}z" for a, b, c, d in boxes) == path.attrib["d"]
        covered[path.attrib["fill"]] = sum(float(w) * float(h) for _, _, w, h in boxes)
    return covered


@given(STEPS)
def test_area_is_active_lanes_times_time(steps: list[WarpStep]) -> None:
    document = draw("a warp", [Panel("before", steps)])
    covered = areas(document)
    cell = (960 - 56 - 16) / len(steps) * 5
    for part in Part:
        lanes = sum(step.mask.bit_count() for step in steps if step.part is part)
        # Widths are printed with two decimals.
        assert abs(covered.get(part.value[1], 0.0) - lanes * cell) <= 0.005 * 5 * LANES * len(steps)


def test_panels_share_their_scale_and_say_what_they_show() -> None:
    busy = [WarpStep(Part.PATH, 2**LANES - 1)] * 2
    idle = [WarpStep(Part.LOOP, 1)] * 8
    document = draw("x < y", [Panel("before", idle), Panel("after", busy)])
    root = ElementTree.fromstring(document)
    said = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert "x < y" in said
    assert "before: 8 warp instructions, 3 % of the lanes active" in said
    assert "after: 2 warp instructions, 100 % of the lanes active" in said
    covered = areas(document)
    assert abs(covered[Part.PATH.value[1]] / covered[Part.LOOP.value[1]] - 2 * 32 / 8) < 0.01
