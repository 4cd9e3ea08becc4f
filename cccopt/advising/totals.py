"""The sums over the iterations of a marked loop, for the clause ``reduce(+: ...)``: `if (hit) ++hits;`.

Without the clause, a path that adds to such a variable cannot run in another lane. With it, each thread gets its own
sum after the loop (docs/how-it-works.md, "Reductions").
"""

from __future__ import annotations

from collections import Counter

from cccopt.advising.source_loops import code_of, extent_of
from cccopt.advising.updates import body_of, declaration_of, updated_by_steps, updated_by_sums
from cccopt.files import read_text
from cccopt.source.declarations import declares
from cccopt.source.variables import places, whole
from cccopt.text import Place


def totals_in(loop: Place) -> tuple[str, ...]:
    """The variables that the iterations of ``loop`` sum up and do not read, in the order of the text."""
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
    )
