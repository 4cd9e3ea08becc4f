"""The rewrite of one unit: preprocessed text between nvcc's front end and ptxas, or PTX with markers.

rewrite_unit: annotated text -> marked text -> (cicc) marked PTX -> (passes) rewritten PTX, and the report's data
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

from cccopt.ccc.outcome.choices import Outcome
from cccopt.ccc.profitability.code_digest import digests
from cccopt.ccc.profitability.decisions import BUILDS, Decisions, applied
from cccopt.diagnostic import CccError, Diagnostic, error
from cccopt.driver import occupancy, unrolled_loops
from cccopt.driver.line_information import with_lines
from cccopt.driver.loops_in_place import loops_in_place
from cccopt.driver.occupancy import Timed
from cccopt.driver.original_functions import with_originals
from cccopt.driver.pass_options import AnyProfile, options_of, profile_in
from cccopt.driver.unconcerned_functions import split_module
from cccopt.driver.unit_report import CompiledUnit, report_data, wrap_reports
from cccopt.driver.unrolled_loops import declined
from cccopt.passes.pipeline import Options, RegionReport, Result, Watch, run
from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.source.annotate import MarkedPiece, annotate
from cccopt.source.strip import strip
from cccopt.source.unreached import unreached
from cccopt.text import Place, Position, SourceText
from cccopt.toolchain.settings import Settings


@dataclass(frozen=True, slots=True)
class Transformed:
    """The result of `transform` for PTX with marks.

    Attributes:
        ptx: The rewritten PTX.
        report: What became of each marked region (JSON data).
    """

    ptx: str
    report: dict[str, Any]


def transform(
    ptx: str,
    *,
    ccc: str = "auto",
    keep_going: bool = False,
    name: str = "<ptx>",
    profile: AnyProfile | None = None,
    resident: int | None = None,
    form: str = "auto",
    only: str = "",
    stacks: str = "auto",
    decisions: Decisions | None = None,
    watch: Watch | None = None,
) -> Transformed:
    """Rewrite PTX that holds cccopt's marks. Arguments that `cccopt.compile` also has mean the same there.

    Args:
        ptx: The text, from `cccopt.driver.marked_ptx` or a generator of PTX.
        ccc: ``auto``, ``always`` or ``off``.
        keep_going: Leave a function with a refused region as it was, with a warning in the report.
        name: The name of the text in messages.
        profile: How often lanes reach each region: a file, or a result of `profile_of`.
        resident: How many blocks of a kernel marked ``grid`` share its work.
        form: The form of rewritten loops.
        only: The regions to rewrite, separated by commas.
        stacks: The memory in which tasks wait.
        decisions: What `cccopt tune` measured for the kernels in ``ptx``.
        watch: Called with the name of each pass and the module that it made; before that, with the word ``ptx`` and
            the module as it was read.

    Returns:
        The rewritten PTX and a report; the unchanged text if no region is rewritten.

    Raises:
        CccError: For PTX that cannot be read (CCC001-009), for refused regions (CCC030-067, CCC104, CCC108,
            CCC109, CCC122), for a form, memory or region that does not exist (CCC089), and for a profile that cannot
            be read (CCC086) or is not a profile (CCC069).
        ValueError: For a ``ccc`` that is not a mode.
    """
    settings = Settings(ccc, keep_going, resident=resident or 0, form=form, only=only, stacks=stacks)
    options = replace(options_of(settings, name), profile=profile_in(profile))
    module = parse(ptx, name)
    if not module.items:
        empty = Place(name, Position(1))
        help = "compile with `ccc-nvcc -ptx`, or `--ccc-keep=FOLDER` for PTX with marks"
        raise CccError(
            error("CCC002", "the text contains nothing but white space and comments", empty, help=help)
        )
    measured = digests(module)
    builds, said = applied(decisions, measured)
    if watch is not None:
        watch("ptx", module)
    options = replace(options, builds=builds)
    result = run(module, options, SourceText(name, ptx), watch)
    timed = occupancy.timed(result.regions, partial(print_module, result.module), module, options)
    reports = timed.reports
    if timed.crowded and not options.only:
        result = run(module, _plain(options, timed.crowded), SourceText(name, ptx), watch)
        reports = declined(timed.reports, timed.crowded) + result.regions
        said += occupancy.remarks(timed.crowded)
    text = print_module(result.module) if _rewritten(result.regions) else ptx
    unit = CompiledUnit(text, reports, said + result.remarks, measured)
    return Transformed(text, wrap_reports([report_data(unit, name, "")]))


def rewrite_unit(
    text: str,
    options: Options,
    device_compiler: Callable[[str], str],
    lines_compiler: Callable[[str], str] | None = None,
    decisions: Decisions | None = None,
    most_registers: int | None = None,
) -> CompiledUnit:
    """Compile the preprocessed ``text``, which still has its pragmas, and rewrite what they mark.

    ``device_compiler`` makes PTX of preprocessed text, ``lines_compiler`` the same with line information, which errors
    quote; ``decisions`` are for its kernels; ``most_registers`` is the user's limit. Declined means untouched: markers
    by themselves change code. So if no region is rewritten, the text is compiled without markers; if only some are,
    again with only their markers. Raises CccError for errors in annotations and for refused regions, unless
    ``options.keep_going``.
    """
    if options.mode == "off":
        return CompiledUnit(device_compiler(strip(text)))
    asked = annotate(text, options.file, keep_going=options.keep_going)
    wanted = frozenset(region.id for region in asked.regions)
    parents = {region.id: region.parent for region in asked.regions}
    reports: tuple[RegionReport, ...] = ()
    remarks = asked.warnings
    marked_text = asked.text
    measured: dict[str, str] = {}
    plain = cache(lambda: device_compiler(strip(text)))
    named = bool(options.only)
    while wanted:
        marked = _Marked(device_compiler(marked_text), options.file)
        lines = None if lines_compiler is None else partial(lines_compiler, marked_text)
        if marked_text == asked.text:
            remarks += unreached(asked.regions, marked.text)
        try:
            if marked_text == asked.text:
                measured = digests(marked.module)
                builds, said = applied(decisions, measured)
                options, remarks = replace(options, builds=builds), remarks + said
            result = marked.run(options)
            accepted = _with_parents(_rewritten(result.regions), asked.regions)
            if accepted == wanted:
                timed = marked.timed(result, options, most_registers)
                result = replace(result, regions=timed.reports)
                left, whys = (frozenset[str](), ()) if named else _left(marked, result, timed, options, plain)
                if left:
                    reports += declined(result.regions, left)
                    remarks += whys
                    options = _plain(options, left)
                    result = marked.run(options)
                    accepted = _with_parents(_rewritten(result.regions), asked.regions)
        except CccError as problem:
            if not options.keep_going:
                raise type(problem)(
                    *with_lines(problem.diagnostics, marked.text, options, lines)
                ) from problem
            warnings = tuple(diagnostic.as_warning() for diagnostic in problem.diagnostics)
            return CompiledUnit(plain(), reports, _once(remarks + warnings), measured)
        remarks += with_lines(result.remarks, marked.text, options, lines)
        # From now on only the chosen regions are marked.
        options = replace(options, only=())
        mark = partial(annotate, text, options.file, keep_going=options.keep_going)
        if accepted == wanted:
            alone, in_place = loops_in_place(result.regions)
            if in_place:
                less = _Marked(device_compiler(mark(wanted - in_place, alone).text), options.file)
                found = _again(less, _without(options, in_place, parents), result.regions, in_place)
                marked, result = (marked, result) if found is None else found
            done = {report.kernel for report in result.regions if report.outcome is Outcome.REWRITTEN}
            made = with_originals(marked.restored(result.module), marked.text, done, plain)
            return CompiledUnit(made, reports + result.regions, _once(remarks), measured)
        reports += tuple(report for report in result.regions if report.region not in accepted)
        options = _without(options, wanted - accepted, parents)
        wanted = accepted
        marked_text = mark(wanted).text
    return CompiledUnit(plain(), reports, _once(remarks), measured)


def _left(
    marked: _Marked, result: Result, timed: Timed, options: Options, plain: Callable[[], str]
) -> tuple[frozenset[str], tuple[Diagnostic, ...]]:
    """The rewritten kernels that are better left alone, and why."""
    unrolled = unrolled_loops.unrolled_kernels(result.regions, options, marked.module, plain)
    crowded = {kernel: loops for kernel, loops in timed.crowded.items() if kernel not in unrolled}
    whys = unrolled_loops.remarks(unrolled) + occupancy.remarks(crowded)
    return frozenset({*unrolled, *crowded}), whys


def _plain(options: Options, kernels: Iterable[str]) -> Options:
    """The options with ``kernels`` left alone."""
    return replace(options, builds={**options.builds, **dict.fromkeys(kernels, BUILDS["plain"])})


def _without(options: Options, regions: Collection[int], parents: Mapping[int, int | None]) -> Options:
    """The options for a text without the marks of ``regions``."""
    return (
        options
        if options.profile is None
        else replace(options, profile=options.profile.without(regions, parents))
    )


class _Marked:
    """PTX ``text`` with markers, and the part of it that they concern as a ``module``."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self._split = split_module(text)
        self._source = SourceText(f"{file} (PTX)", self._split.text if self._split else text)

    @cached_property
    def module(self) -> Module:
        """Raises PtxError if the text cannot be read."""
        return parse(self._source.text, self._source.name)

    def run(self, options: Options) -> Result:
        """Rewrite the module. Raises CccError as `run` does."""
        return run(self.module, options, self._source)

    def timed(self, result: Result, options: Options, most_registers: int | None) -> Timed:
        """The result's reports with times that take occupancy into account."""
        text = partial(self.restored, result.module)
        return occupancy.timed(result.regions, text, self.module, options, most_registers)

    def restored(self, module: Module) -> str:
        """The whole text with the rewritten ``module``."""
        return self._split.restored(module) if self._split else print_module(module)


