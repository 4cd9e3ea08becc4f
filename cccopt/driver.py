"""The whole way from annotated source or marked PTX to rewritten PTX and a report.

`rewrite_unit` is the heart: what happens to one preprocessed file for one architecture between nvcc's front
end and ptxas. `compile` runs nvcc with it in the way, `fat_binary` does so for a text and goes on to machine code,
`transform` starts from PTX. Reports are JSON data (`cccopt.unit`).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from cccopt.ccc.profitability import profile as profiles
from cccopt.ccc.profitability.profile import RunProfile
from cccopt.diagnostic import CccError, Diagnostic, Severity, error
from cccopt.files import read_text, write_text
from cccopt.parts import parts
from cccopt.passes.pipeline import Options, RegionReport, run
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.source.annotate import Region, annotate
from cccopt.source.strip import strip
from cccopt.source.thesis import thesis_annotations
from cccopt.text import Place, Position, SourceText
from cccopt.toolchain.discovery import Nvcc
from cccopt.toolchain.invoke import Run, run_nvcc
from cccopt.toolchain.options import FORMS
from cccopt.toolchain.settings import Settings
from cccopt.unit import Unit, diagnostics_of, report_data, wrap_reports
from cccopt.untouched import with_originals

AnyProfile: TypeAlias = "str | os.PathLike[str] | RunProfile"
"""A profile, or the file that holds it."""


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled source: the rewritten PTX, plain nvcc's PTX of the unmarked text, and the report (JSON
    data).
    """

    ptx: str
    original_ptx: str
    report: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Transformed:
    """A rewritten PTX and the report (JSON data)."""

    ptx: str
    report: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Binary:
    """A fat binary (machine code and PTX) of rewritten code, the report (JSON data), and what nvcc had to say."""

    code: bytes
    report: dict[str, Any]
    messages: str


def compile(
    source: str | os.PathLike[str],
    *,
    arch: str = "sm_90",
    ccc: str = "auto",
    nvcc_options: Sequence[str] = (),
    keep_going: bool = False,
    nvcc: Nvcc | None = None,
    profile: AnyProfile | None = None,
    resident: int | None = None,
    form: str = "auto",
    only: str = "",
) -> Program:
    """Compile the annotated CUDA file ``source`` to PTX for ``arch`` (``sm_90``), rewritten and plain.

    ``ccc`` is ``auto``, ``always`` or ``off``. With ``keep_going`` a refused region is left as it was, with a
    warning in the report. ``profile`` (a file, or what `profile_of` gives) tells ``auto`` how often lanes come to
    each region; ``resident`` is how many blocks of a kernel marked ``grid`` share its work (by default as many as the
    target runs at once). ``form`` (``split``, ``idle-lanes``, ``stack``, ``split,stack``, ``idle-lanes,stack``) forces
    the form of rewritten loops; ``only`` names the regions to rewrite, with commas between. Raises CccError with the
    refusals or the annotation's errors, for a form or region that does not exist (CCC089), or with nvcc's own messages
    (CCC085).
    """
    if "\n" in os.fspath(source):
        raise CccError(
            error(
                "CCC086", "`compile` takes a file's name, and was given text", help="write the text to a file"
            )
        )
    with _as_file(profile) as file:
        settings = Settings(ccc, keep_going, profile=file, resident=resident or 0, form=form, only=only)
        options_of(settings, "")
        rewritten, done = _ptx_of(source, arch, nvcc_options, settings, nvcc)
    plain = rewritten if ccc == "off" else _ptx_of(source, arch, nvcc_options, Settings("off"), nvcc)[0]
    return Program(rewritten, plain, wrap_reports(done.reports))


