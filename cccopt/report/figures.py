"""Figures of ``cccopt bench sensitivity``, after 4.14 and 4.15 of F. Khorasani's thesis (extra ``figures``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from cccopt.files import make_folder
from cccopt.harness.choices import BuildName
from cccopt.harness.libraries import library
from cccopt.harness.sweep import BUILDS, SweepPoint

Group = TypeVar("Group")

LENGTH = 20
"""Multiply-adds in the path of the figure over lanes, as in the thesis."""

LANES = (8, 24)
"""Lanes that take the path in the figure over lengths: a quarter and three quarters, as in the thesis."""

_STYLES: dict[str, str] = {
    BuildName.PLAIN: "o-k",
    BuildName.ALWAYS: "s-C1",
    BuildName.AUTO: "^--C0",
    BuildName.HANDWRITTEN: "x:C2",
}


def draw(points: Sequence[SweepPoint], title: str, folder: Path) -> tuple[Path, Path]:
    """Write both figures as SVG files into ``folder`` and return them.

    Raises `CccError` (CCC092) without matplotlib.
    """
    lanes, lengths = folder / "sensitivity-lanes.svg", folder / "sensitivity-lengths.svg"
    save({lanes: lambda: _over_lanes(points, title), lengths: lambda: _over_lengths(points, title)})
    return lanes, lengths


def save(figures: Mapping[Path, Callable[[], Any]]) -> None:
    """Draw the figures and write them as SVG files, into folders that are created if needed. Raises `CccError` (CCC092)
    without matplotlib.
    """
    # Without dates and random names, the same data give the same file.
    with module("matplotlib").rc_context({"svg.hashsalt": "cccopt", "svg.fonttype": "none"}):
        for path, figure in figures.items():
            make_folder(path.parent)
            figure().savefig(path, metadata={"Date": None})


def require_drawing(folder: Path) -> None:
    """Check that figures can be drawn into ``folder``, before measuring what they show. Raises `CccError` (CCC092)
    without matplotlib, and (CCC086) if the folder cannot be created.
    """
    module("matplotlib")
    make_folder(folder)


def module(name: str) -> Any:
    """A module of matplotlib; not pyplot, which would look for a display."""
    return library(name, "draw figures", "figures", ", or leave out `--figures`")


def _figure(title: str, panels: int) -> tuple[Any, Any]:
    figure = module("matplotlib.figure").Figure(figsize=(5 * panels, 4), layout="constrained")
    figure.suptitle(title)
    return figure, figure.subplots(1, panels)


def _over_lanes(points: Sequence[SweepPoint], title: str) -> Any:
    """Cost and warp efficiency against the number of lanes that take a path of `LENGTH`."""
    figure, (cost, efficiency) = _figure(f"{title}: a path of {LENGTH} multiply-adds", 2)
    for build in BUILDS:
        here = [p for p in points if p.build == build and p.length == LENGTH]
        costs = [(p.lanes, value) for p in here if (value := _cost(p)) is not None]
        shares = [(p.lanes, 100 * p.counts.warp_efficiency) for p in here if p.counts is not None]
        _line(cost, costs, build)
        _line(efficiency, shares, build)
    cost.set_ylabel("milliseconds" if _timed(points) else "warp instructions (emulator)")
    efficiency.set_ylabel("warp execution efficiency, % (emulator)")
    cost.set_ylim(bottom=0)
    efficiency.set_ylim(0, 100)
    for axes in (cost, efficiency):
        axes.set_xlabel("lanes of 32 that take the path")
        _legend(axes)
    return figure


def _over_lengths(points: Sequence[SweepPoint], title: str) -> Any:
    """Speedup over plain nvcc against the path's length, for each of `LANES`."""
    figure, panels = _figure(title, len(LANES))
    timed = _timed(points)
    for axes, lanes in zip(panels, LANES, strict=True):
        for build in BUILDS:
            here = [p for p in points if p.build == build != BuildName.PLAIN and p.lanes == lanes]
            _line(axes, [(p.length, p.speedup) for p in here if p.speedup is not None], build)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.axhline(32 / lanes, color="grey", linewidth=0.8, linestyle="--")
        axes.set_title(f"{lanes} of 32 lanes take the path (dashed: 32/{lanes})")
        axes.set_xscale("log")
        axes.set_xlabel("multiply-adds in the path")
        axes.set_ylabel(
            "speedup over plain nvcc" if timed else "warp instructions, plain over build (emulator)"
        )
        _legend(axes)
    return figure


def _legend(axes: Any) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend()


def _line(axes: Any, line: Sequence[tuple[float, float]], build: str) -> None:
    if line:
        axes.plot(*zip(*line, strict=True), _STYLES[build], label=build)


def _timed(points: Sequence[SweepPoint]) -> bool:
    return any(p.milliseconds is not None for p in points)


def _cost(point: SweepPoint) -> float | None:
    if point.milliseconds is not None:
        return point.milliseconds
    return float(point.counts.warp_instructions) if point.counts is not None else None


def bars(
    axes: Any,
    groups: Sequence[Group],
    builds: Sequence[str],
    value: Callable[[Group, str], float | None],
    all_builds: Sequence[str],
) -> None:
    """Draw a bar for each of ``builds`` in each group, if it has a value. A build has the same color in all panels."""
    colours = module("matplotlib").colormaps["tab20"]
    breadth = 0.85 / max(len(builds), 1)
    for number, build in enumerate(builds):
        shift = (number - (len(builds) - 1) / 2) * breadth
        found = [(x + shift, height) for x, group in enumerate(groups) if (height := value(group, build))]
        if found:
            places, heights = zip(*found, strict=True)
            colour = colours(all_builds.index(build) % 20)
            axes.bar(places, heights, breadth, color=colour, label=build)


def legend(figure: Any, panels: Sequence[Any], builds: Sequence[str]) -> None:
    """Draw a legend of the bars in ``panels`` beside them, with each build once."""
    drawn = {
        name: bar for axes in panels for bar, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    labels = [build for build in builds if build in drawn]
    if labels:
        figure.legend(
            [drawn[build] for build in labels], labels, loc="outside right center", fontsize="small"
        )
