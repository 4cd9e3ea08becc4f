"""ccc-nvcc's own options among nvcc's: which exist, and where they may be given.

Imports nothing heavy: every compilation goes through here, annotated or not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

PREFIX = "--ccc"
INSTRUMENT, DEFAULT, ALL, SAMPLED, DETAILED = "--ccc-instrument", "default", "all", "sampled", "detailed"
CANDIDATES, FIND = "--ccc-candidates", "--ccc-find"
MODES = ("auto", "always", "off")

# For each option: its name, its value (empty: a flag), what it does, and what applies without it (empty: another line
# says it).
# fmt: off
TABLE = (
    (
        PREFIX,
        "|".join(MODES),
        "rewrite what is expected to pay off (auto), everything that can be rewritten, except loops that nvcc would"
        " unroll or that have nothing to collect (always), or nothing (off)",
        "auto",
    ),
    ("--ccc-profile", "FILE.json", "let `auto` decide based on how often lanes reached each region", "none"),
    (
        "--ccc-decisions",
        "FILE.json",
        "build kernels as `cccopt tune` found best; `--ccc` applies to all others",
        "none",
    ),
    ("--ccc-resident", "N", "how many blocks of a kernel marked `grid` share its work", "all that run at once"),
    ("--ccc-form", "FORM", "force a form: split or idle-lanes (`,stack` may follow), stack, carried, in-lane", "auto"),
    ("--ccc-stacks", "MEMORY", "where tasks wait: shared or global memory", "auto: shared memory where they fit"),
    ("--ccc-only", "REGION,...", "rewrite only these regions: numbers, names, FILE:LINE or :LINE", "all of them"),
    (
        INSTRUMENT,
        "",
        "add counters for `cccopt profile` (on a sample of warps if a kernel has very many branches); rewrite nothing",
        "no counters",
    ),
    (INSTRUMENT, ALL, "the same for all warps in any case, which may be slow", ""),
    (INSTRUMENT, SAMPLED, "the same for one warp in 64 (fewer if a kernel has very many branches), at little cost", ""),
    (INSTRUMENT, DETAILED, "the same sample, with histograms of branches and sectors of memory; slower", ""),
    (
        CANDIDATES,
        "",
        "mark what could be annotated, for `cccopt advise`; rewrite nothing",
        "mark only what is annotated",
    ),
    (FIND, "", "also rewrite unannotated code if its profile predicts a gain", "rewrite only what is annotated"),
    (
        "--ccc-keep-going",
        "",
        "leave refused functions as they are and ignore mistaken annotations, with warnings",
        "stop with an error",
    ),
    ("--ccc-report", "FILE.json", "write what became of each region", "no report"),
    ("--ccc-keep", "FOLDER", "keep the marked texts, nvcc's PTX for them and the result", "none are kept"),
    ("--ccc-verbose", "", "print remarks to standard error", "only warnings and errors"),
)
# fmt: on
FLAGS = tuple(name for name, value, _, _ in TABLE if not value)
VALUED = tuple(name for name, value, _, _ in TABLE if value and name != PREFIX)
FILES = ("--ccc-keep", "--ccc-profile", "--ccc-decisions")

# The values of `--ccc-form`: the form of rewritten loops, and whether counted loops may be expanded.
FORMS = {
    "auto": ("auto", True),
    "split": ("split", True),
    "idle-lanes": ("idle lanes", True),
    "stack": ("auto", False),
    "split,stack": ("split", False),
    "idle-lanes,stack": ("idle lanes", False),
    "carried": ("carried", True),
    "in-lane": ("in lane", True),
}

# The values of `--ccc-stacks`.
MEMORIES = ("auto", "shared", "global")

VALUES = {
    PREFIX: MODES,
    INSTRUMENT: (ALL, SAMPLED, DETAILED),
    "--ccc-form": tuple(FORMS),
    "--ccc-stacks": MEMORIES,
}
"""The values of the options that accept only certain ones."""

# The variables that carry the options, a folder for reports and the last line of PTX through nvcc to the shims.
OPTIONS, REPORTS, STAMP = "CCC_OPTIONS", "CCC_REPORTS", "CCC_STAMP"

# Variables with words that nvcc puts before and after the command line.
FLAG_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
_OPTION_FILES = ("--options-file", "-optf")
_OUTPUT = ("-o", "--output-file")
_PTX_PHASE = ("-ptx", "--ptx")


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our options, and everything else, in their order."""
    ours = [argument for argument in arguments if argument.startswith(PREFIX)]
    return ours, [argument for argument in arguments if not argument.startswith(PREFIX)]


