"""Matrices that took a long time to read or to make, kept under ``inputs`` in the cache folder.

A matrix from a file is kept as one ``.npz``. A generated matrix is kept as a folder with a ``.npy`` for each array;
these are mapped into memory, so processes that use the same matrix share it. Both are written under a temporary name
and renamed, so that no reader sees half of one. A cache that cannot be written, or that holds something unreadable,
counts as empty.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile
from zlib import crc32

import numpy as np

from cccopt.harness.csr.matrix import Csr
from cccopt.toolchain.cache import cache_folders, prepare

_ARRAYS = ("offsets", "indices", "values", "x")
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, BadZipFile)


def kept(file: str, state: str, make: Callable[[], Csr]) -> Csr:
    """The matrix that ``make`` makes of ``file``, or the one that it made when the file was in the same ``state``."""
    return _kept(f"{crc32(os.fsencode(file)):08x}.npz", f"{file}\0{state}", make, _read_npz, _write_npz)


def kept_mapped(name: str, make: Callable[[], Csr]) -> Csr:
    """Like `kept`, but with arrays that are mapped and read-only; ``name`` is the name of a folder."""
    return _kept(name, name, make, _read_folder, _write_folder)


def _kept(
    name: str,
    key: str,
    make: Callable[[], Csr],
    read: Callable[[Path, str], Csr],
    write: Callable[[Path, str, Csr], None],
) -> Csr:
    places = [Path(folder) / "inputs" / name for folder in cache_folders()]
    for place in places:
        with suppress(*_UNREADABLE):
            return read(place, key)
    made = make()
    for place in places:
        aside = place.with_name(f".{name}.{secrets.token_hex(4)}")
        try:
            prepare(str(place.parent.parent))
            place.parent.mkdir(exist_ok=True)
            write(aside, key, made)
            _remove(place)
            aside.rename(place)
            return read(place, key)
        except _UNREADABLE:
            continue
        finally:
            _remove(aside)
    return made


def _remove(path: Path) -> None:
    """Remove a file or folder, if it is there and can be removed."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _write_npz(path: Path, key: str, matrix: Csr) -> None:
    with open(path, "wb") as stream:
        np.savez(stream, **_parts(matrix, key))


def _read_npz(path: Path, key: str) -> Csr:
    with np.load(path, allow_pickle=False) as parts:
        return _matrix(parts, key)


def _write_folder(path: Path, key: str, matrix: Csr) -> None:
    path.mkdir()
    for name, array in _parts(matrix, key).items():
        np.save(path / f"{name}.npy", array)


def _read_folder(path: Path, key: str) -> Csr:
    files = {file.stem: file for file in path.glob("*.npy")}
    # A plain view of the mapping: what is computed from it must not be a `memmap` itself.
    return _matrix({name: np.load(file, mmap_mode="r").view(np.ndarray) for name, file in files.items()}, key)


def _parts(matrix: Csr, key: str) -> dict[str, Any]:
    arrays = {name: getattr(matrix, name) for name in _ARRAYS}
    facts = {"columns": np.array([matrix.columns]), "key": np.frombuffer(os.fsencode(key), np.uint8)}
    return facts | {name: array for name, array in arrays.items() if array is not None}


def _matrix(parts: Mapping[str, Any], key: str) -> Csr:
    """The matrix with these `_parts`. Raises ValueError if the key differs, and KeyError if a part is missing."""
    if parts["key"].tobytes() != os.fsencode(key):
        raise ValueError(f"not the matrix of `{key}`")
    arrays = {name: parts[name] for name in _ARRAYS if name in parts}
    offsets = arrays["offsets"]
    return Csr(len(offsets) - 1, int(parts["columns"][0]), **arrays)
