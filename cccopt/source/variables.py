"""Variables that `reduce` can name: plain ones, members (``sums.total``), elements with a literal index (``sums[2]``).

Code is compared token by token: ``sums [ 2 ]`` names the same variable, ``other.sums[2]`` another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cccopt.source.statements import Code

_NAME = re.compile(r"[A-Za-z_]\w*(\s*\.\s*[A-Za-z_]\w*|\s*\[\s*[0-9]+\s*\])*", re.ASCII)
_TOKEN = re.compile(r"\w+|[.\[\]]")


def is_variable(text: str) -> bool:
    """Whether `reduce` can name ``text``."""
    return _NAME.fullmatch(text) is not None


def without_blanks(text: str) -> str:
    """The variable as it is spelled in markers and messages."""
    return "".join(text.split())


def in_pragma(variable: str) -> re.Pattern[str]:
    """A pattern that finds the variable in a pragma's text, with or without blanks in it."""
    spelled = r"\s*".join(map(re.escape, _TOKEN.findall(variable)))
    return re.compile(rf"(?<!\w){spelled}(?!\w)")


def whole(variable: str) -> str:
    """The name of the object that the variable is a part of."""
    name: str = _TOKEN.findall(variable)[0]
    return name


def places(code: Code, start: int, end: int, variable: str) -> Iterator[int]:
    """Where the tokens from ``start`` to ``end`` spell the variable, also as a member of something else."""
    wanted = _TOKEN.findall(variable)
    for index in range(start, end - len(wanted) + 1):
        if all(code.text(index + k) == word for k, word in enumerate(wanted)):
            yield index


def is_member(code: Code, index: int) -> bool:
    """Whether the name at ``index`` is that of a member, whose object is written before it."""
    return code.text(index - 1) in (".", "::") or (code.text(index - 2), code.text(index - 1)) == ("-", ">")
