"""PTX with counted copies of its kernels, for programs and for modules that Python loads."""

from __future__ import annotations

from cccopt.passes.counting.layout import Layout
from cccopt.passes.instrument import Counting, instrumented
from cccopt.passes.pipeline import asks_for_loops, prepared
from cccopt.ptx.ir import Module


def with_counted_copies(module: Module, how: Counting | None = None) -> tuple[Module, Layout]:
    """The module with counted copies of its kernels, as `instrumented` makes them. If markers ask for loops, the
    kernels get these first.
    """
    return instrumented(prepared(module) if asks_for_loops(module) else module, how)
