"""What a pass gives back."""

from __future__ import annotations

from typing import NamedTuple

from cccopt.ccc.outcome.report import RegionReport
from cccopt.diagnostic import Diagnostic
from cccopt.ptx.ir import Module


class PassResult(NamedTuple):
    """The module after a pass, what there is to say, and what became of the annotations that the pass has dealt
    with.
    """

    module: Module
    remarks: tuple[Diagnostic, ...] = ()
    regions: tuple[RegionReport, ...] = ()
