"""The workload ``spmv`` in double precision."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from cccopt.harness.cte import workload as cte_workload
from cccopt.harness.workload import Inputs

# The workload `spmv`, as a module: its `inputs` take the type of the values, too.
_spmv = cast(Any, cte_workload.load("spmv").module)

INPUTS, FORMS = _spmv.INPUTS, _spmv.FORMS
RESULTS, SCRATCH, FULL_REFERENCE = _spmv.RESULTS, _spmv.SCRATCH, _spmv.FULL_REFERENCE
launches, spmv, reference, check, least_bytes = (
    _spmv.launches,
    _spmv.spmv,
    _spmv.reference,
    _spmv.check,
    _spmv.least_bytes,
)


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The matrix ``name``, a vector, and room for their product, all of them double."""
    inputs: Inputs = _spmv.inputs(name, size, seed, np.float64)
    return inputs
