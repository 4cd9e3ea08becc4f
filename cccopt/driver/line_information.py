"""Messages with CUDA lines even if the user compiles without ``-lineinfo``.

Line information changes PTX, and could change what the compiler makes of a text. So a text is compiled with it only
after something is refused, in an extra compilation that only provides the places and names in messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from cccopt.diagnostic import CccError, Diagnostic, Severity
from cccopt.driver.unconcerned_functions import split_module
from cccopt.passes.pipeline import Options, run
from cccopt.ptx.parser import parse

_LOCATION = re.compile(r"^\s*\.loc\b", re.MULTILINE)


def with_lines(
    said: Iterable[Diagnostic], ptx: str, options: Options, compile: Callable[[], str] | None
) -> tuple[Diagnostic, ...]:
    """The diagnostics ``said`` about ``ptx``, each replaced by its counterpart for the PTX that ``compile()`` gives,
    which has line information. A diagnostic without a counterpart stays as it is. Nothing is compiled unless there is a
    refusal.
    """
    said = tuple(said)
    refused = any(d.severity is not Severity.REMARK for d in said)
    if compile is None or not refused or _LOCATION.search(ptx) is not None:
        return said
    known = {(d.code, d.place): d for d in reversed(_said_of(compile(), options))}
    found = ((d, known.get((d.code, d.place))) for d in said)
    return tuple(d if other is None else replace(other, severity=d.severity) for d, other in found)


def _said_of(ptx: str, options: Options) -> tuple[Diagnostic, ...]:
    """What the passes say about a text: the remarks of a run, or the diagnostics of the error that ends it."""
    try:
        split = split_module(ptx)
        return run(parse(split.text if split else ptx, options.file), options).remarks
    except CccError as problem:
        return problem.diagnostics
