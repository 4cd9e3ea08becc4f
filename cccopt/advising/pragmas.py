"""The pragmas of a suggestion, in the form in which they are written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

from cccopt.advising.sums import sums_of
from cccopt.advising.trials import Trial
from cccopt.ccc.function.annotations import Annotation
from cccopt.clauses import Kind
from cccopt.passes.counting.bounds import THREADS
from cccopt.profiling.merging import largest
from cccopt.ptx.ir import Directive, Function, Item, Module
from cccopt.text import Place

PROMISES = {
    Kind.FOR: "the iterations of this loop may run in any order and at the same time",
    Kind.GRID: "the threads of this kernel may do their work in any order and at the same time",
    Kind.FOR_VARIABLE: "the inner iterations of this loop may run in any order and at the same time",
}
"""What a user vouches for by writing a pragma. The other pragmas need no promise."""

SUMS = "sums of this loop or kernel may be computed in any order, which changes the last digits of floating-point sums"
"""The same for a clause `reduce`."""


@dataclass(frozen=True, slots=True)
class Pragma:
    """``#pragma ccc KIND``, to be written above what is at ``place``. ``sums`` are the variables in its clause
    `reduce`, ``in_lane`` says whether it has the clause `inlane`, and ``block`` is the argument of the clause `block`.
    """

    kind: Kind
    place: Place
    sums: tuple[str, ...] = ()
    in_lane: bool = False
    block: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The whole line."""
        block = f" block({', '.join(map(str, self.block))})" if self.block else ""
        sums = f" reduce(+: {', '.join(self.sums)})" if self.sums else ""
        return f"#pragma ccc {self.kind}{' inlane' if self.in_lane else ''}{block}{sums}"


def pragmas_of(
    trial: Trial, annotations: Mapping[int, Annotation], block: tuple[int, ...]
) -> Iterator[Pragma]:
    """The pragmas of a trial. The one for a ``switch`` is at the label of its first case. If ``block`` is known, stacks
    and the loop over blocks are sized for it.
    """
    sized = (trial.selection.outer, Kind.GRID) in trial.selection.kinds or any(
        report.shared_bytes for report in trial.reports
    )
    sizes = block[: max((i for i, size in enumerate(block, 1) if size > 1), default=1)] if sized else ()
    for number, kind in trial.selection.kinds:
        place, group = annotations[number].place, annotations[number].group
        if group not in (0, number):
            continue
        assert place is not None, "markers of candidates tell their places"
        outer = number == trial.selection.outer
        sums = _sums(trial, annotations) if outer else ()
        yield Pragma(kind, place, sums, outer and trial.selection.in_lane, sizes if outer else ())


def _sums(trial: Trial, annotations: Mapping[int, Annotation]) -> tuple[str, ...]:
    """The variables that a trial sums up in any order; none if not all of them are known."""
    selection = trial.selection
    if not selection.sums:
        return ()
    named = sums_of(selection.kinds, selection.outer, annotations, over_iterations=selection.over_iterations)
    return named if len(named) == selection.sums else ()


def can_be_written(trial: Trial, annotations: Mapping[int, Annotation]) -> bool:
    """Whether the variables whose sums it needs are known."""
    return not trial.selection.sums or bool(_sums(trial, annotations))


def common_block(blocks: Collection[tuple[int, ...]]) -> tuple[int, ...]:
    """The sizes of a block as large as all of these (`largest`); none if no block may be that large."""
    sizes = largest(blocks)
    return sizes if prod(sizes) <= THREADS else ()


def with_bounds(module: Module, blocks: Mapping[str, tuple[int, ...]]) -> Module:
    """The module, with its kernels bounded to blocks of at most these sizes."""

    def bounded(item: Item) -> Item:
        if not isinstance(item, Function) or item.name not in blocks:
            return item
        most = Directive(".maxntid", tuple(map(str, blocks[item.name])))
        return replace(item, directives=(*item.directives, most))

    return Module(tuple(map(bounded, module.items)))
