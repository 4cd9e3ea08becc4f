"""The error that the PTX layer raises."""

from __future__ import annotations

from cccopt.diagnostic import CccError, error
from cccopt.text import Position, SourceText


class PtxError(CccError):
    """Text that is not PTX (CCC001 to CCC005) or a module that breaks the rules of PTX (CCC006 to CCC009)."""


def ptx_error(
    code: str, message: str, source: SourceText, position: Position | None, *, why: str = "", help: str = ""
) -> PtxError:
    """A `PtxError` with one diagnostic that points at ``position`` in ``source``."""
    place = None if position is None else source.place(position)
    return PtxError(error(code, message, place, why=why, help=help))
