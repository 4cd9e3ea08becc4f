"""How tests read annotated text: markers as `<for.begin 1>`, blanks and line markers aside."""

from __future__ import annotations

import re

_MARKER = re.compile(r'asm volatile\("// ccc (\S+ \d+)((?:[^"\\]|\\.)*)" ::: "memory"\);')
_UNROLL = re.compile(r'_Pragma\("(unroll [^"]*)"\)')


def read(text: str) -> str:
    """`text` on one line with short markers and without their attributes."""
    text = re.sub(r"^# .*$", "", text, flags=re.MULTILINE)
    return " ".join(_UNROLL.sub(r"<\1>", _MARKER.sub(r"<\1>", text)).split())


def attributes(text: str) -> dict[str, str]:
    """What each marker says behind its event and id."""
    return {m[1]: m[2].strip() for m in _MARKER.finditer(text)}
