"""Markers as CUDA C++ statements: empty inline assembly whose comment cicc prints into PTX (TOOLCHAIN 3).

Pins are empty assembly that reads a variable, so its value is in a register there. They do not write the variable:
otherwise, one in memory that other threads update would get an old value back.

``"memory"`` keeps loads and stores on their side of it. nvcc substitutes nothing in assembly without operands, so
``%``, ``$`` and braces stay as they are (measured, 13.0). ptxas accepts no byte beyond ASCII, not even in a comment.
"""

from __future__ import annotations

from collections.abc import Sequence

_PIN = "ccc_pin_"
_PINNED = {
    "float": "f",
    "double": "d",
    "int": "r",
    "unsigned": "r",
    "long": "l",
    "unsigned long": "l",
    "long long": "l",
    "unsigned long long": "l",
    "short": "h",
    "unsigned short": "h",
}
"""The assembly constraint for each type that can be pinned (Inline PTX Assembly in CUDA, Constraints)."""
_ESCAPES = {"\\": r"\\", '"': r"\""}


def marker(event: str, region: int, attributes: Sequence[str] = ()) -> str:
    """``asm volatile("// ccc EVENT ID ATTRIBUTE ..." ::: "memory");``, each attribute ``key=value`` or a
    flag."""
    words = " ".join(("// ccc", event, str(region), *attributes))
    return f'asm volatile("{_literal(words)}" ::: "memory");'


def pin(variable: str) -> str:
    """A statement that forces the last update of ``variable`` to come before it; the text needs `pins` before it."""
    return f"::{_PIN}({variable});"


def pins() -> str:
    """The functions of `pin`, on one line, as cicc accepts them: one overload per type, because the text does not show
    types.

    Variables of other types are left alone. The functions are not ``static``: nvcc warns about unused static ones.
    """
    spaces = "__attribute__((host)) __attribute__((device)) __attribute__((always_inline)) inline"
    overloads = [
        f'{spaces} void {_PIN}(const {type_}& v) {{ asm volatile("" :: "{constraint}"(v) : "memory"); }}'
        for type_, constraint in _PINNED.items()
    ]
    return " ".join([*overloads, f"template <class T> {spaces} void {_PIN}(const T&) {{}}"])


def inline_pragma(words: str) -> str:
    """``_Pragma("words")``, which cicc accepts in preprocessed text where there is no room for a ``#pragma`` line."""
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
