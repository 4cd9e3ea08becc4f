"""The sparse matrices and graphs of the benchmarks, by the name of a generator or by a file's path."""

from __future__ import annotations

import os

from cccopt.diagnostic import CccError, error
from cccopt.harness.csr.cache import kept_mapped
from cccopt.harness.csr.files import read
from cccopt.harness.csr.generators import GENERATORS, SEEDLESS, SIZES, VERSION
from cccopt.harness.csr.matrix import Csr
from cccopt.harness.workload import FULL


def load(name_or_path: str, size: str, seed: int) -> Csr:
    """The generated input with this name, or the matrix in a file, with values and ``x`` (see `Csr.completed`).

    A file has one size, and ``seed`` draws only what it lacks. If a name is both a generator's and a file's, the
    generator is used: write ``./NAME`` for the file. What a generator makes at size `FULL` is kept in the cache folder.

    Raises `CccError`: CCC100 for a name that is neither, CCC091 for an unknown size, and what `read` raises.
    """
    make = GENERATORS.get(name_or_path)
    if make is None:
        return _file(name_or_path).completed(seed)
    if size not in SIZES:
        raise CccError(
            error(
                "CCC091",
                f"input `{name_or_path}` has no size `{size}`",
                help=f"its sizes are {', '.join(f'`{s}`' for s in SIZES)}",
            )
        )
    # An input that is the same for every seed is kept once.
    drawn = 0 if name_or_path in SEEDLESS else seed
    if size != FULL:
        return make(size, drawn).completed(seed)
    return kept_mapped(f"{name_or_path}-{size}-{drawn}-v{VERSION}", lambda: make(size, drawn)).completed(seed)


def _file(path: str) -> Csr:
    if not os.path.lexists(path):
        raise CccError(
            error(
                "CCC100",
                f"unknown input `{path}`",
                why="it is neither the name of a generator nor a file",
                help=f"name a file, or one of {', '.join(f'`{name}`' for name in GENERATORS)}",
            )
        )
    return read(path)
