"""What `auto` rewrites without a profile: code that, as far as is known, gains even if lanes do not differ.

The code does not say how much lanes differ. If all of them take a path or run equally many inner iterations,
collecting only adds cost: of 24 public kernels for which assumed numbers promised a gain, 13 ran slower
(docs/decisions/0027-nothing-tells.md). Inner iterations that are laid side by side read memory side by side, whatever
their number, so only expanded loops are known to gain, and paths only together with such a loop in them
(docs/decisions/0047-only-expanded-loops-without-a-profile.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from cccopt.ccc.profitability import model
from cccopt.ccc.profitability.flows import LoopFlow, PathFlow

UNKNOWN = "it is not known how much lanes diverge here; if they do not, collecting only adds cost"


def uncertain(flow: LoopFlow, chosen: Collection[int], *, counted: bool = False) -> frozenset[int]:
    """Those of the ``chosen`` paths that may lose together with the others, as far as is known without a profile. With
    ``counted``, the numbers of ``flow`` are a profile's, but may be wrong.
    """
    sure: set[int] = set()
    for path in flow.paths:
        together = {path.key, *(around.key for around in _around(flow, path))}
        if path.expanded and together.issubset(chosen) and (counted or _issues_less(flow, together)):
            sure |= together
    return frozenset(chosen) - sure


def _issues_less(flow: LoopFlow, paths: Collection[int]) -> bool:
    """Whether collecting ``paths`` is expected to gain even if caches deliver what an expanded loop would save."""
    return model.slots(flow, ()) >= model.LEAST_GAIN * model.slots(flow, paths)


def _around(flow: LoopFlow, path: PathFlow) -> Iterator[PathFlow]:
    """The paths around ``path``, innermost first."""
    by_key = {other.key: other for other in flow.paths}
    while path.parent is not None:
        path = by_key[path.parent]
        yield path
