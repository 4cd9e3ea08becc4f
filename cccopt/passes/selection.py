"""The regions that `--ccc-only` names: the others lose their markers, as if each had the clause `off`.

A region is named by its number (as `cccopt explain` prints it), by its clause `name(...)`, or by the line that `cccopt
explain` prints: `FILE:LINE`, or `:LINE` for any file. Selecting a region also selects all regions inside it, and those
around it, without which it means nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from cccopt.ccc.function.annotations import Annotation, annotations_of, is_annotation
from cccopt.ccc.function.view import view_of
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.regions.marked_loops import find
from cccopt.ccc.regions.paths import Path
from cccopt.diagnostic import CccError, Diagnostic, error
from cccopt.ptx.ir import Function, Item, Module


def selected(module: Module, prepared: Module, only: Sequence[str]) -> Module:
    """``module`` with only the markers of the regions that ``only`` names. ``prepared`` is the same module with all
    loops.

    Raises CccError (CCC089) for a word that names no region of the module, except a line of another file.
    """
    regions = {number: a for f in module.functions() for number, a in annotations_of(f.body or ()).items()}
    named: set[int] = set()
    for word in only if regions else ():
        found = {number for number, annotation in regions.items() if _is(annotation, word)}
        if not found and _may_be_here(word, regions.values()):
            raise CccError(_unknown(word, regions))
        named |= found
    around = _around(prepared)
    kept = named.union(*(around.get(number, ()) for number in named))
    kept |= {number for number, outer in around.items() if not named.isdisjoint(outer)}
    return Module(tuple(_without_others(item, kept) for item in module.items))


def _is(annotation: Annotation, word: str) -> bool:
    if word.isdecimal():
        return annotation.region == int(word)
    file, colon, line = word.rpartition(":")
    if not colon:
        return annotation.name == word
    place = annotation.place
    same = place is not None and str(place.position.line) == line
    return same and (not file or _ends_with(annotation, file))


def _ends_with(annotation: Annotation, file: str) -> bool:
    """Whether the annotation is in ``file``, which may be only the last parts of the path."""
    asked = PurePath(file).parts
    return annotation.place is not None and PurePath(annotation.place.file).parts[-len(asked) :] == asked


def _may_be_here(word: str, annotations: Iterable[Annotation]) -> bool:
    file = word.rpartition(":")[0]
    return not file or any(_ends_with(annotation, file) for annotation in annotations)


def _unknown(word: str, regions: Mapping[int, Annotation]) -> Diagnostic:
    known = (
        f"{number} (`{a.kind}`{f', `{a.name}`' if a.name else ''}{f' at {a.place}' if a.place else ''})"
        for number, a in sorted(regions.items())
    )
    return error(
        "CCC089",
        f"`{word}` is not a region of this file",
        why=f"its regions are {', '.join(known)}",
        help="name a region by its number, by its `name(...)`, or by its line as `FILE:LINE` or `:LINE`",
    )


def _around(module: Module) -> Mapping[int, frozenset[int]]:
    """The regions around each path; none for functions whose regions are refused."""
    found: dict[int, frozenset[int]] = {}

    def walk(paths: Iterable[Path], outer: frozenset[int]) -> None:
        for path in paths:
            number = path.annotation.region
            found[number] = found.get(number, frozenset()) | outer
            walk(path.children, outer | {number})

    for function in module.functions():
        if not any(is_annotation(s) for s in function.body or ()):
            continue
        try:
            regions = find(view_of(module, function)).regions
        except Refusal:
            continue
        for region in regions:
            walk(region.paths, frozenset({region.annotation.region}))
    return found


def _without_others(item: Item, kept: Collection[int]) -> Item:
    if not isinstance(item, Function) or item.body is None:
        return item
    body = (s for s in item.body if not (is_annotation(s) and s.region not in kept))  # type: ignore[union-attr]
    return replace(item, body=tuple(body))
