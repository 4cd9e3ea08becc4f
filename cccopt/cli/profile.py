"""``cccopt profile -- ./app ...``: show where lanes idle and where the time goes in a program on a GPU.

The program, compiled with `ccc-nvcc --ccc-instrument`, runs twice: with counters, and without them for times. The
results go into one file, which `--ccc-profile` reads; an existing file of that name is replaced. To add up runs, pass
their files.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cccopt.ccc.profitability.decisions import read as read_decisions
from cccopt.ccc.profitability.profile import as_bad_profile
from cccopt.cli.common import console
from cccopt.diagnostic import CccError, Diagnostic, Severity, error, render
from cccopt.files import read_text, require_writable, write_text
from cccopt.profiling.collecting import run_file
from cccopt.profiling.merging import merged
from cccopt.profiling.run_file import RunFile, read, write
from cccopt.profiling.running import Input, ProgramRun, run_program
from cccopt.profiling.sources import files_of, on_disk
from cccopt.report.profile_page import page
from cccopt.report.profile_table import print_run
from cccopt.report.profile_view import SourceView
from cccopt.report.sarif import as_sarif
from cccopt.report.thresholds import Threshold, missed

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_SUFFIX = ".ccc.json"


def add_parser(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command's arguments."""
    parser = commands.add_parser(
        "profile",
        help="count and time the kernels of a program on a GPU",
        usage="cccopt profile [options] [--no-time] -- PROGRAM [ARGUMENT ...]\n"
        "       cccopt profile [options] FILE.ccc.json ...",
        description=f"{__doc__} The exit status is the program's, or 1 for a kernel below --at-least.",
    )
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE.ccc.json",
        help="files of earlier runs, to be added up and shown",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=f"the file to write (default: the program's name with `{_SUFFIX}`, in the current folder)",
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write an HTML page with the source")
    parser.add_argument(
        "--report",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a report of `ccc-nvcc --ccc-report`: the page then shows what became of each marked region",
    )
    parser.add_argument(
        "--decisions",
        type=Path,
        metavar="FILE",
        help="what `cccopt tune` wrote: the page then shows what it measured for each kernel",
    )
    parser.add_argument(
        "--at-least",
        type=_threshold,
        action="append",
        default=[],
        metavar="KERNEL=PERCENT",
        help="fail if the warp efficiency of this kernel is lower; may be repeated",
    )
    parser.add_argument(
        "--sarif",
        type=Path,
        metavar="FILE",
        help="also write what --at-least found, for editors and code reviews",
    )
    parser.add_argument(
        "--no-time", action="store_true", help="run once, with counters: kernels are not timed"
    )
    parser.set_defaults(run=run, listed="files")


def _threshold(text: str) -> Threshold:
    kernel, _, share = text.rpartition("=")
    try:
        found = float(share.removesuffix("%"))
    except ValueError:
        found = -1.0
    if not kernel or not 0 <= found <= 100:
        raise argparse.ArgumentTypeError(f"`{text}` is not a kernel and a percentage, like `bfs=40`")
    return Threshold(kernel, found / 100)


def run(arguments: argparse.Namespace) -> int:
    """Run the program, or read files; write what was asked for and print tables."""
    if arguments.sarif is not None and not arguments.at_least:
        raise CccError(
            _lacks(
                "--sarif", "--at-least", "it writes the kernels that `--at-least` finds below their limits"
            )
        )
    program: list[str] | None = arguments.program
    if program is None:
        return _show(arguments)
    if not program or arguments.files:
        raise CccError(_misused("nothing follows `--`" if not program else _both(arguments.files)))
    output = arguments.output or Path(Path(program[0]).name + _SUFFIX)
    require_writable(output, arguments.html, arguments.sarif)
    rewritten = _rewritten(arguments)
    counted, timed = _observed(program, times=not arguments.no_time)
    for warning in _warnings(counted, timed):
        print(render(warning), file=sys.stderr)
    if not counted.units:
        print(render(_nothing(counted, program)), file=sys.stderr)
        return counted.status or 1
    done = run_file(counted, timed)
    write(output, done)
    _print(done, arguments, Path(program[0]).name, rewritten)
    print(f"wrote {output}")
    return counted.status or _judged(done, arguments)


def _show(arguments: argparse.Namespace) -> int:
    """Add up and show earlier runs."""
    if not arguments.files:
        raise CccError(_misused("there is neither a program nor a file"))
    for file in arguments.files:
        if file.suffix != ".json" and file.is_file():
            raise CccError(_misused(f"`{file}` is not the file of a run"))
    require_writable(arguments.output, arguments.html, arguments.sarif)
    rewritten = _rewritten(arguments)
    done = merged(map(read, arguments.files))
    if arguments.output is not None:
        write(arguments.output, done)
    _print(done, arguments, Path(arguments.files[0]).name.removesuffix(_SUFFIX), rewritten)
    return _judged(done, arguments)


def _print(done: RunFile, arguments: argparse.Namespace, title: str, rewritten: Mapping[str, Any]) -> None:
    sources = on_disk(files_of(done.functions))
    if arguments.html is not None:
        write_text(arguments.html, page(done, sources, title=title, **rewritten))
    print_run(done, sources, console())


