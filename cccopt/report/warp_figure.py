"""A drawing of what one warp does: lanes downwards, time to the right, a colour for each part of the program.

After the thesis' figures 4.1c and 4.2, but drawn from what a warp of the emulator really issued. One step is
one warp instruction; both panels share the scale, so the shorter one has less to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape
from itertools import groupby

LANES = 32
_WIDTH, _LEFT, _TOP, _LANE_HEIGHT, _HEADING = 960, 56, 34, 5, 40


class Part(Enum):
    """Whose instruction a step is: its name in the legend and its colour."""

    LOOP = ("the loop outside the path", "#6baed6")
    PATH = ("the divergent path", "#e6550d")
    CCC = ("added by CCC", "#636363")


@dataclass(frozen=True, slots=True)
class WarpStep:
    """One warp instruction: the part it belongs to, and bit i of ``mask`` for an active lane i."""

    part: Part
    mask: int


@dataclass(frozen=True, slots=True)
class Panel:
    """What one warp issued, in order, with a heading."""

    heading: str
    steps: Sequence[WarpStep]


def draw(title: str, panels: Sequence[Panel]) -> str:
    """The panels under one another as an SVG document."""
    longest = max(len(panel.steps) for panel in panels)
    scale = (_WIDTH - _LEFT - 16) / longest
    height = _TOP + len(panels) * (_HEADING + LANES * _LANE_HEIGHT) + 44
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="22" font-size="16" font-weight="bold">{escape(title)}</text>',
    ]
    y = _TOP
    for panel in panels:
        lines += _panel(panel, y, scale)
        y += _HEADING + LANES * _LANE_HEIGHT
    lines += _legend(y + 26)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(panel: Panel, y: int, scale: float) -> Iterator[str]:
    active = sum(step.mask.bit_count() for step in panel.steps)
    share = 100 * active / (LANES * len(panel.steps))
    says = f"{panel.heading}: {len(panel.steps):,} warp instructions, {share:.0f} % of the lanes active"
    top = y + 28
    yield f'<text x="{_LEFT}" y="{y + 20}">{escape(says)}</text>'
    yield f'<text x="8" y="{top + 10}" font-size="11">lane 0</text>'
    yield f'<text x="8" y="{top + LANES * _LANE_HEIGHT}" font-size="11">lane 31</text>'
    width = len(panel.steps) * scale
    yield f'<rect x="{_LEFT}" y="{top}" width="{width:.2f}" height="{LANES * _LANE_HEIGHT}" fill="#eeeeee"/>'
    for part in Part:
        outline = "".join(_boxes(panel.steps, part, top, scale))
        if outline:
            yield f'<path fill="{part.value[1]}" d="{outline}"/>'


def _boxes(steps: Sequence[WarpStep], part: Part, top: int, scale: float) -> Iterator[str]:
    """A rectangle for each run of like steps and each run of neighbouring active lanes in it."""
    start = 0
    for step, run in groupby(steps):
        length = len(list(run))
        if step.part is part:
            for first, lanes in _runs(step.mask):
                x, y = _LEFT + start * scale, top + first * _LANE_HEIGHT
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


def _legend(y: int) -> Iterator[str]:
    x = _LEFT
    for name, colour in (*(part.value for part in Part), ("idle", "#eeeeee")):
        yield f'<rect x="{x}" y="{y - 11}" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{x + 18}" y="{y}">{name}</text>'
        x += 40 + 8 * len(name)
