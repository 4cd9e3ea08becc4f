"""The source name in a mangled one (Itanium C++ ABI, 5.1): ``_ZN2ns1fEfi`` is ``ns::f``."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"\d+")
_PREFIX = re.compile(r"_Z(?:(N)[rVK]*|L)?")


def is_named(symbol: str, name: str) -> bool:
    """Whether ``name``, as a user writes it, is the source name of the function ``symbol``, or the last parts of it.
    A member of a template has no name here.
    """
    parts = _parts(symbol)
    wanted = name.removeprefix("::").split("::")
    return bool(parts) and parts[-len(wanted) :] == wanted


def source_name(symbol: str) -> str:
    """The name by which a user may name the function ``symbol`` (`is_named`), or the symbol if there is none."""
    return "::".join(_parts(symbol)) or symbol


def _parts(symbol: str) -> list[str]:
    """The parts of a function's name; for a C function, its symbol."""
    if not symbol.startswith("_Z"):
        return [symbol]
    prefix = _PREFIX.match(symbol)
    assert prefix is not None
    nested, at = bool(prefix[1]), prefix.end()
    found: list[str] = []
    while (number := _NUMBER.match(symbol, at)) is not None and (nested or not found):
        at = number.end() + int(number[0])
        found.append(symbol[number.end() : at])
    # A nested name must end here: template arguments may belong to a class. After any other, parameters follow.
    return found if not nested or symbol[at : at + 1] == "E" else []
