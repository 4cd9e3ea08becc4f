"""Markers as CUDA C++ statements: empty inline assembly whose comment cicc prints into PTX (TOOLCHAIN 3).

``"memory"`` keeps loads and stores on their side. nvcc substitutes nothing in assembly without operands, so
``%``, ``$`` and braces stay as they are (measured, 13.0). ptxas accepts no byte beyond ASCII, not even in a
comment.
"""

from __future__ import annotations

from collections.abc import Sequence

_ESCAPES = {"\\": r"\\", '"': r"\""}


def marker(event: str, region: int, attributes: Sequence[str] = ()) -> str:
    """``asm volatile("// ccc EVENT ID ATTRIBUTE ..." ::: "memory");``, each attribute ``key=value`` or a
    flag."""
    words = " ".join(("// ccc", event, str(region), *attributes))
    return f'asm volatile("{_literal(words)}" ::: "memory");'


def inline_pragma(words: str) -> str:
    """``_Pragma("words")``, which cicc takes in preprocessed text where a ``#pragma`` line has no room."""
    return f'_Pragma("{_literal(words)}")'


def _literal(text: str) -> str:
    """``text`` inside a C string; what is not printable ASCII is spelled ``\\xNN`` or ``\\uNNNN``, also in
    PTX."""
    return "".join(_character(c) for c in text)


def _character(c: str) -> str:
    if c in _ESCAPES:
        return _ESCAPES[c]
    if " " <= c <= "~":
        return c
    return rf"\\x{ord(c):02x}" if ord(c) < 256 else rf"\\u{ord(c):04x}"
