"""``ccc-nvcc``: nvcc's command line with a few options of ours; everything else goes to nvcc unchanged.

A build runs this for every file, and most files hold no annotations: what only some compilations need is imported
when they need it (`cccopt.cli.around_nvcc`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from zlib import crc32

from cccopt.cli.start import INTERRUPTED
from cccopt.toolchain import cache, options
from cccopt.toolchain.launch import launch
from cccopt.version import __version__

_VERSION = ("--version", "-V")
_HELP = ("--help", "-h")


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns nvcc's exit status, or 1 for an error of ours."""
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        from cccopt.cli.failure import reader_left

        return reader_left()
    except Exception as problem:
        from cccopt.cli.failure import report

        return report(problem, options.value_of("--ccc-keep", sys.argv if argv is None else argv))


def _run(words: list[str]) -> int:
    given, arguments = options.split(words)
    named = arguments.pop(0) if arguments and _is_compiler(arguments[0]) else None
    before, after, variables = options.split_variables(os.environ)
    ours = options.absolute([*before, *given, *after])
    if not all(map(options.is_known, ours)) or any(
        map(_misplaced, options.words_in_files(arguments, os.environ))
    ):
        from cccopt.cli.around_nvcc import refuse_options

        refuse_options(ours)
    if options.FIND in ours and not options.value_of("--ccc-profile", ours):
        from cccopt.cli.around_nvcc import refuse_find

        refuse_find()
    if any(word in _HELP for word in arguments):
        from cccopt.cli.around_nvcc import print_help

        print_help()
    environment = {**os.environ, **variables}
    stamp = f"cccopt {__version__} (cfg {_configuration(ours)})"
    found = cache.recall(named)
    if found is None:
        from cccopt.cli.around_nvcc import find_program

        found = find_program(named)
    program, warning = found
    if warning:
        print(warning, file=sys.stderr, flush=True)
    folder = _folder()
    environment |= {
        options.OPTIONS: "\n".join(ours),
        options.REPORTS: folder,
        options.STAMP: f"// {stamp}" if options.makes_ptx(arguments, environment) else "",
    }
    try:
        status = _compile(program, arguments, environment, ours)
        if status == 0 and any(word in _VERSION for word in arguments):
            print(stamp, flush=True)
        if status != 0 or options.value_of("--ccc-report", ours):
            from cccopt.cli.around_nvcc import conclude

            status = conclude(status, arguments, environment)
    finally:
        _remove(folder)
    return status


def _compile(program: str, arguments: list[str], environment: Mapping[str, str], ours: Sequence[str]) -> int:
    """Check that nvcc's outputs can be written, rewrite marked PTX among its inputs, and run it."""
    keep, report = (options.value_of(name, ours) for name in ("--ccc-keep", "--ccc-report"))
    if keep or report:
        from cccopt.files import make_folder, require_writable

        if report.endswith(os.sep):
            make_folder(report)
        else:
            require_writable(report or None)
        if keep:
            make_folder(keep)
    reads_ptx = any(word.endswith(".ptx") for word in options.all_words(arguments, environment))
    rewrites = (
        options.value_of("--ccc", ours) != "off"
        and not options.counted(ours)
        and options.CANDIDATES not in ours
    )
    if reads_ptx and rewrites:
        from cccopt.cli.around_nvcc import with_rewritten_ptx

        arguments = with_rewritten_ptx(arguments, environment)
    return launch(program, arguments, environment)


def _is_compiler(word: str) -> bool:
    """Whether we run as a compiler launcher, whose first word is the compiler (CMAKE_CUDA_COMPILER_LAUNCHER)."""
    name = os.path.basename(word)
    if "nvcc" not in name or word.startswith("-") or "." in name.partition("nvcc")[2]:
        return False
    return os.path.isfile(word) and os.access(word, os.X_OK) if os.sep in word else name == "nvcc"


def _misplaced(word: str) -> bool:
    return word.startswith(options.PREFIX)


def _configuration(ours: Sequence[str]) -> str:
    """Eight digits that change whenever our output may change: build systems key their caches by the line with them."""
    mode = options.value_of("--ccc", ours) or "auto"
    resident = options.value_of("--ccc-resident", ours)
    form, only = (options.value_of(name, ours) for name in ("--ccc-form", "--ccc-only"))
    stacks = options.value_of("--ccc-stacks", ours)
    chosen = f"{'' if form == 'auto' else form} {only} {'' if stacks == 'auto' else stacks}".rstrip()
    text = f"{__version__} {mode} {'--ccc-keep-going' in ours} {resident} {chosen}".rstrip()
    if counted := options.counted(ours):
        text += f" instrumented {counted}"
    text += "".join(f" {name}" for name in (options.CANDIDATES, options.FIND) if name in ours)
    digest = crc32(text.encode())
    for name in ("--ccc-profile", "--ccc-decisions"):
        if file := options.value_of(name, ours):
            digest = crc32(_content(file), digest)
    return f"{digest:08x}"


def _content(file: str) -> bytes:
    """The contents of a file. Raises CccError (CCC086)."""
    try:
        with open(file, "rb") as stream:
            return stream.read()
    except OSError as problem:
        from cccopt.files import file_error

        raise file_error("read", file, problem) from problem


def _folder() -> str:
    """A new folder for the reports of the shims."""
    try:
        folder = os.path.join(cache.temporary_folder(), f"cccopt-{os.getpid()}-{os.urandom(4).hex()}")
        os.mkdir(folder, 0o700)
    except OSError:
        import tempfile

        return tempfile.mkdtemp(prefix="cccopt-")
    return folder


def _remove(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