def _again(
    marked: _Marked, options: Options, reports: Sequence[RegionReport], in_place: Collection[int]
) -> tuple[_Marked, Result] | None:
    """The text ``marked``, without markers of the regions ``in_place``, and its rewrite; None if that differs from the
    ``reports`` for the text with these markers.
    """
    try:
        result = marked.run(options)
    except CccError:
        return None
    made: dict[tuple[str, int], list[RegionReport]] = {}
    for report in result.regions:
        made.setdefault((report.kernel, report.region), []).append(report)
    regions: list[RegionReport] = []
    for report in reports:
        found = [report] if report.region in in_place else made.get((report.kernel, report.region), [])
        if not found or found[0].outcome is not report.outcome:
            return None
        regions.append(found.pop(0))
    return None if any(made.values()) else (marked, replace(result, regions=tuple(regions)))


def _once(remarks: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Each remark once: a file that is compiled twice repeats it."""
    return tuple(dict.fromkeys(remarks))


def _rewritten(reports: Iterable[RegionReport]) -> frozenset[int]:
    return frozenset(report.region for report in reports if report.outcome is Outcome.REWRITTEN)


def _with_parents(ids: frozenset[int], regions: Iterable[MarkedPiece]) -> frozenset[int]:
    """The regions ``ids`` and all that enclose them: a path means nothing without its loop."""
    parents = {region.id: region.parent for region in regions}
    found: set[int] = set()
    for region in ids:
        around: int | None = region
        while around is not None:
            found.add(around)
            around = parents.get(around)
    return frozenset(found)
