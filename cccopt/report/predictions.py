"""The prediction for a marked loop in words: the same in `cccopt explain` and on the page of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def times(cost: Mapping[str, Any]) -> Iterator[str]:
    """The predicted times before and after the rewrite, with their parts, from the ``cost`` of a region in a report."""
    for when in ("before", "after"):
        if (time := cost.get(when)) is not None:
            yield f"{when + ':':8}{_time(time)}"


def _time(time: Mapping[str, float]) -> str:
    added = f", votes and contexts {time['overhead']:,.0f}" if time["overhead"] else ""
    parts = f"code {time['code']:,.0f}{added}; memory traffic {time['memory']:,.0f}"
    # Reports of earlier versions do not have it.
    if waiting := time.get("waiting"):
        parts += f"; waiting {waiting:,.0f}"
    if atomics := time.get("atomics"):
        parts += f"; atomics on one address {atomics:,.0f}"
    return f"{time['total']:,.0f} issue slots per warp iteration ({parts})"
