"""What nvcc runs in place of cicc on a text with pragmas of ours: ``REAL_TOOL arguments...``.

cicc compiles the text with marks in it, the passes rewrite the PTX, and that is what nvcc goes on with. On
any failure there is no PTX at all.
"""

from __future__ import annotations

import json
import secrets
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from cccopt.diagnostic import CccError, Diagnostic, Severity, error, render
from cccopt.driver import Unit, failure_data, report_data, rewrite_unit
from cccopt.files import read_text, write_text
from cccopt.passes.pipeline import Options
from cccopt.source.annotate import annotate
from cccopt.source.strip import strip
from cccopt.toolchain.call import Call
from cccopt.toolchain.settings import Settings


class ToolFailed(Exception):
    """The real cicc refused the user's program, and said why."""

    def __init__(self, status: int, messages: str) -> None:
        super().__init__(messages)
        self.status = status
        self.messages = messages


class DeviceCompiler:
    """The real cicc as a function from preprocessed text to PTX; ``messages`` are those for the unmarked
    text.

    What it says of a marked text quotes our marks, so it is asked again about the text as the user wrote it.
    """

    def __init__(self, call: Call, plain: str, keep: str) -> None:
        self._call, self._plain, self._keep = call, plain, keep
        self._runs = 0
        self.messages = ""

    def __call__(self, text: str) -> str:
        self.messages = ""
        outcome = self._call.run(text)
        self._runs += 1
        self.keep(f"{self._runs}.ii", text)
        if text != self._plain and outcome.messages:
            plain = self._call.run(self._plain)
            if plain.status != 0:
                raise ToolFailed(plain.status, plain.messages)
            if outcome.status != 0:
                raise CccError(_marks_refused(outcome.messages))
            self.messages = plain.messages
        elif outcome.status != 0:
            raise ToolFailed(outcome.status, outcome.messages)
        else:
            self.messages = outcome.messages
        self.keep(f"{self._runs}.ptx", outcome.ptx)
        return outcome.ptx

    def keep(self, suffix: str, text: str) -> None:
        """Save a stage of the work as ``FILE.ARCH.suffix``, when that was asked for."""
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
    except KeyboardInterrupt:
        return 130  # as a shell reports it
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
    """End as the signal would have us, but with temporary files removed and the real cicc stopped."""
    sys.exit(128 + number)


def _compile(call: Call, settings: Settings) -> int:
    text = read_text(call.source)
    compiler = DeviceCompiler(call, strip(text), settings.keep)
    try:
        unit = _unit(text, call, settings, compiler)
    finally:
        # Whatever became of the regions: what nvcc has to say of the program stays readable.
        sys.stderr.write(compiler.messages)
    for remark in unit.remarks:
        if settings.verbose or remark.severity is Severity.WARNING:
            print(render(remark), file=sys.stderr)
    if call.output is not None:
        compiler.keep("ptx", unit.ptx)
        write_text(call.output, f"{unit.ptx}{settings.stamp}\n" if settings.stamp else unit.ptx)
    _report(settings, report_data(unit, call.file, call.arch))
    return 0


def _unit(text: str, call: Call, settings: Settings, compiler: DeviceCompiler) -> Unit:
    if call.links_late and settings.mode != "off" and annotate(text, call.file).regions:
        return _without_rewrite(compiler, strip(text), settings)
    options = Options(mode=settings.mode, keep_going=settings.keep_going, file=call.file)
    return rewrite_unit(text, options, compiler)


def _without_rewrite(compiler: DeviceCompiler, plain: str, settings: Settings) -> Unit:
    """Code that is made at link time comes from cicc's own format: a rewritten PTX would be ignored there."""
    severity = Severity.WARNING if settings.keep_going else Severity.ERROR
    trouble = Diagnostic(
        "CCC087",
        severity,
        "annotations have no effect on code that is generated at link time",
        why="with -dlto, code=lto_* or -optix-ir nvcc compiles an intermediate form that holds no PTX",
        help="compile annotated files without link-time optimization, or with --ccc=off",
    )
    if severity is Severity.ERROR:
        raise CccError(trouble)
    return Unit(compiler(plain), remarks=(trouble,))


def _marks_refused(messages: str) -> Diagnostic:
    return error(
        "CCC088",
        "nvcc refuses the marks that stand for the annotations",
        why=messages.strip(),
        help="compile this file with --ccc=off; the text without annotations compiles",
    )


def _report(settings: Settings, data: dict[str, Any]) -> None:
    if settings.reports:
        name = f"{Path(data['file']).stem}.{data['arch']}.{secrets.token_hex(4)}.json"
        write_text(Path(settings.reports) / name, json.dumps(data))