def fat_binary(
    text: str,
    *,
    name: str = "<text>",
    arch: str = "sm_90",
    ccc: str = "auto",
    nvcc_options: Sequence[str] = (),
    keep_going: bool = False,
    nvcc: Nvcc | None = None,
) -> Binary:
    """Compile the annotated CUDA ``text``, which messages call ``name``, to a fat binary for ``arch``.

    ptxas has run, so all options of nvcc count, and a driver older than nvcc can load it. The other arguments
    and the errors are those of `compile`.
    """
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        source = Path(folder) / "text.cu"
        write_text(source, text)
        code, done = _made("-fatbin", source, arch, nvcc_options, Settings(ccc, keep_going), nvcc)
        done = _renamed(done, str(source), name)
    _check(done, text, name)
    return Binary(code, wrap_reports(done.reports), (done.errors + done.output).strip())


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
) -> Transformed:
    """Rewrite PTX that holds cccopt's markers; without an accepted region the text comes back as it was.

    Raises CccError for PTX that cannot be read (CCC001-009) and for refused regions (CCC030-069).
    """
    settings = Settings(ccc, keep_going, resident=resident or 0, form=form, only=only)
    options = replace(options_of(settings, name), profile=profile_in(profile))
    module = parse(ptx, name)
    if not module.items:
        empty = Place(name, Position(1))
        help = "compile with `ccc-nvcc -ptx`, or `--ccc-keep=DIR` for PTX with marks"
        raise CccError(
            error("CCC002", "there is nothing but white space and comments here", empty, help=help)
        )
    result = run(module, options, SourceText(name, ptx))
    text = print_module(result.module) if _rewritten(result.regions) else ptx
    return Transformed(
        text, wrap_reports([report_data(Unit(text, result.regions, result.remarks), name, "")])
    )


def options_of(settings: Settings, file: str) -> Options:
    """What the passes are told of ``settings`` for the input ``file``.

    Raises CccError for a form that does not exist (CCC089), and for what `profile_in` does.
    """
    if settings.form not in FORMS:
        raise CccError(
            error(
                "CCC089", f"`{settings.form}` is no form of loops", help=f"the forms are {' | '.join(FORMS)}"
            )
        )
    form, expand = FORMS[settings.form]
    return Options(
        mode=settings.mode,
        keep_going=settings.keep_going,
        file=file,
        form=form,
        expand=expand,
        profile=profile_in(settings.profile),
        resident=settings.resident or None,
        only=tuple(word.strip() for word in settings.only.split(",") if word.strip()),
    )


def profile_in(profile: AnyProfile | None) -> RunProfile | None:
    """The profile in a file, or one that is there already. Raises CccError (CCC069, CCC086)."""
    if profile is None or isinstance(profile, RunProfile):
        return profile
    return profiles.read(profile) if os.fspath(profile) else None


@contextmanager
def _as_file(profile: AnyProfile | None) -> Iterator[str]:
    """The name of a file that holds the profile; empty without one."""
    if profile is None or not isinstance(profile, RunProfile):
        yield "" if profile is None else os.path.abspath(os.fspath(profile))
        return
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        profiles.write(Path(folder) / "profile.json", profile)
        yield str(Path(folder) / "profile.json")


def marked_ptx(
    source: str | os.PathLike[str],
    *,
    arch: str = "sm_90",
    nvcc_options: Sequence[str] = (),
    nvcc: Nvcc | None = None,
) -> str:
    """What nvcc's front end makes of ``source`` with all its marks, before any rewrite; empty without
    annotations.

    Raises CccError for errors in annotations, or with nvcc's own messages (CCC085).
    """
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        _ptx_of(source, arch, nvcc_options, Settings("always", keep_going=True, keep=folder), nvcc)
        # The text with all marks is the first that the shim gives to cicc.
        stages = list(Path(folder).glob("*.1.ptx"))
        return read_text(stages[0]) if stages else ""


