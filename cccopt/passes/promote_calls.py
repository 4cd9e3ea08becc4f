"""Calls through pointers become choices among the functions that they may call (`cccopt.ptx.call_promotion`),
so that later passes know what virtual functions do. Safety: EXACT.

Functions in which nothing is rewritten come out as they went in; all of them are changed because a marked function may
call them.
"""

from __future__ import annotations

from cccopt.ccc.function.annotations import is_annotation
from cccopt.ccc.outcome.choices import Mode
from cccopt.passes.options import Options
from cccopt.passes.result import PassResult
from cccopt.ptx.call_promotion import promoted
from cccopt.ptx.ir import Module


def run(module: Module, options: Options) -> PassResult:
    """Promote the indirect calls of a module that has annotations."""
    marked = any(map(is_annotation, (s for f in module.functions() for s in f.body or ())))
    if options.mode == Mode.OFF or options.relocatable or not marked:
        return PassResult(module)
    return PassResult(promoted(module))
