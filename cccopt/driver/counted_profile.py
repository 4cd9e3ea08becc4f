"""A run that counted by line as the profile of one text: fitted to its marked PTX and the sources as they are now."""

from __future__ import annotations

from collections.abc import Callable

from cccopt.ccc.outcome import refusal
from cccopt.diagnostic import CccError
from cccopt.driver.line_information import has_lines
from cccopt.driver.unconcerned_functions import split_module
from cccopt.passes.pipeline import prepared
from cccopt.profiling.fitting import Fitted, files_in, fitted
from cccopt.profiling.run_file import RunFile
from cccopt.profiling.sources import on_disk
from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse


def profile_of_run(run: RunFile, marked: str, file: str, compile: Callable[[], str] | None = None) -> Fitted:
    """What ``run`` tells of the regions of ``marked``, made of ``file``. ``compile()`` gives the same PTX with line
    information, for one without.

    Where there is none, or the PTX cannot be read, that is the regions that were counted as such.
    """
    if not has_lines(marked) and compile is not None:
        marked = compile()
    if not has_lines(marked):
        return _without_lines(run)
    try:
        split = split_module(marked)
        module: Module = prepared(parse(split.text if split else marked, file))
    except CccError:
        return Fitted(run.kernels)
    return fitted(run, module, on_disk(files_in(module)), file)


def _without_lines(run: RunFile) -> Fitted:
    said = refusal.remark(
        "CCC068",
        "the counts of the profile cannot be used: they go by lines",
        None,
        "the PTX has no line information",
        "compile with `-lineinfo`",
    )
    return Fitted(run.kernels, (said,))