def _judged(done: RunFile, arguments: argparse.Namespace) -> int:
    """Say which kernels are below their thresholds; return the exit status."""
    found = list(missed(SourceView(done, on_disk(files_of(done.functions))), arguments.at_least))
    if arguments.sarif is not None:
        write_text(arguments.sarif, as_sarif(found, Path.cwd()))
    for diagnostic in found:
        print(render(diagnostic), file=sys.stderr)
    return int(bool(found))


def _rewritten(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """What the page says about rewritten code: ``reports`` and ``decisions``. Raises CccError for a file that holds
    something else (CCC069), and if there is no page.
    """
    for option in ("report", "decisions"):
        if getattr(arguments, option) and arguments.html is None:
            raise CccError(_lacks(f"--{option}", "--html", "it only adds to the HTML page"))
    decisions = read_decisions(arguments.decisions) if arguments.decisions else None
    return {"reports": _reports(arguments), "decisions": decisions}


def _reports(arguments: argparse.Namespace) -> list[Mapping[str, Any]]:
    found = []
    for file in arguments.report:
        with as_bad_profile(file, "report", "make one with `ccc-nvcc --ccc-report=FILE.json`"):
            report = json.loads(read_text(file))
            for region in (r for unit in report["units"] for r in unit["regions"]):
                _ = region["kernel"], region["region"], region["kind"], region["outcome"]
            found.append(report)
    return found


def _observed(program: Sequence[str], *, times: bool) -> tuple[ProgramRun, ProgramRun | None]:
    """The run with counters; and one without, if times are wanted and the first ended normally with counts."""
    given = Input.of_now()
    # What the program left running may still write there.
    with tempfile.TemporaryDirectory(prefix="cccopt-", ignore_cleanup_errors=True) as folder:
        _say("running with counters")
        counted = run_program(program, _inside(folder, "counted"), counted=True, timed=times)
        if not times or not counted.units or counted.signal:
            return counted, None
        given.again()
        _say("running again without counters, to time the kernels (the program's output is discarded)")
        return counted, run_program(program, _inside(folder, "timed"), counted=False, timed=True)


def _inside(folder: str, name: str) -> Path:
    made = Path(folder) / name
    made.mkdir()
    return made


def _say(what: str) -> None:
    print(f"cccopt profile: {what}", file=sys.stderr, flush=True)


# --- what goes wrong ---


def _warnings(counted: ProgramRun, timed: ProgramRun | None) -> list[Diagnostic]:
    found = [Diagnostic("CCC112", Severity.WARNING, lost) for lost in counted.lost]
    if timed is None:
        return found
    found += [Diagnostic("CCC112", Severity.WARNING, lost) for lost in timed.lost]
    if timed.untimed:
        found.append(
            Diagnostic(
                "CCC113",
                Severity.WARNING,
                "the times of kernels are left out",
                why=timed.untimed,
                help="install CUPTI (`pip install nvidia-cuda-cupti`), or use --no-time",
            )
        )
    if timed.status != counted.status:
        found.append(
            Diagnostic(
                "CCC113",
                Severity.WARNING,
                f"the timed run ended with status {timed.status}, but the run with counters ended with status"
                f" {counted.status}",
                why="the program behaves differently when it is run again, so times and counts may not match",
                help="remove what the first run leaves behind, or use --no-time",
            )
        )
    return found


def _nothing(counted: ProgramRun, program: Sequence[str]) -> Diagnostic:
    """Why there are no counts."""
    if counted.instrumented and (reason := _no_gpu()):
        return error(
            "CCC093",
            f"cannot use a GPU: there is none for `{program[0]}` to run on",
            why=reason,
            help="run it on a machine with an NVIDIA GPU; `cccopt emulate` counts single kernels without one",
        )
    message = f"`{program[0]}` counted nothing"
    if not counted.instrumented:
        return error(
            "CCC111",
            message,
            why="neither the program nor anything that it starts has counters",
            help="compile all files with kernels with `ccc-nvcc --ccc-instrument`, and link again",
        )
    if counted.lost:
        return error("CCC111", message, why=counted.lost[0], help="let the program end by itself")
    why = "it ended without launching a kernel" if counted.used_cuda else "it ended without calling CUDA"
    if counted.used_cuda and counted.blind:
        return error(
            "CCC111",
            message,
            why=f"{why}, or called `cudaDeviceReset`, which discards the counts: only CUPTI can detect that",
            help="install CUPTI (`pip install nvidia-cuda-cupti`), or let the program end without calling"
            " `cudaDeviceReset`",
        )
    if counted.status:
        why += f", with exit status {counted.status}"
    return error("CCC111", message, why=why, help="pass arguments that make it run kernels")


def _no_gpu() -> str:
    """Why no GPU can be used; empty if one can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver is installed (libcuda.so.1)"
    count = ctypes.c_int()
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return "the NVIDIA driver does not find a GPU"
    return ""


def _both(files: Sequence[Path]) -> str:
    return f"`{files[0]}` comes before `--`, but files and a program cannot be combined"


def _lacks(option: str, other: str, why: str) -> Diagnostic:
    return error("CCC089", f"`{option}` needs `{other}`", why=why, help="add it, or omit the option")


def _misused(why: str) -> Diagnostic:
    return error(
        "CCC089",
        "cannot tell what to profile",
        why=why,
        help="`cccopt profile -- ./app ARGUMENT...` runs a program; `cccopt profile FILE.ccc.json` shows a run",
    )
