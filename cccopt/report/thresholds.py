"""Kernels whose warp efficiency is below a threshold, as errors at their worst lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cccopt.diagnostic import Diagnostic, error
from cccopt.profiling.run_file import LANES, FunctionRun
from cccopt.report.profile_view import SourceView, efficiency, efficiency_text, percent, worst_lines
from cccopt.text import Place, Position


@dataclass(frozen=True, slots=True)
class Threshold:
    """The least ``efficiency``, 0 to 1, that the kernels with the name ``kernel`` may have: their name in PTX, or as
    shown, with or without parameters.
    """

    kernel: str
    efficiency: float

    def means(self, function: FunctionRun) -> bool:
        """Whether the threshold applies to this function."""
        return self.kernel in (function.name, function.shown, function.shown.partition("(")[0])


def missed(view: SourceView, thresholds: Sequence[Threshold]) -> Iterator[Diagnostic]:
    """An error (CCC119) for each kernel below its threshold, and for each threshold without a kernel that was counted.

    A sample counts as below its threshold only if its whole interval is.
    """
    counted = [function for function in view.run.functions if function.warps]
    for threshold in thresholds:
        meant = [function for function in counted if threshold.means(function)]
        if not meant:
            known = ", ".join(f"`{function.shown}`" for function in counted)
            yield error(
                "CCC119",
                f"no counts of a kernel `{threshold.kernel}`",
                why=f"these were counted: {known}" if known else "no kernel was counted",
                help="name one of these, or run the program so that it launches the kernel",
            )
        for function in meant:
            width = function.error(function) or 0.0
            share = efficiency(function.warps, function.lanes) or 0.0
            if share + width / LANES < threshold.efficiency:
                yield _below(view, function, threshold)


def _below(view: SourceView, function: FunctionRun, threshold: Threshold) -> Diagnostic:
    place, why = None, ""
    for line in worst_lines(function, 1):
        text = view.text(line.file, line.line) or ""
        column = len(text) - len(text.lstrip()) + 1
        place = Place(line.file, Position(view.line(line.file, line.line), column), text)
        why = f"{percent(line.idle / (LANES * function.warps))} of its lane slots are idle on this line"
    return error(
        "CCC119",
        f"the warp efficiency of `{function.shown}` is {efficiency_text(function)}, less than the "
        f"{percent(threshold.efficiency)} asked for",
        place,
        why=why,
        help="`cccopt profile --html FILE` shows all lines; `cccopt advise` finds what to annotate",
    )