def rewrite_unit(text: str, options: Options, device_compiler: Callable[[str], str]) -> Unit:
    """Compile the preprocessed ``text``, whose pragmas are still in it, and rewrite what they name.

    ``device_compiler`` makes PTX of preprocessed text. Declined means untouched: marks alone change code, so
    a text none of whose regions is rewritten is compiled without marks, and one with some is compiled again
    with those alone. Raises CccError for errors in annotations and, unless ``options.keep_going``, for
    refused regions.
    """
    if options.mode == "off":
        return Unit(device_compiler(strip(text)))
    asked = annotate(text, options.file)
    wanted = frozenset(region.id for region in asked.regions)
    settled: tuple[RegionReport, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()
    marked_text = asked.text
    while wanted:
        marked = device_compiler(marked_text)
        try:
            split = parts(marked)
            ptx = SourceText(f"{options.file} (PTX)", split.text if split else marked)
            result = run(parse(ptx.text, ptx.name), options, ptx)
        except CccError as problem:
            if not options.keep_going:
                raise
            return Unit(device_compiler(strip(text)), settled, _once(remarks + _as_warnings(problem)))
        accepted = _with_parents(_rewritten(result.regions), asked.regions)
        if accepted == wanted:
            made = split.restored(result.module) if split else print_module(result.module)
            done = {report.kernel for report in result.regions if report.outcome == "rewritten"}
            made = with_originals(made, marked, done, lambda: device_compiler(strip(text)))
            return Unit(made, settled + result.regions, _once(remarks + result.remarks))
        settled += tuple(report for report in result.regions if report.region not in accepted)
        remarks += result.remarks
        wanted = accepted
        # What is marked now is what was chosen.
        options = replace(options, only=())
        marked_text = annotate(text, options.file, only=wanted).text
    return Unit(device_compiler(marked_text), settled, _once(remarks))


def _once(remarks: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """A file that is compiled twice is told of everything once."""
    return tuple(dict.fromkeys(remarks))


def _rewritten(reports: Iterable[RegionReport]) -> frozenset[int]:
    return frozenset(report.region for report in reports if report.outcome == "rewritten")


def _with_parents(ids: frozenset[int], regions: Iterable[Region]) -> frozenset[int]:
    """The regions ``ids`` and all that stand around them: a path means nothing without its loop."""
    parents = {region.id: region.parent for region in regions}
    found: set[int] = set()
    for region in ids:
        around: int | None = region
        while around is not None:
            found.add(around)
            around = parents.get(around)
    return frozenset(found)


def _as_warnings(problem: CccError) -> tuple[Diagnostic, ...]:
    return tuple(replace(diagnostic, severity=Severity.WARNING) for diagnostic in problem.diagnostics)


def _ptx_of(
    source: str | os.PathLike[str], arch: str, options: Sequence[str], settings: Settings, nvcc: Nvcc | None
) -> tuple[str, Run]:
    path = Path(source)
    code, done = _made("-ptx", path, arch, options, settings, nvcc)
    _check(done, read_text(path) if path.is_file() else "", str(path))
    return code.decode("utf-8", "surrogateescape"), done


def _made(
    kind: str, source: Path, arch: str, options: Sequence[str], settings: Settings, nvcc: Nvcc | None
) -> tuple[bytes, Run]:
    """What nvcc makes of ``source`` with the option ``kind`` (nothing where it fails), and its run."""
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        output = Path(folder) / "out"
        arguments = [kind, f"-arch={arch}", *options, str(source), "-o", str(output)]
        done = run_nvcc(arguments, settings, nvcc=nvcc, capture=True)
        return output.read_bytes() if done.status == 0 else b"", done


def _check(done: Run, text: str, name: str) -> None:
    """Raise what a run on ``text``, the file ``name``, failed with."""
    refused = [item for report in done.reports for item in report.get("errors", ())]
    if refused:
        raise CccError(*diagnostics_of(refused))
    if done.status != 0:
        said = (done.errors + done.output).strip()
        failed = error("CCC085", f"nvcc failed with exit status {done.status}", why=said)
        # What nvcc refuses may be owed to annotations in the thesis' spelling (CCC017).
        raise CccError(failed, *thesis_annotations(text, name))


def _renamed(done: Run, path: str, name: str) -> Run:
    """The same run, in which the file ``path`` is called ``name``."""
    before, after = json.dumps(path)[1:-1], json.dumps(name)[1:-1]
    reports = json.loads(json.dumps(done.reports).replace(before, after))
    output, errors = (text.replace(path, name) for text in (done.output, done.errors))
    return replace(done, output=output, errors=errors, reports=tuple(reports))
