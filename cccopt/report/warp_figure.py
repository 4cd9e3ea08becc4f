"""A drawing of what one warp does: lanes downwards, time to the right, a color for each part of the program.

After the thesis' figures 4.1c and 4.2, but drawn from what a warp really issued on the emulator. One step is one warp
instruction; all panels share the scale, so a shorter one has less to do.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape
from itertools import groupby

from cccopt.ptx.ir import Function, Location, Marker, Module

LANES = 32
_TOP, _LINE, _LANE_HEIGHT, _HEADING = 34, 22, 5, 40
_LETTER, _BOLD_LETTER = 8, 9  # more than the average width of one


class Part(Enum):
    """Which part of the program a step belongs to: its name in the legend and its color."""

    LOOP = ("the loop outside the path", "#6baed6")
    PATH = ("the divergent path", "#e6550d")
    CCC = ("added by CCC", "#636363")


@dataclass(frozen=True, slots=True)
class WarpStep:
    """One warp instruction: the part it belongs to, and bit i of ``mask`` for an active lane i."""

    part: Part
    mask: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The width of a drawing, and where its panels and its text begin."""

    width: int
    left: int
    margin: int


WIDE = Layout(960, 56, 56)
NARROW = Layout(400, 46, 8)
"""For phones, on which the text of a wide drawing is too small to read."""


@dataclass(frozen=True, slots=True)
class Panel:
    """What one warp issued, in order, with a heading."""

    heading: str
    steps: Sequence[WarpStep]


def warp_steps(
    module: Module, steps: Iterable[tuple[str, int, int]], path: Collection[int]
) -> Iterator[WarpStep]:
    """What a warp issued, as `cccopt.emulator.Trace` records it, each instruction with its part of the program.

    Args:
        module: The module that ran, with line information.
        steps: The function, the statement and the mask of active lanes of each instruction.
        path: The CUDA lines of the divergent path.

    Returns:
        The steps of a panel.
    """
    parts = {f.name: _parts(f, path) for f in module.functions() if f.body is not None}
    for function, statement, mask in steps:
        yield WarpStep(parts[function][statement], mask)


def _parts(function: Function, path: Collection[int]) -> list[Part]:
    """The part that each statement belongs to: marked as overhead, on a line of the path, or elsewhere."""
    parts = []
    part, overhead = Part.LOOP, False
    for statement in function.body or ():
        if isinstance(statement, Location):
            part = Part.PATH if statement.line in path else Part.LOOP
        elif isinstance(statement, Marker) and statement.event.startswith("overhead"):
            overhead = statement.event == "overhead.begin"
        parts.append(Part.CCC if overhead else part)
    return parts


def draw(title: str, panels: Sequence[Panel], layout: Layout = WIDE) -> str:
    """Draw panels, one below the other.

    Args:
        title: The heading of the drawing.
        panels: At least one, with at least one step.
        layout: `WIDE` or `NARROW`.

    Returns:
        An SVG document.
    """
    longest = max(len(panel.steps) for panel in panels)
    scale = (layout.width - layout.left - 16) / longest
    heading = textwrap.wrap(title, (layout.width - layout.margin) // _BOLD_LETTER)
    y = _TOP + _LINE * (len(heading) - 1)
    legend = list(_legend(layout, y + len(panels) * (_HEADING + LANES * _LANE_HEIGHT) + 26))
    rows = len({row for row, _ in legend})
    height = y + len(panels) * (_HEADING + LANES * _LANE_HEIGHT) + _LINE * (rows + 1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {layout.width} {height}" '
        'font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{layout.width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, text in enumerate(heading):
        lines.append(
            f'<text x="{layout.margin}" y="{_LINE * (number + 1)}" font-size="16" font-weight="bold">'
            f"{escape(text)}</text>"
        )
    for panel in panels:
        lines += _panel(panel, layout, y, scale)
        y += _HEADING + LANES * _LANE_HEIGHT
    return "\n".join([*lines, *(item for _, item in legend), "</svg>"]) + "\n"


def _panel(panel: Panel, layout: Layout, y: int, scale: float) -> Iterator[str]:
    active = sum(step.mask.bit_count() for step in panel.steps)
    share = 100 * active / (LANES * len(panel.steps))
    says = f"{panel.heading}: {len(panel.steps):,} warp instructions, {share:.0f} % of the lanes active"
    top, left = y + 28, layout.left
    yield f'<text x="{layout.margin}" y="{y + 20}">{escape(says)}</text>'
    yield f'<text x="8" y="{top + 10}" font-size="11">lane 0</text>'
    yield f'<text x="8" y="{top + LANES * _LANE_HEIGHT}" font-size="11">lane 31</text>'
    width = len(panel.steps) * scale
    yield f'<rect x="{left}" y="{top}" width="{width:.2f}" height="{LANES * _LANE_HEIGHT}" fill="#eeeeee"/>'
    for part in Part:
        outline = "".join(_boxes(panel.steps, part, left, top, scale))
        if outline:
            yield f'<path fill="{part.value[1]}" d="{outline}"/>'


def _boxes(steps: Sequence[WarpStep], part: Part, left: int, top: int, scale: float) -> Iterator[str]:
    """A rectangle for each run of equal steps and each run of neighboring active lanes in it."""
    start = 0
    for step, run in groupby(steps):
        length = len(list(run))
        if step.part is part:
            for first, lanes in _runs(step.mask):
                x, y = left + start * scale, top + first * _LANE_HEIGHT
                yield f"M{x:.2f} {y}h{length * scale:.2f}v{lanes * _LANE_HEIGHT}h-{length * scale:.2f}z"
        start += length


def _runs(mask: int) -> Iterator[tuple[int, int]]:
    """(first lane, lanes) of each run of ones."""
    lane = 0
    for active, run in groupby(mask >> i & 1 for i in range(LANES)):
        length = len(list(run))
        if active:
            yield lane, length
        lane += length


def _legend(layout: Layout, y: int) -> Iterator[tuple[int, str]]:
    """The row of each element, and the element."""
    x, row = layout.margin, 0
    for name, colour in (*(part.value for part in Part), ("idle", "#eeeeee")):
        width = _LETTER * len(name)
        if x + 18 + width > layout.width:
            x, row = layout.margin, row + 1
        line = y + _LINE * row
        yield row, f'<rect x="{x}" y="{line - 11}" width="12" height="12" fill="{colour}"/>'
        yield row, f'<text x="{x + 18}" y="{line}">{name}</text>'
        x += 40 + width
