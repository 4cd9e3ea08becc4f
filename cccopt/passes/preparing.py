"""The shared part of the passes that prepare marked functions for the collection of contexts."""

from __future__ import annotations

from collections.abc import Callable

from cccopt.ccc.function.annotations import is_annotation
from cccopt.ccc.outcome.choices import Mode
from cccopt.passes.options import Options
from cccopt.ptx.ir import Function, Module

Change = Callable[[Module, Function, Options], Function]


def each_marked(module: Module, options: Options, change: Change) -> Module:
    """The module with each marked function changed; as it is if nothing is to be rewritten."""
    if options.mode == Mode.OFF:
        return module
    return Module(
        tuple(
            change(module, item, options.of(item.name))
            if isinstance(item, Function)
            and any(map(is_annotation, item.body or ()))
            and options.of(item.name).mode != Mode.OFF
            else item
            for item in module.items
        )
    )
