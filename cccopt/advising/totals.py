"""The sums over the iterations of a marked loop of which only the total matters, for the clause ``reduce(+: ...)``.

Tasks move to other lanes, and with them what they add. After the loop, each lane holds some part of the sum, and only
the total over all lanes of the warp is right. So the code after the loop must do nothing with a sum but combine those
of all lanes: add it to memory with an atomic, pass it to a function that reduces, or exchange it in shuffles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from cccopt.advising.source_loops import code_of, extent_of
from cccopt.advising.updates import body_of, declaration_of, updated_by_steps, updated_by_sums
from cccopt.files import read_text
from cccopt.source.declarations import declares
from cccopt.source.restricted import heads_around
from cccopt.source.statements import Code
from cccopt.source.variables import places, whole
from cccopt.text import Place

_COMBINES = re.compile(r"__shfl\w*|\w*[Rr]educe\w*|\w*(?:[Ww]arp|[Bb]lock)\w*[Ss]um\w*|Sum")
_SAME_FOR_ALL = frozenset({"blockIdx", "gridDim", "blockDim"})
_FUNCTION = frozenset({"__global__", "__device__"})


def totals_in(loop: Place) -> tuple[str, ...]:
    """The variables that the iterations of ``loop`` sum up and do not read, and that are only combined after it, in the
    order of the text.
    """
    extent = extent_of(loop)
    if extent is None:
        return ()
    start, end = extent
    code = code_of(read_text(loop.file))
    body = body_of(code, start)
    if body is None:
        return ()
    updates = Counter([*updated_by_sums(code, body, end), *updated_by_steps(code, body, end)])
    return tuple(
        name
        for name, count in updates.items()
        if not declares(code, start, end, whole(name))
        and len([*places(code, start, end, name)]) == count
        and "*" not in declaration_of(code, 0, start, whole(name))
        and _is_combined(code, start, end, name)
    )


def _is_combined(code: Code, loop: int, after: int, name: str) -> bool:
    """Whether the code after a loop, to the end of the function, only combines the variable with other lanes' parts."""
    around = heads_around(code, loop)
    brace = next((b for head, b in around if _FUNCTION & {code.text(i) for i in range(head, b)}), None)
    if brace is None or brace not in code.partners:
        return False
    found = places(code, after, code.partners[brace], whole(name))
    return all(
        _is_target(code, i) or any(_combines(code, call, i) for call in _calls(code, i)) for i in found
    )


def _is_target(code: Code, index: int) -> bool:
    """Whether the variable at ``index`` is what a statement adds a shuffled value to."""
    return (code.text(index + 1), code.text(index + 2)) == ("+", "=") and code.text(index + 3).startswith(
        "__shfl"
    )


def _calls(code: Code, index: int) -> Iterator[int]:
    """The opening brackets of the calls to which an expression at ``index`` is passed, from the inside out."""
    at = index - 1
    while at >= 0 and code.text(at) not in (";", "{", "}"):
        if code.text(at) == "(":
            yield at
        at = (code.partners.get(at, at) if code.text(at) in (")", "]") else at) - 1


def _combines(code: Code, call: int, index: int) -> bool:
    """Whether a call combines what all lanes pass: an atomic addition, to a place that is the same for all, or any
    function that is called a reduction.
    """
    callee = code.text(call - 1)
    if not callee.startswith("atomicAdd"):
        return _COMBINES.fullmatch(callee) is not None
    comma = next((i for i in range(call, index) if code.text(i) == ","), call)
    words = [i for i in range(call + 1, comma) if code.text(i).isidentifier()]
    return all(
        i == words[0] or code.text(i - 1) in (".", ">") or code.text(i) in _SAME_FOR_ALL for i in words
    )
