"""The diagonal of a matrix: what diag.cu runs, and the answer by scipy."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr.generators import GENERATORS
from cccopt.harness.csr.workload import arrays, launch, owners, rounding, sparse, wrong_sums
from cccopt.harness.workload import Inputs, Launch, State

INPUTS = tuple(GENERATORS)
FORMS = ("tasks",)
RESULTS = ("diagonal",)
FULL_REFERENCE = True


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The matrix ``name``, and room for its diagonal."""
    matrix = csr_inputs.load(name, size, seed)
    return {
        "offsets": matrix.offsets,
        "columns": matrix.indices,
        "values": matrix.values,
        "diagonal": np.full(matrix.rows, np.nan, np.float32),
    }


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """One launch."""
    offsets, columns, values, diagonal = arrays(state, "offsets", "columns", "values", "diagonal")
    yield launch("diag", len(diagonal), np.int32(len(diagonal)), offsets, columns, values, diagonal)


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The diagonal by scipy."""
    offsets, columns, values = arrays(inputs, "offsets", "columns", "values")
    rows = len(offsets) - 1
    width = max(rows, int(columns.max(initial=0)) + 1)
    matrix = sparse(offsets, columns, values.astype(np.float64), width)
    return {"diagonal": matrix.diagonal()[:rows]}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """An entry that a matrix holds several times counts as their sum, in any order."""
    found, right = result["diagonal"], expected["diagonal"]
    return wrong_sums("diagonal", found, right, rounding(1, found.dtype) * np.abs(right))


def least_bytes(inputs: Mapping[str, Any]) -> int:
    """Every column, a row's offset and result, and the values on the diagonal."""
    offsets, columns = arrays(inputs, "offsets", "columns")
    rows = len(offsets) - 1
    return 4 * (len(columns) + 2 * rows + int(np.count_nonzero(columns == owners(offsets))))
