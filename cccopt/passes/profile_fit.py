"""Remarks on profiles that were made from a different program than the one being rewritten."""

from __future__ import annotations

from collections.abc import Sequence

from cccopt.ccc.function.view import View
from cccopt.ccc.outcome import refusal
from cccopt.ccc.profitability.estimate import fits_to
from cccopt.ccc.profitability.profile import RunProfile
from cccopt.diagnostic import Diagnostic


def misfits(profile: RunProfile, views: Sequence[View]) -> tuple[Diagnostic, ...]:
    """A remark for each function that the profile lacks or whose regions are of other kinds in it."""
    found: list[Diagnostic] = []
    for view in views:
        regions = profile.functions.get(view.function.name)
        name, place = view.function.name, next(iter(view.annotations.values())).place
        if regions is None:
            why = "it has no run of this function, so how often lanes take its paths is assumed"
        elif any(a.region in regions and not fits_to(regions, a) for a in view.annotations.values()):
            why = "the kinds of its regions are not those in the source, which has changed since the profile was made"
        else:
            continue
        found.append(
            refusal.remark(
                "CCC068",
                f"the profile does not fit `{name}`",
                place,
                why,
                "make a new profile from this source, in a run that launches this function",
            )
        )
    return tuple(found)
