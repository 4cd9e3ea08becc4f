"""The checks of a module before the first pass: faults of the input are reported as such, with their place."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

from cccopt.ccc.function.annotations import is_annotation
from cccopt.ccc.function.calls import callees
from cccopt.ptx.errors import ptx_error
from cccopt.ptx.ir import Function, Module, RegisterDeclaration
from cccopt.ptx.verifier import verify
from cccopt.text import SourceText


def check_input(module: Module, source: SourceText) -> frozenset[str]:
    """Verify ``module``, which was parsed from ``source``; return the functions that it calls and need not declare.

    Such calls (``call (%r1), _optix_get_launch_index_x, ();``) are resolved when the module is loaded. Only functions
    without annotations may contain them: those are not changed. Raises `PtxError` (CCC005 to CCC009).
    """
    marked = {f.name for f in module.functions() if any(map(is_annotation, f.body or ()))}
    unmarked = {f.name for f in module.functions()} - marked
    undeclared = _callees(module, unmarked)
    verify(_with_bodies(module, unmarked), source, undeclared)
    if marked:
        verify(_with_bodies(module, marked), source, frozenset())
        _refuse_shared_registers(module, source)
    return undeclared


def _callees(module: Module, names: Container[str]) -> frozenset[str]:
    return frozenset(name for f in module.functions() if f.name in names for name in callees(f))


def _with_bodies(module: Module, names: Iterable[str]) -> Module:
    """``module`` with only the bodies of the functions ``names``."""
    return Module(
        tuple(
            replace(item, body=None) if isinstance(item, Function) and item.name not in names else item
            for item in module.items
        )
    )


def _refuse_shared_registers(module: Module, source: SourceText) -> None:
    declaration = next((item for item in module.items if isinstance(item, RegisterDeclaration)), None)
    if declaration is not None:
        raise ptx_error(
            "CCC005", "a `.reg` outside of all functions, in a module with annotations", source, declaration.position,
            why="all functions share such registers, so none can be rewritten by itself",
            help="declare them in the functions that use them",
        )  # fmt: skip
