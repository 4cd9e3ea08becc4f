"""Matrices and graphs from files: Matrix Market, edge lists like those of SNAP, DIMACS shortest path.

What was read is kept in the cache folder, because reading text takes a long time.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import BinaryIO, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cccopt.files import file_error
from cccopt.harness.csr.cache import kept
from cccopt.harness.csr.faults import (
    DIMACS,
    EDGES,
    MATRIX_MARKET,
    UNPACKING,
    damaged,
    dimacs_header,
    malformed,
    market_header,
    open_text,
    unknown_form,
)
from cccopt.harness.csr.matrix import Csr, Floats, from_edges, require_32_bits, scipy_module

Watch: TypeAlias = Callable[[str], AbstractContextManager[BinaryIO]]
"""Opens the file at a path, to be read from beginning to end."""


def _unwatched(path: str) -> BinaryIO:
    return open(path, "rb", buffering=0)


watch: ContextVar[Watch] = ContextVar("watch", default=_unwatched)
"""How files that may take a long time to read are opened; a command can use this to show its progress."""

_BUFFER = 1 << 20
_VERSION = 1  # raise it with every change to what is made of a file

_SPARSE_IDS = 8  # vertices are renumbered if ids exceed this many times the number of edges ...
_MANY_IDS = 1 << 20  # ... and beyond this


def read(path: str) -> Csr:
    """The matrix or graph in a file. The suffix of its name gives the format; ``.gz`` may follow.

    * ``.mtx``: Matrix Market. Symmetric matrices are filled in, entries for the same place are added up, and values are
      rounded to float. A pattern gives a matrix without values. Complex matrices are refused.
    * ``.txt``: edges, `from to` or `from to value`, with comments after ``#`` or ``%``. Vertices keep their ids, so
      there may be rows without edges in between, unless ids are huge (over a million, and over eight times the number
      of edges): then vertices are renumbered in ascending order of id. Edges have one direction; repeated ones stay.
    * ``.gr``: DIMACS shortest path, counted from 1 in the file and from 0 here. Repeated arcs stay.

    Raises `CccError`: CCC086 for a file that cannot be opened, CCC101 with line and column for one that is malformed,
    CCC092 without scipy.
    """
    try:
        with open(path, "rb") as stream:
            found = os.fstat(stream.fileno())
    except OSError as problem:
        raise file_error("read", path, problem) from problem
    suffix = os.path.splitext(path.removesuffix(".gz"))[1]
    if suffix not in _FORMS:
        raise unknown_form(path, tuple(_FORMS))
    form, reader = _FORMS[suffix]
    state = f"{found.st_size} {found.st_mtime_ns} {_VERSION}"
    return kept(os.path.realpath(path), state, lambda: _read(path, form, reader))


def _read(path: str, form: str, reader: Callable[[str], Csr]) -> Csr:
    try:
        with warnings.catch_warnings():
            # numpy takes 1.5 for the whole number 1, with a warning.
            warnings.simplefilter("error", DeprecationWarning)
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            return reader(path)
    except UNPACKING as problem:
        raise damaged(path, problem) from problem
    except (ValueError, TypeError, OverflowError, RuntimeError, DeprecationWarning) as problem:
        raise malformed(path, form, str(problem)) from problem


def _read_market(path: str) -> Csr:
    form, field, lines = market_header(path)
    # scipy knows all about symmetry, but takes `1,5` for 1 and ignores what follows an entry: numpy does not.
    value = [] if field == "pattern" else [("value", np.int64 if field == "integer" else np.float64)]
    indices = [] if form == "array" else [("row", np.int64), ("column", np.int64)]
    _table(path, [*indices, *value], comments=None, skip=lines)
    # Dense matrices become sparse as well.
    matrix = scipy_module("sparse").coo_array(scipy_module("io").mmread(path, spmatrix=False)).tocsr()
    require_32_bits("non-zeros", matrix.nnz)
    return Csr(
        rows=matrix.shape[0],
        columns=matrix.shape[1],
        offsets=np.asarray(matrix.indptr, np.int32),
        indices=np.asarray(matrix.indices, np.int32),
        values=None if field == "pattern" else _floats(matrix.data),
    )


def _read_edges(path: str) -> Csr:
    words = _words_of_edges(path)
    fields: list[tuple[str, type]] = [("tail", np.int64), ("head", np.int64), ("value", np.float64)]
    edges = _table(path, fields[:words], ("#", "%"))
    if not edges.size:
        raise ValueError("no edges")
    ids = np.concatenate([edges["tail"], edges["head"]])
    vertices = int(ids.max()) + 1
    if ids.min() < 0:
        raise ValueError("a negative id")
    if vertices > max(_MANY_IDS, _SPARSE_IDS * len(edges)):
        known, ids = np.unique(ids, return_inverse=True)
        vertices = len(known)
    tails, heads = ids.reshape(2, -1)
    return from_edges(vertices, tails, heads, _floats(edges["value"]) if words == 3 else None)


def _words_of_edges(path: str) -> int:
    """3 if the first edge has a value, else 2."""
    with open_text(path) as stream:
        counts = (len(re.split("[#%]", line, maxsplit=1)[0].split()) for line in stream)
        return 3 if next(filter(None, counts), 2) > 2 else 2


def _read_dimacs(path: str) -> Csr:
    vertices, count, lines = dimacs_header(path)
    fields = [("kind", "S2"), ("tail", np.int64), ("head", np.int64), ("value", np.float64)]
    arcs = _table(path, fields, "c", skip=lines)
    ends = np.concatenate([arcs["tail"], arcs["head"]]) - 1
    inside = not arcs.size or 0 <= ends.min() <= ends.max() < vertices
    if len(arcs) != count or not inside or bool(np.any(arcs["kind"] != b"a")):
        raise ValueError("not the announced arcs")
    tails, heads = ends.reshape(2, -1)
    return from_edges(vertices, tails, heads, _floats(arcs["value"]))


def _table(
    path: str, fields: DTypeLike, comments: str | tuple[str, ...] | None, skip: int = 0
) -> NDArray[np.void]:
    with watch.get()(path) as raw, io.BufferedReader(cast(io.RawIOBase, raw), _BUFFER) as packed:
        stream = gzip.GzipFile(fileobj=packed) if path.endswith(".gz") else packed
        # Any byte is a character of Latin-1: comments are in whatever encoding their authors used.
        lines = io.TextIOWrapper(stream, encoding="latin-1")
        return np.loadtxt(lines, np.dtype(fields), comments=comments, skiprows=skip, ndmin=1)


def _floats(values: NDArray[np.generic]) -> Floats:
    """The values as float. Raises ValueError if they do not fit."""
    with np.errstate(over="ignore"):
        floats = values.astype(np.float32)
    if not np.all(np.isfinite(floats)):
        raise ValueError("a value is not finite")
    return floats


_FORMS: dict[str, tuple[str, Callable[[str], Csr]]] = {
    ".mtx": (MATRIX_MARKET, _read_market),
    ".txt": (EDGES, _read_edges),
    ".gr": (DIMACS, _read_dimacs),
}
