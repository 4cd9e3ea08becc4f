"""Kernel arguments and launch shapes as written on a command line."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.diagnostic import CccError, error
from cccopt.files import file_error

Array = NDArray[Any]

_TYPES: dict[str, np.dtype[Any]] = {
    **{f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}") for kind in "iu" for bits in (8, 16, 32, 64)},
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}


def add_launch(parser: argparse.ArgumentParser) -> None:
    """Add the options of `add_shape`, with ``--grid`` and ``--block`` required, and ``--shuffle``."""
    add_shape(parser, required=True)
    parser.add_argument(
        "--shuffle",
        type=int,
        metavar="SEED",
        help="run warps and lanes in a random order, drawn from this seed, to find races",
    )


def add_shape(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add ``--grid``, ``--block``, ``--arg`` and ``--shared``; the first two may be ``required``."""
    parser.add_argument("--grid", required=required, metavar="X,Y,Z", help="number of blocks of the launch")
    parser.add_argument("--block", required=required, metavar="X,Y,Z", help="number of threads in a block")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="VALUE",
        help="an argument of the kernel: i32:5, FILE.npy or zeros:f32:1000; repeat the option for each"
        " argument, in order",
    )
    parser.add_argument(
        "--shared", type=_bytes, default=0, metavar="BYTES", help="bytes of dynamic shared memory per block"
    )


def _bytes(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of bytes")
    return int(text)


def parse_shape(text: str) -> tuple[int, int, int]:
    """``16,1,1`` or ``16``: one to three positive numbers. Raises CccError (CCC089)."""
    parts = text.split(",")
    if len(parts) > 3 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise bad_argument(text, "a shape is one to three positive numbers", "write it like `16,1,1`")
    x, y, z = [*(int(part) for part in parts), 1, 1][:3]
    return x, y, z


def parse_argument(text: str) -> Array | np.generic:
    """``i32:5`` is a scalar; ``zeros:f32:1000`` and ``FILE.npy`` are buffers. Raises CccError (CCC089,
    CCC086).
    """
    if text.endswith(".npy"):
        return _load(Path(text))
    kind, _, value = text.partition(":")
    if kind == "zeros":
        kind, _, count = value.partition(":")
        if kind in _TYPES and count.isdecimal():
            return _zeros(text, int(count), _TYPES[kind])
    elif kind in _TYPES:
        return _scalar(text, kind, value)
    raise bad_argument(
        text, "it does not have the form of an argument", "write `i32:5`, `zeros:f32:1000` or `FILE.npy`"
    )


def npy(array: Array) -> bytes:
    """The contents of a ``.npy`` file of ``array``."""
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def _zeros(text: str, count: int, type_: np.dtype[Any]) -> Array:
    try:
        return np.zeros(count, type_)
    except (MemoryError, ValueError, OverflowError) as problem:
        raise bad_argument(text, "it does not fit into memory", "use fewer elements") from problem


def _load(path: Path) -> Array:
    help = "write it with numpy.save, without Python objects in it"
    try:
        with open(path, "rb") as stream:
            loaded: Array = np.lib.format.read_array(stream, allow_pickle=False)
    except OSError as problem:
        raise file_error("read", path, problem) from problem
    except (ValueError, EOFError, MemoryError, SyntaxError) as problem:
        raise bad_argument(str(path), " ".join(str(problem).split()) or "it is truncated", help) from problem
    if not loaded.dtype.isnative:
        raise bad_argument(str(path), "its bytes are in the byte order of another machine", help)
    return np.ascontiguousarray(loaded)


def _scalar(text: str, kind: str, value: str) -> np.generic:
    type_ = _TYPES[kind]
    try:
        number = float(value) if type_.kind == "f" else int(value, 0)
    except ValueError as problem:
        why = f"`{value}` is not a number of type {kind}"
        raise bad_argument(text, why, f"write it like `i32:5`; types: {', '.join(_TYPES)}") from problem
    if type_.kind != "f":
        info = np.iinfo(type_)
        if not info.min <= number <= info.max:
            raise bad_argument(text, f"{kind} holds {info.min} to {info.max}", "choose a wider type")
    scalar: np.generic = type_.type(number)
    return scalar


def bad_argument(text: str, why: str, help: str) -> CccError:
    """The error (CCC089) for an argument that cannot be used."""
    return CccError(error("CCC089", f"cannot use the argument `{text}`", why=why, help=help))
