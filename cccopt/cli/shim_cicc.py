"""What nvcc runs in place of cicc on a text with our pragmas, or one to instrument: ``REAL_TOOL arguments...``.

cicc compiles the text with markers in it, the passes rewrite the PTX, and nvcc goes on with the result. On any failure,
no PTX is written. What the passes need is imported while cicc works.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from cccopt.diagnostic import CccError, Diagnostic, Severity, error, render
from cccopt.driver.unit_report import CompiledUnit, failure_data, report_data
from cccopt.files import read_text, write_text
from cccopt.source.annotate import annotate
from cccopt.source.strip import strip
from cccopt.toolchain.call import Call, CallResult, Running
from cccopt.toolchain.settings import Settings

if TYPE_CHECKING:
    from cccopt.advising.finding import Found
    from cccopt.ccc.profitability.profile import RunProfile

_OBJECTS = 20_000
"""The number of new objects after which Python looks for garbage. With its default of 700, it would do so hundreds of
times while a file is rewritten, though most objects live on.
"""


class ToolFailed(Exception):
    """The real cicc rejected the user's program, and said why."""

    def __init__(self, status: int, messages: str) -> None:
        super().__init__(messages)
        self.status = status
        self.messages = messages


class DeviceCompiler:
    """The real cicc as a function from preprocessed text to PTX.

    Its messages on a marked text quote our markers, so it also compiles the text as the user wrote it: ``messages``
    come from that. ``seconds`` is the processor time of each run.
    """

    def __init__(self, call: Call, text: str, keep: str) -> None:
        self._call, self._text, self._keep = call, text, keep
        self._started: dict[str, Running] = {}
        self._done: dict[str, CallResult] = {}
        self._stage = 0
        self.messages = ""
        self.seconds: list[float] = []

    @contextmanager
    def started(self, text: str) -> Iterator[None]:
        """Let cicc work on ``text``, whose PTX is needed later, while the caller does something else."""
        with self._call.running(text) as tool:
            self._started[text] = tool
            yield

    def __call__(self, text: str) -> str:
        self.messages = ""
        outcome = self._run(text)
        self._stage += 1
        self.keep(f"{self._stage}.ii", text)
        if outcome.messages and text != self._plain:
            plain = self._run(self._plain)
            if plain.status != 0:
                raise ToolFailed(plain.status, plain.messages)
            if outcome.status != 0:
                raise CccError(_markers_refused(outcome.messages))
            self.messages = plain.messages
        elif outcome.status != 0:
            raise ToolFailed(outcome.status, outcome.messages)
        else:
            self.messages = outcome.messages
        self.keep(f"{self._stage}.ptx", outcome.ptx)
        return outcome.ptx

    def with_lines(self, text: str) -> str:
        """The PTX of ``text`` with line information, which messages need; empty if cicc gives none."""
        return self._call.with_lines.run(text).ptx

    def _run(self, text: str) -> CallResult:
        if text not in self._done:
            tool = self._started.pop(text, None)
            self._done[text] = self._call.run(text) if tool is None else tool.wait()
            self.seconds.append(self._done[text].seconds)
        return self._done[text]

    @cached_property
    def _plain(self) -> str:
        return strip(self._text)

    def keep(self, suffix: str, text: str) -> None:
        """Save a stage of the work as ``FILE.ARCH.suffix``, if that is requested."""
        if self._keep:
            name = f"{Path(self._call.file).stem}.{self._call.arch}.{suffix}"
            write_text(Path(self._keep) / name, text)


def main(argv: Sequence[str]) -> int:
    """Run the tool ``argv[0]``; returns its exit status, or 1 for an error of ours."""
    signal.signal(signal.SIGTERM, _end)
    settings = Settings.from_environment()
    call = Call(argv[0], tuple(argv[1:]))
    try:
        return _compile(call, settings)
    except ToolFailed as failure:
        sys.stderr.write(failure.messages)
        return failure.status
    except Exception as problem:
        from cccopt.cli.failure import as_errors

        errors = as_errors(problem, settings.keep)
        print(errors, file=sys.stderr)
        _report(settings, failure_data(errors, call.file, call.arch))
        return 1


def _end(number: int, _: FrameType | None) -> None:
    """End as the signal demands, but remove temporary files and stop the real cicc."""
    sys.exit(128 + number)


def _compile(call: Call, settings: Settings) -> int:
    text = read_text(call.source)
    compiler = DeviceCompiler(call, text, settings.keep)
    try:
        unit = _unit(text, call, settings, compiler)
    finally:
        # Whatever became of the regions, nvcc's messages on the program are shown.
        sys.stderr.write(compiler.messages)
    # Of text that is only checked, no annotation reaches a kernel.
    said = [r for r in unit.remarks if not (call.makes_no_code and r.code == "CCC019")]
    for remark in said:
        if settings.verbose or remark.severity is Severity.WARNING:
            print(render(remark), file=sys.stderr)
    if call.output is not None:
        compiler.keep("ptx", unit.ptx)
        ptx = f"{unit.ptx}{settings.stamp}\n" if settings.stamp else unit.ptx
        if str(call.output) == "-":  # as with the real cicc
            sys.stdout.write(ptx)
        else:
            write_text(call.output, ptx)
    data = report_data(unit, call.file, call.arch)
    _report(settings, {**data, "device_compiler_seconds": compiler.seconds})
    return 0


