"""Dataclasses from JSON, with every value checked: errors name its path (`functions[3].lines[0].warps`).

Fields may be text, booleans, counts (whole numbers from 0), objects of text, lists of these or of dataclasses, or any
of them or null. Unknown keys are ignored, so that a later version may add some.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T")


def from_json(wanted: type[_T], data: object, path: str = "", leave_out: Collection[str] = ()) -> _T:
    """``data`` as a ``wanted``, a dataclass; its fields in ``leave_out`` keep their defaults.

    Raises ValueError if ``data`` does not fit.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"{_named(path)} is {_seen(data)}, not an object")
    found: dict[str, Any] = {}
    for name, hint, required in _fields(wanted):  # type: ignore[arg-type]
        if name in leave_out:
            continue
        inner = f"{path}.{name}" if path else name
        if name in data:
            found[name] = _value(hint, data[name], inner)
        elif required:
            raise ValueError(f"it has no `{inner}`")
    return wanted(**found)


@cache
def _fields(wanted: type) -> tuple[tuple[str, Any, bool], ...]:
    hints = get_type_hints(wanted)
    return tuple(
        (f.name, hints[f.name], f.default is MISSING and f.default_factory is MISSING) for f in fields(wanted)
    )


def _value(hint: Any, value: object, path: str) -> Any:
    if get_origin(hint) in (Union, UnionType):
        (inner,) = (h for h in get_args(hint) if h is not NoneType)
        return None if value is None else _value(inner, value, path)
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{_named(path)} is {_seen(value)}, not a list")
        element = get_args(hint)[0]
        return tuple(_value(element, item, f"{path}[{i}]") for i, item in enumerate(value))
    if get_origin(hint) is not None:  # Mapping[str, str]
        if not isinstance(value, Mapping):
            raise ValueError(f"{_named(path)} is {_seen(value)}, not an object")
        return {key: _value(str, item, f"{path}.{key}") for key, item in value.items()}
    if is_dataclass(hint):
        return from_json(hint, value, path)  # type: ignore[arg-type]
    return _plain(hint, value, path)


def _plain(hint: Any, value: object, path: str) -> object:
    if hint is int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{_named(path)} is {_seen(value)}, not a count")
    elif not isinstance(value, hint):
        kind = {str: "text", bool: "true or false"}[hint]
        raise ValueError(f"{_named(path)} is {_seen(value)}, not {kind}")
    return value


def _named(path: str) -> str:
    return f"`{path}`" if path else "it"


def _seen(value: object) -> str:
    """A value in a form that a message can show."""
    if isinstance(value, list):
        return "a list"
    if isinstance(value, Mapping):
        return "an object"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
