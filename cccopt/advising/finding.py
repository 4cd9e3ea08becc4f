"""What `ccc-nvcc --ccc-find` writes into a text before it is compiled: pragmas for the in-lane form.

Lanes then keep their own iterations in order, so nobody has to promise anything. As with `cccopt advise`, the counts of
a run show where the pragmas go. Functions that already hold a pragma stay as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cccopt.advising.pragmas import Pragma
from cccopt.advising.suggestions import Advice, advise_on_run, ranked
from cccopt.ccc.profitability.profile import RegionProfile, RunProfile
from cccopt.diagnostic import Diagnostic, Severity
from cccopt.profiling.run_file import RunFile
from cccopt.profiling.sources import on_disk
from cccopt.source.annotate import MarkedPiece, annotate
from cccopt.source.candidates import annotated_with_candidates, with_pragmas_at
from cccopt.text import Place


@dataclass(frozen=True, slots=True)
class Found:
    """A ``text`` with pragmas, the ``profile`` of all its regions, and ``remarks``; the text is unchanged if nothing is
    worth rewriting.
    """

    text: str
    profile: RunProfile
    remarks: tuple[Diagnostic, ...] = ()


def found_in(text: str, name: str, run: RunFile, profile: RunProfile) -> Found:
    """What pays off in ``text`` (the file ``name``, as preprocessed by nvcc), according to a run of the program that
    counted its candidates. ``profile`` is that of the text's own annotations.

    Raises ValueError if the run is damaged.
    """
    of_file = [a for a in advise_on_run(run, only_in_lane=True) if _is_file(a.unit, name)]
    if not of_file:
        return Found(text, profile, (_unknown(name),))
    # Each case of a `switch` is a region, but they share one pragma, which cannot be written by their numbers.
    advices = [a for a in of_file if a.pays and len(_regions(a)) == len(a.pragmas)]
    candidates = _candidates(text, name)
    numbers = {region.id: index for index, region in enumerate(candidates)}
    places = {region.id: region.place for region in candidates}
    stale = {file for advice in advices for file in _changed(advice, run, places)}
    if stale:
        return Found(text, profile, tuple(map(_stale, sorted(stale))))
    chosen: dict[int, str] = {}
    written: list[Advice] = []
    for advice in ranked(advices):
        pragmas = dict(zip(_regions(advice), map(_clauses, advice.pragmas), strict=True))
        # Kernels that share a function may want different pragmas in it.
        if all(chosen.get(n, pragma) == pragma for n, pragma in pragmas.items()):
            chosen |= pragmas
            written.append(advice)
    new = with_pragmas_at(text, name, {numbers[number]: pragma for number, pragma in chosen.items()})
    added = _added(text, new, name)
    if len(added) != len(chosen):
        return Found(text, profile)
    by_candidate = dict(zip(sorted(chosen), added, strict=True))
    known: dict[str, Mapping[int, RegionProfile]] = dict(profile.functions)
    for advice in written:
        assert advice.best is not None
        known[advice.kernel] = {by_candidate[n]: counts for n, counts in advice.best.profile.items()}
    return Found(new, replace(profile, functions=known))


def _added(text: str, new: str, name: str) -> list[int]:
    """The numbers of the regions that ``new`` has in addition to those of ``text``."""
    own = {region.place for region in annotate(text, name, keep_going=True).regions}
    return [region.id for region in annotate(new, name, keep_going=True).regions if region.place not in own]


def _clauses(pragma: Pragma) -> str:
    return pragma.text.removeprefix("#pragma ccc ")


def _candidates(text: str, name: str) -> list[MarkedPiece]:
    """The region of each pragma that `with_candidates` writes, in order; for a ``switch``, that of its first case."""
    return [r for r in annotated_with_candidates(text, name).regions if r.group in (0, r.id)]


def _regions(advice: Advice) -> Sequence[int]:
    """The candidates of ``advice``, one for each of its pragmas."""
    assert advice.best is not None
    return [number for number, _ in advice.best.selection.kinds]


def _is_file(unit: str, name: str) -> bool:
    return os.path.realpath(unit) == os.path.realpath(name)


def _changed(advice: Advice, run: RunFile, places: Mapping[int, Place]) -> Iterator[str]:
    """The files with its pragmas that are no longer what was counted: their hashes differ, or candidates have moved,
    for example because pragmas were inserted before them.
    """
    for file, source in on_disk({pragma.place.file for pragma in advice.pragmas}).items():
        if source.digest not in (_counted(file, run) or {source.digest}):
            yield file
    for number, pragma in zip(_regions(advice), advice.pragmas, strict=True):
        if number not in places or not _is_place(places[number], pragma.place):
            yield pragma.place.file


def _is_place(now: Place, then: Place) -> bool:
    same = (now.position, now.line_text) == (then.position, then.line_text)
    return same and _is_file(now.file, then.file)


def _counted(file: str, run: RunFile) -> set[str]:
    """The hashes of a file in a run; those of all files of this name if the program was counted in another folder."""
    own = {digest for name, digest in run.sources.items() if _is_file(name, file)}
    return own or {
        digest for name, digest in run.sources.items() if os.path.basename(name) == os.path.basename(file)
    }


def _unknown(name: str) -> Diagnostic:
    return Diagnostic(
        "CCC068",
        Severity.REMARK,
        f"the profile has no counts of candidates in `{name}`",
        why="none of its kernels has a loop or branch that could be annotated, or it was compiled in"
        " another folder",
    )


def _stale(file: str) -> Diagnostic:
    return Diagnostic(
        "CCC068",
        Severity.WARNING,
        f"`{file}` has changed since its candidates were counted",
        why="--ccc-find relies on the counts of a run, and these belong to different code",
        help="build with `ccc-nvcc --ccc-candidates --ccc-instrument` and run `cccopt profile` again",
    )