def split_variables(environment: Mapping[str, str]) -> tuple[list[str], list[str], dict[str, str]]:
    """Our options in the variables that nvcc takes flags from: those before and those after the command line's (nvcc
    takes the last of two that contradict each other), and the variables without them.
    """
    ours: list[list[str]] = []
    rest = {}
    for variable in FLAG_VARIABLES:
        found, others = split(environment.get(variable, "").split())
        ours.append(found)
        if found:
            rest[variable] = " ".join(others)
    before, after = ours
    return before, after, rest


def spelled(name: str, value: str) -> str:
    """An option of `TABLE` as it is written."""
    return f"{name}={value}" if value else name


def is_known(option: str) -> bool:
    """Whether this is one of our options, with a value that it accepts."""
    name, _, value = option.partition("=")
    if name in VALUES:
        return value in VALUES[name] or option == INSTRUMENT
    if name == "--ccc-resident":
        return is_resident(value)
    if name == "--ccc-only":
        return is_selection(value)
    return option in FLAGS or (name in VALUED and value != "")


def is_resident(value: str) -> bool:
    """Whether this is a number of blocks: at least one, in 31 bits."""
    return value.isascii() and value.isdecimal() and 0 < int(value) < 2**31


def is_selection(value: str) -> bool:
    """Whether this is a list of regions, separated by commas."""
    return all(map(str.strip, value.split(",")))


def counted(ours: Sequence[str]) -> str:
    """What to count, as the last such option says: `DEFAULT`, `ALL`, `SAMPLED` or `DETAILED`; empty for nothing."""
    words = [word for word in ours if word.partition("=")[0] == INSTRUMENT]
    return (words[-1].partition("=")[2] or DEFAULT) if words else ""


def value_of(option: str, ours: Sequence[str]) -> str:
    """The value of the last ``OPTION=VALUE`` among ``ours``, or an empty string."""
    values = [word.partition("=")[2] for word in ours if word.partition("=")[0] == option]
    return values[-1] if values else ""


def makes_ptx(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether nvcc is told to stop at PTX, on the command line, in a variable or in an options file."""
    return any(word in _PTX_PHASE for word in all_words(arguments, environment))


def all_words(arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Every word that nvcc reads: the command line's, the variables', those of options files."""
    read: set[str] = set()
    for variable in FLAG_VARIABLES:
        yield from _with_files(_words(environment.get(variable, "")), read)
    yield from _with_files(arguments, read)


def words_in_files(arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Only the words of options files."""
    read: set[str] = set()
    for words in (*(_words(environment.get(variable, "")) for variable in FLAG_VARIABLES), arguments):
        for file in _option_files(words):
            yield from _of_file(file, read)


def ptx_inputs(arguments: Sequence[str]) -> list[int]:
    """Where ``arguments`` name PTX that nvcc reads: a name after ``-o`` is not an input."""
    before = ("", *arguments)
    return [
        position
        for position, word in enumerate(arguments)
        if word.endswith(".ptx") and not word.startswith("-") and before[position] not in _OUTPUT
    ]


def absolute(options: Sequence[str]) -> list[str]:
    """``options`` with absolute paths of the files that the shims open: nvcc's tools may run in another folder."""
    return [_absolute(option) for option in options]


def _absolute(option: str) -> str:
    name, equals, value = option.partition("=")
    return f"{name}={os.path.abspath(value)}" if name in FILES and equals and value else option


def _with_files(words: Sequence[str], read: set[str]) -> Iterator[str]:
    yield from words
    for file in _option_files(words):
        yield from _of_file(file, read)


def _option_files(words: Sequence[str]) -> Iterator[str]:
    """The options files that ``words`` name, in all spellings: ``-optf a,b``, ``--options-file=a``."""
    for position, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in _OPTION_FILES:
            value = value if equals else "".join(words[position + 1 : position + 2])
            yield from filter(None, value.split(","))


def _of_file(file: str, read: set[str]) -> Iterator[str]:
    """The words of an options file, and of those that it names; each file once."""
    if file in read:
        return
    read.add(file)
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as stream:
            text = stream.read()
    except OSError:
        return  # nvcc says what is wrong with it
    yield from _with_files(_words(text), read)


def _words(text: str) -> list[str]:
    if not text.strip():
        return []
    import shlex  # most command lines name no options file, and a build starts us for every one

    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
