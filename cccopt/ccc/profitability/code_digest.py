"""A digest of the code that a decision was measured for, and names of functions that do not depend on folders.

A kernel's machine code depends on its marked PTX and on that of the functions that it calls. The digest covers both,
without what may change while the code stays the same: line numbers, the numbers of regions, labels and strings, which
count through a file, and the names that nvcc derives from a file's path.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace

from cccopt.ccc.function.annotations import is_annotation
from cccopt.ccc.function.calls import called
from cccopt.ptx.ir import Function, Location, Marker, Module
from cccopt.ptx.printer import print_function, print_statement

_PLACES = ("line", "file")
"""The attributes of markers that say where a pragma is."""
_COUNTED = re.compile(r"(?:\$L_|\$str|__local_depot\d|prototype_\d)[\w$]*", re.ASCII)
"""Names that cicc numbers through a file: labels, strings, stack frames, prototypes of calls through pointers."""

# nvcc names a file `_2d22bc19_4_a_cu_`, followed by a symbol that other files see or, if there is none, by a hash and
# the process number. The first number is a hash of the file's path, the second the length of its name.
_OF_FILE = re.compile(
    r"(?P<length>\d+)(?P<kind>_GLOBAL__N_|_INTERNAL)(?=_[0-9a-f]{8}_\d)"
    r"|__nv_static_(?P<static>\d+)_(?=_[0-9a-f]{8}_\d)"
)
_FILE = re.compile(r"_[0-9a-f]{8}_(\d+)_")
_UNSEEN = re.compile(r"_[0-9a-f]{8}(?:_\d+)?")


def canonical(text: str) -> str:
    """``text`` with the names of symbols that only one file sees (anonymous namespaces; ``static`` with `-rdc=true`)
    made independent of the folder. Other text stays as it is, and so do names that are already canonical.
    """
    pieces: list[str] = []
    at = 0
    while (found := _OF_FILE.search(text, at)) is not None:
        kind = found["kind"] or ""
        end = found.end() + int(found["length"] or found["static"]) - len(kind)
        name = kind + _without_hashes(text[found.end() : end])
        pieces += [
            text[at : found.start()],
            f"{len(name)}{name}" if kind else f"__nv_static_{len(name)}_{name}",
        ]
        at = end
    return "".join([*pieces, text[at:]])


def _without_hashes(file: str) -> str:
    found = _FILE.match(file)
    assert found is not None, "the pattern of such names looks ahead"
    end = found.end() + int(found[1])
    rest = "" if _UNSEEN.fullmatch(file, end) else file[end:]
    return f"_{'0' * 8}_{found[1]}_{file[found.end() : end]}{rest}"


def digests(module: Module) -> dict[str, str]:
    """The digest of each function with annotations."""
    bodies = {f.name: f for f in module.functions() if f.body is not None}
    marked = [name for name, f in bodies.items() if any(is_annotation(s) for s in f.body or ())]
    return {name: _digest(name, bodies, module) for name in marked}


def _digest(name: str, bodies: dict[str, Function], module: Module) -> str:
    others = called(module, [name]) - {name}
    code = hashlib.sha256(_text(bodies[name]))
    for text in sorted(_text(bodies[other]) for other in others if other in bodies):
        code.update(text)
    return code.hexdigest()[:16]


def _text(function: Function) -> bytes:
    """A function's text, independent of its file and folder."""
    lines = [print_function(replace(function, body=None)), *_lines(function)]
    numbers: dict[str, int] = {}
    text = _COUNTED.sub(
        lambda found: f"${numbers.setdefault(found[0], len(numbers))}", canonical("\n".join(lines))
    )
    return f"{text}\n".encode("utf-8", "surrogateescape")


def _lines(function: Function) -> Iterator[str]:
    """The function's statements without line numbers; regions are numbered in the order in which they begin."""
    regions: dict[int, int] = {}
    for statement in function.body or ():
        if isinstance(statement, Marker):
            number = regions.setdefault(statement.region, len(regions))
            yield f"{statement.event} {number} {_said(statement, regions)}"
        elif not isinstance(statement, Location):
            yield print_statement(statement)


def _said(marker: Marker, regions: dict[int, int]) -> str:
    """The attributes of a marker as text; ``group`` is the number of a region."""
    return " ".join(
        f"{key}={regions.setdefault(int(value), len(regions)) if key == 'group' else value}"
        for key, value in marker.attributes
        if key not in _PLACES
    )
