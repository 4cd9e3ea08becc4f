"""Which pointer parameters of the kernel around a pragma are ``__restrict__``: nvcc's PTX does not say.

    __global__ void k(float* __restrict__ a, float* b, const float* const __restrict__ in, int n)      (0, 2)

According to the CUDA C++ Programming Guide, what is written through one of them is not accessed through another
pointer. Types are not known here, so a `typedef` of such a pointer does not count. Neither does a parameter that the
kernel assigns another value, or whose address it takes, because it may then hold a copy of another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cccopt.source.functions import definition
from cccopt.source.statements import Code, OutOfSight, Unbalanced

_QUALIFIERS = frozenset({"__restrict__", "__restrict", "const", "volatile"})
_RESTRICT = frozenset({"__restrict__", "__restrict"})


_KERNEL = frozenset({"__global__", "global"})
_OTHERS = frozenset({"__device__", "device", "__host__", "host"})
_STATEMENTS = frozenset({"for", "if", "while", "switch", "catch"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel by its name; ``restricted`` says that no other pointer leads to the same memory."""

    name: str
    restricted: bool


def restricted_around(code: Code, index: int) -> tuple[int, ...]:
    """The positions of the ``__restrict__`` parameters of the kernel that contains the token at ``index``; none if it
    is not in a kernel. Raises `OutOfSight`.
    """
    return _restricted(parameters_around(code, index))


def parameters_around(code: Code, index: int) -> tuple[Parameter, ...]:
    """The parameters of the kernel that contains the token at ``index``; none if it is not in a kernel. Raises
    `OutOfSight`.
    """
    for head, brace in _heads(code, index):
        words = {code.text(i) for i in range(head, brace)}
        if words & _KERNEL or _is_function(code, head, brace):
            return parameters_of(code, head)
        if words & _OTHERS:
            return ()
    return ()


def restricted_of(code: Code, index: int) -> tuple[int, ...]:
    """The positions of the ``__restrict__`` parameters of the kernel whose definition begins at ``index``."""
    return _restricted(parameters_of(code, index))


def parameters_of(code: Code, index: int) -> tuple[Parameter, ...]:
    """The parameters of the kernel whose definition begins at ``index``; none if they cannot be counted."""
    try:
        found = definition(code, index)
        if found is None or "global" not in found.spaces:
            return ()
        start = found.name + 1
        while code.text(start) != "(":
            start += 1
        parameters = _parameters(code, start)
        end = code.after_bracket(found.body)
    except Unbalanced:
        return ()
    names = [_restricted_name(code, *parameter) for parameter in parameters]
    return tuple(
        Parameter(_name(code, *parameter), bool(name) and not _may_change(code, found.body, end, name))
        for parameter, name in zip(parameters, names, strict=True)
    )


def _restricted(parameters: tuple[Parameter, ...]) -> tuple[int, ...]:
    return tuple(i for i, parameter in enumerate(parameters) if parameter.restricted)


def _name(code: Code, start: int, end: int) -> str:
    """The name of a parameter, which comes last except for the extents of an array."""
    last = end - 1
    while last > start and code.text(last) == "]":
        last = code.partners.get(last, last) - 1
    return code.text(last)


def _is_function(code: Code, head: int, brace: int) -> bool:
    """Whether the code from ``head`` to a brace begins a function and not a statement."""
    try:
        found = definition(code, head)
    except Unbalanced:
        return False
    return found is not None and found.body == brace and code.text(found.name) not in _STATEMENTS


def _heads(code: Code, index: int) -> Iterator[tuple[int, int]]:
    """For each brace around a token, from the inside out: where its head begins, and the brace."""
    at = index - 1
    while True:
        while at >= 0 and code.text(at) != "{":
            at = _before(code, at)
        if at < 0:
            break
        brace = at
        at -= 1
        while at >= 0 and code.text(at) not in (";", "{", "}"):
            at = _before(code, at)
        yield at + 1, brace
    if not code.from_start:
        raise OutOfSight


def _before(code: Code, index: int) -> int:
    """The token before the one at ``index``, or before the bracket that it closes."""
    return (code.partners.get(index, index) if code.text(index) in (")", "]", "}") else index) - 1


def _parameters(code: Code, start: int) -> list[tuple[int, int]]:
    """Where each of the parameters in the brackets at ``start`` begins and ends; none if they cannot be counted."""
    end = code.after_bracket(start) - 1
    words = [code.text(i) for i in range(start + 1, end)]
    if {"=", "."} & {*words} or words.count("<") != words.count(">"):
        return []
    found: list[tuple[int, int]] = []
    first = at = start + 1
    depth = 0
    while at < end:
        word = code.text(at)
        depth += (word == "<") - (word == ">")
        if word == "," and not depth:
            found.append((first, at))
            first = at + 1
        at = code.after_bracket(at) if word in ("(", "[", "{") else at + 1
    return [*found, (first, end)] if end > start + 1 else []


def _restricted_name(code: Code, start: int, end: int) -> str:
    """The name of a ``__restrict__`` pointer parameter; empty for others."""
    last = end - 1
    before = last - 1
    qualifiers = set[str]()
    while before >= start and code.text(before) in _QUALIFIERS:
        qualifiers.add(code.text(before))
        before -= 1
    pointer = before >= start and code.text(before) == "*"
    return (
        code.text(last) if pointer and qualifiers & _RESTRICT and code.text(last) not in _QUALIFIERS else ""
    )


def _may_change(code: Code, start: int, end: int, name: str) -> bool:
    """Whether the kernel may set the parameter to another pointer."""
    for index in range(start, end):
        if code.text(index) != name:
            continue
        before, after = (
            (code.text(index - 2), code.text(index - 1)),
            (code.text(index + 1), code.text(index + 2)),
        )
        assigned = after[0] == "=" and after[1] != "="
        taken = before[1] == "&" and before[0] != "&"
        bound = before[1] == "=" and code.text(index - 3) == "&"
        if assigned or taken or bound:
            return True
    return False
