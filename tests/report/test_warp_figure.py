"""The drawing covers exactly the active lanes, each once, in the colour of its part."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cccopt.ptx.ir import Instruction
from cccopt.ptx.parser import parse
from cccopt.report.warp_figure import LANES, NARROW, WIDE, Layout, Panel, Part, WarpStep, draw, warp_steps

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


@pytest.mark.parametrize("layout", [WIDE, NARROW])
def test_nothing_reaches_over_the_edges(layout: Layout) -> None:
    steps = [WarpStep(Part.LOOP, 1)] * 12345
    document = draw(" ".join(["word"] * 30), [Panel("before", steps), Panel("after", steps)], layout)
    root = ElementTree.fromstring(document)
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    assert width == layout.width
    for rectangle in root.iter(f"{SVG}rect"):
        assert float(rectangle.get("x", 0)) + float(rectangle.attrib["width"]) <= width
        assert float(rectangle.get("y", 0)) + float(rectangle.attrib["height"]) <= height
    for text in root.iter(f"{SVG}text"):
        # Letters of a sans-serif font are half as wide as high on average, or a little less.
        letter = 0.5 * int(text.get("font-size", root.attrib["font-size"]))
        assert float(text.attrib["x"]) + letter * len(text.text or "") <= width
        assert float(text.attrib["y"]) < height


def test_steps_have_the_part_of_their_line() -> None:
    module = parse(
        """.version 9.0
.target sm_90
.address_size 64
.file 1 "k.cu"
.visible .entry k()
{
	.reg .b32 %r<2>;
	.loc 1 3 1
	mov.u32 %r1, 1;
	.loc 1 4 1
	mov.u32 %r1, 2;
	// ccc overhead.begin 1
	mov.u32 %r1, 3;
	// ccc overhead.end 1
	mov.u32 %r1, 4;
	ret;
}
"""
    )
    (kernel,) = module.functions()
    issued = [("k", number, 7) for number, s in enumerate(kernel.body or ()) if isinstance(s, Instruction)]
    parts = [Part.LOOP, Part.PATH, Part.CCC, Part.PATH, Part.PATH]
    assert list(warp_steps(module, issued, {4})) == [WarpStep(part, 7) for part in parts]


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
