"""The result of a pass."""

from __future__ import annotations

from typing import NamedTuple

from cccopt.ccc.outcome.report import RegionReport
from cccopt.diagnostic import Diagnostic
from cccopt.ptx.ir import Module


class PassResult(NamedTuple):
    """The module after a pass, its remarks, and what became of the annotations that it has handled."""

    module: Module
    remarks: tuple[Diagnostic, ...] = ()
    regions: tuple[RegionReport, ...] = ()