def _unit(text: str, call: Call, settings: Settings, compiler: DeviceCompiler) -> CompiledUnit:
    if settings.instrument:
        return _instrumented(text, call, settings, compiler)
    if settings.candidates:
        from cccopt.source.candidates import annotated_with_candidates

        asked = annotated_with_candidates(text, call.file)
        return CompiledUnit(compiler(asked.text), remarks=asked.warnings)
    if settings.mode == "off":
        return CompiledUnit(compiler(strip(text)))
    asked = annotate(text, call.file, keep_going=settings.keep_going)
    if call.links_late and asked.regions:
        return _without_rewrite(compiler, strip(text), settings)
    # What is found goes into the text before cicc gets it.
    with nullcontext() if settings.find else compiler.started(asked.text):
        # These imports take 0.15 s, about as long as cicc does for a small file, and what they create lives to the
        # end: looking for garbage in it would take 0.05 s.
        gc.disable()
        from cccopt.ccc.profitability.decisions import read as read_decisions
        from cccopt.driver import options_of, rewrite_unit
        from cccopt.ptx.parser import keep_tables, prepare

        keep_tables(Path(sys.argv[0]).with_name("ptx.tables"))
        prepare()
        gc.freeze()
        gc.set_threshold(_OBJECTS)
        gc.enable()
        decisions = read_decisions(settings.decisions) if settings.decisions else None
        given = replace(options_of(settings, call.file), relocatable=call.is_relocatable)
        compile = partial(
            rewrite_unit,
            device_compiler=compiler,
            lines_compiler=compiler.with_lines,
            decisions=decisions,
            most_registers=call.most_registers,
        )
        if settings.find and not call.links_late:
            found = _found(text, call, settings, given.profile)
            # The marks of what was found are not those of the trial: if it is refused now, the text stays as it is.
            with suppress(CccError):
                finding = replace(given, profile=found.profile)
                unit = compile(found.text, finding)
                return replace(unit, remarks=found.remarks + unit.remarks)
        return compile(text, given)


def _found(text: str, call: Call, settings: Settings, profile: RunProfile | None) -> Found:
    """The unannotated code that is worth rewriting according to the profile."""
    from cccopt.advising.finding import found_in
    from cccopt.ccc.profitability.profile import RunProfile, as_bad_profile
    from cccopt.profiling.run_file import read
    from cccopt.source.candidates import annotated_with_candidates

    run = read(settings.profile)
    # A program may have none; only if this file has some did the build of the run not count them.
    if not run.candidates and annotated_with_candidates(text, call.file).regions:
        raise CccError(
            error(
                "CCC069",
                f"`{settings.profile}` contains no counts of candidates",
                why="--ccc-find rewrites unannotated code for which a run predicts a gain",
                help="build with `ccc-nvcc --ccc-candidates --ccc-instrument` and run `cccopt profile`",
            )
        )
    with as_bad_profile(settings.profile):
        return found_in(text, call.file, run, profile or RunProfile({}))


def _instrumented(text: str, call: Call, settings: Settings, compiler: DeviceCompiler) -> CompiledUnit:
    from cccopt.cli.shim_instrument import annotated, compiled
    from cccopt.source.candidates import annotated_with_candidates

    how = annotated_with_candidates if settings.candidates else annotated
    mark = how if settings.mode != "off" else None
    made, unit = compiled(call, text, mark, what=settings.instrument)
    compiler.seconds.append(made.seconds)
    if unit is None:
        raise ToolFailed(made.status, made.messages)
    compiler.messages = made.messages
    compiler.keep("1.ptx", made.ptx)
    return unit


def _without_rewrite(compiler: DeviceCompiler, plain: str, settings: Settings) -> CompiledUnit:
    """The unit without a rewrite: code generated at link time comes from cicc's own format, so rewritten PTX would be
    ignored.
    """
    severity = Severity.WARNING if settings.keep_going else Severity.ERROR
    trouble = Diagnostic(
        "CCC087",
        severity,
        "annotations have no effect on code that is not generated from PTX",
        why="with -dlto, code=lto_* or -optix-ir, nvcc generates an intermediate form, for the linker or for OptiX, and"
        " ignores any PTX",
        help="compile annotated files without link-time optimization or -optix-ir, or with --ccc=off",
    )
    if severity is Severity.ERROR:
        raise CccError(trouble)
    return CompiledUnit(compiler(plain), remarks=(trouble,))


def _markers_refused(messages: str) -> Diagnostic:
    return error(
        "CCC088",
        "nvcc rejects the marks of the annotations",
        why=messages.strip(),
        help="compile this file with --ccc=off; the text without annotations compiles",
    )


def _report(settings: Settings, data: dict[str, Any]) -> None:
    if settings.reports:
        import json  # not before cicc works

        name = f"{Path(data['file']).stem}.{data['arch']}.{os.urandom(4).hex()}.json"
        write_text(Path(settings.reports) / name, json.dumps(data))
