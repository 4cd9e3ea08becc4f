"""A sparse matrix times a vector: what spmv.cu and spmv_double.cu run, and the answer by scipy."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr.generators import GENERATORS
from cccopt.harness.csr.workload import (
    BLOCK,
    arrays,
    carries,
    counters,
    edge_parallel_threads,
    finish_threads,
    first_pieces,
    launch,
    merge_path_blocks,
    owners,
    partition,
    pieces,
    rounding,
    sparse,
    wrong_sums,
)
from cccopt.harness.workload import Array, Inputs, Launch, State

INPUTS = tuple(GENERATORS)
FORMS = ("tasks", "merge_path", "defer_long", "edge_parallel", "virtual_split", "virtual_split_strided")
RESULTS, SCRATCH = ("y",), ("carries", "pieces", "counters")
FULL_REFERENCE = True


def inputs(name: str, size: str, seed: int, dtype: DTypeLike = np.float32) -> Inputs:
    """The matrix ``name``, a vector, and room for their product."""
    matrix = csr_inputs.load(name, size, seed)
    return {
        "offsets": matrix.offsets,
        "columns": matrix.indices,
        "values": matrix.values.astype(dtype, copy=False),
        "x": matrix.x.astype(dtype, copy=False),
        "owners": owners(matrix.offsets),
        "first": first_pieces(matrix.offsets),
        "y": np.full(matrix.rows, np.nan, dtype),
        "carries": carries(matrix.offsets, dtype),
        "partition": partition(matrix.offsets),
        "pieces": pieces(matrix.offsets),
        "counters": counters(),
    }


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """One launch, or two: ``merge_path`` needs another for rows that lie in several blocks, ``defer_long`` for long
    ones; the other forms with atomics need zeros.
    """
    offsets, columns, values, x, y = arrays(state, "offsets", "columns", "values", "x", "y")
    owner, first, carried, divided = arrays(state, "owners", "first", "carries", "partition")
    left = arrays(state, "pieces", "counters")
    rows, entries, blocks = np.int32(len(y)), np.int32(len(columns)), merge_path_blocks(offsets)
    data = (columns, values, x, y)
    zero = ("_zero", len(y), (rows, y))
    split = ("_virtual_split", int(first[-1]), (rows, offsets, first, *data))
    steps = {
        "tasks": [("", len(y), (rows, offsets, *data))],
        "merge_path": [
            ("_merge_path", blocks * BLOCK, (rows, offsets, *data, carried, divided)),
            ("_fix_up", blocks, (np.int32(blocks), offsets, y, carried)),
        ],
        "defer_long": [
            ("_defer_long", len(y), (rows, offsets, *data, *left)),
            ("_finish", finish_threads(len(columns)), (*data, *left)),
        ],
        "edge_parallel": [
            zero,
            ("_edge_parallel", edge_parallel_threads(len(columns)), (entries, owner, *data)),
        ],
        "virtual_split": [zero, split],
        "virtual_split_strided": [zero, split],
    }
    name = {np.dtype(np.float32): "spmv_float", np.dtype(np.float64): "spmv_double"}[y.dtype]
    for suffix, threads, arguments in steps[form]:
        yield launch(name + suffix, threads, *arguments)


def spmv(state: State) -> tuple[int | Array, ...]:
    """Numbers of rows, columns and entries, and the arrays, for a library's product."""
    offsets, columns, values, x, y = arrays(state, "offsets", "columns", "values", "x", "y")
    return len(y), len(x), len(columns), offsets, columns, values, x, y


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The product by scipy, in double precision, and how far each sum may be off."""
    offsets, columns, values, x, y = arrays(inputs, "offsets", "columns", "values", "x", "y")
    exact = values.astype(np.float64)
    # Not abs(matrix): scipy would add up entries of one column first, in place.
    matrix, absolute = (sparse(offsets, columns, entries, len(x)) for entries in (exact, np.abs(exact)))
    return {"y": matrix @ x, "slack": rounding(np.diff(offsets), y.dtype) * (absolute @ np.abs(x))}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Sums in any order."""
    return wrong_sums("y", result["y"], expected["y"], expected["slack"])


def least_bytes(inputs: Mapping[str, Any]) -> int:
    """Every value and column, a row's offset and result; x is not counted, most of which caches may hold."""
    values, y = arrays(inputs, "values", "y")
    return len(values) * (values.itemsize + 4) + len(y) * (4 + y.itemsize)
