"""One mode of nvcc, run by plain nvcc and by ``ccc-nvcc`` on the same files, and all that they make compared."""

from __future__ import annotations

import difflib
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cccopt.toolchain.discovery import find_nvcc
from tests.cli.embedded import code_of

# The command as it is installed beside the Python that runs the tests.
CCC_NVCC = Path(sys.executable).parent / "ccc-nvcc"
# Warnings of every compiler are errors: whatever we said in the middle of a build would end it.
STRICT = ("-Werror", "all-warnings", "-Xcompiler", "-Wall,-Werror")
# Plain nvcc and gcc warn of pragmas that they do not know.
_UNKNOWN_PRAGMAS = ("-diag-suppress", "20199", "-Xcompiler", "-Wno-unknown-pragmas")

SAME, REWRITTEN, REFUSED, LACKING, NOT_RUN = "same", "rewritten", "CCC087", "no such option", "not run"
CURED = "works, unlike nvcc's"

ACCEPTED = """\
static __device__ int hidden = 3;
#ifdef __CUDACC_RDC__
__device__ int shared_by_both = 3;
#endif
extern "C" __global__ void __launch_bounds__(128) work(int n, const float* in, float* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
#pragma ccc if
    if (in[i] > 0.5f) {
      float x = in[i] * hidden;
      for (int k = 0; k < 40; ++k) x = x * 1.25f + 0.5f;
      out[i] = x;
    }
  }
}
static __host__ __device__ float sum(const float* in) {
  float all = 0;
#pragma ccc for off
  for (int k = 0; k < 4; ++k) all += in[k];
  return all;
}
extern "C" __global__ void __launch_bounds__(32) quiet(const float* in, float* out) { *out = sum(in); }
float on_host(const float* in) { return sum(in); }
"""
# Marked loops without a marked path stay as they are (CCC054). nvcc unrolls the second, but would not with marks in it.
DECLINED = ACCEPTED.replace("#pragma ccc if\n", "\n").replace("for off", "for")
OFF = ACCEPTED.replace("#pragma ccc for\n", "#pragma ccc for off\n").replace(
    "#pragma ccc if\n", "#pragma ccc if off\n"
)
UNANNOTATED = re.sub("(?m)^#pragma ccc.*$", "", ACCEPTED)
# A barrier in a marked loop is refused (CCC038), which is a warning with --ccc-keep-going.
DISALLOWED = ACCEPTED.replace(
    "      out[i] = x;\n    }\n", "      out[i] = x;\n    }\n    __syncthreads();\n"
)

OTHER = """\
extern __device__ int shared_by_both;
extern "C" __global__ void reader(int* out) { *out = shared_by_both; }
"""
MAIN = """\
#ifndef TEXT
#define TEXT "ran"
#endif
extern "C" int puts(const char*);
int main() { return puts(TEXT) < 0; }
"""


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to call nvcc: one row of the table.

    ``steps`` are command lines in a shell's quoting without the program's name; one that begins with ``./``
    runs what was built. ``{here}`` stands for the working folder. ``annotated`` is what becomes of a file
    with an accepted region, ``may_differ`` names entries of `DIFFERENCES`, ``needs`` an option that some
    nvccs lack. ``strict``: ours must say nothing under `STRICT` either. ``succeeds`` is None where that is
    up to the machine. ``needs_libcudart``: plain nvcc may lack it, and ours finds it. ``opaque``: what it
    makes cannot be searched for code. ``annotated_only``: slow, run for its last cell alone. ``more_sources``: also
    with --ccc=off, with all pragmas off, and with --ccc-keep-going.
    """

    name: str
    steps: tuple[str, ...]
    annotated: str = REWRITTEN
    may_differ: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    needs: str = ""
    strict: bool = True
    succeeds: bool | None = True
    needs_libcudart: bool = False
    opaque: bool = False
    annotated_only: bool = False
    more_sources: bool = False
    note: str = ""

    @property
    def commands(self) -> list[str]:
        """The command lines as a user would type them."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment]
        return [
            " ".join([*variables, *([] if step.startswith("./") else ["nvcc"]), step]) for step in self.steps
        ]


@dataclass(frozen=True, slots=True)
class Source:
    """The file ``kernel.cu`` and what stands in for ``kernel.ptx``; ``annotated`` where it holds pragmas."""

    kernel: str
    ptx: str
    annotated: bool


@dataclass(frozen=True, slots=True)
class Made:
    """What the steps left: exit statuses, what they printed, the new files, files of theirs that stay in TMPDIR."""

    statuses: tuple[int, ...]
    texts: Mapping[str, bytes]
    files: Mapping[str, bytes]
    left_behind: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A row's three cells (unannotated, declined, annotated) and all that is wrong with the mode."""

    cells: tuple[str, str, str]
    problems: tuple[str, ...]


def examine(mode: Mode, folder: Path) -> Finding:
    """Run ``mode`` on its sources, one after the other at one place below ``folder``."""
    if mode.needs and mode.needs not in nvcc_help():
        return Finding((LACKING, LACKING, LACKING), ())
    runner = _Runner(mode, folder)
    problems: list[str] = []
    strict = STRICT if mode.strict else ()
    # What is embedded can be searched when it is not compressed.
    plain = () if mode.opaque else ("-no-compress",)

    if mode.needs_libcudart and runner.theirs(_source(UNANNOTATED)).statuses != (0,):
        return _cured(runner.ours(_source(UNANNOTATED)))
    unannotated = NOT_RUN
    if not mode.annotated_only:
        theirs = runner.theirs(_source(UNANNOTATED), *strict)
        ours = runner.ours(_source(UNANNOTATED), *strict)
        unannotated = _same(theirs, ours, "unannotated", problems)

    declined = NOT_RUN
    # Where the code is made at link time, only the pragmas tell whether there is something to rewrite.
    declining = _source(OFF if mode.annotated == REFUSED else DECLINED)
    theirs = runner.theirs(declining, *strict, *plain)
    if mode.succeeds is not None and (theirs.statuses[-1] == 0) is not mode.succeeds:
        problems.append(f"nvcc itself ends with {theirs.statuses}: {theirs.texts}")
    if not mode.annotated_only:
        ours = runner.ours(declining, *strict, *plain)
        declined = _same(theirs, ours, "declined", problems)

    ours = runner.ours(_source(ACCEPTED), "--ccc=always", *strict, *plain)
    if mode.annotated == REFUSED:
        annotated = _refused(ours, problems)
    elif mode.annotated == REWRITTEN:
        annotated = _rewritten(mode, theirs, ours, problems)
    else:
        theirs = runner.theirs(_source(ACCEPTED), *strict, *plain)
        annotated = _same(theirs, ours, "annotated", problems)

    if mode.more_sources:
        problems += _more(runner, strict)
    return Finding((unannotated, declined, annotated), tuple(problems))


def _cured(ours: Made) -> Finding:
    problems = () if ours.statuses == (0,) else (f"libcudart is not found: {ours.texts}",)
    return Finding((CURED, CURED, CURED), problems)


def _more(runner: _Runner, strict: Sequence[str]) -> list[str]:
    """What is wrong with files that are to come out as nvcc makes them for other reasons than a remark."""
    problems: list[str] = []
    theirs = runner.theirs(_source(ACCEPTED), *strict)
    _same(theirs, runner.ours(_source(ACCEPTED), "--ccc=off", *strict), "--ccc=off", problems)
    theirs = runner.theirs(_source(OFF), *strict)
    _same(theirs, runner.ours(_source(OFF), "--ccc=always", *strict), "all pragmas off", problems)
    theirs = runner.theirs(_source(DISALLOWED), *strict)
    ours = runner.ours(_source(DISALLOWED), "--ccc=always", "--ccc-keep-going", *strict)
    _same(theirs, _without_warnings(ours, problems), "kept going", problems)
    return problems


@functools.cache
def nvcc_help() -> str:
    """What the nvcc in use says of its options."""
    return subprocess.run([find_nvcc().path, "--help"], capture_output=True, text=True, check=True).stdout


# --- running -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Runner:
    mode: Mode
    folder: Path

    def theirs(self, source: Source, *options: str) -> Made:
        allowed = _UNKNOWN_PRAGMAS if source.annotated and STRICT[0] in options else ()
        made = self._run([str(find_nvcc().path)], source, (*options, *allowed))
        return _normal(self.mode, made, source, ours=False)

    def ours(self, source: Source, *options: str) -> Made:
        return _normal(self.mode, self._run([str(CCC_NVCC)], source, options), source, ours=True)

    def _run(self, program: list[str], source: Source, options: Sequence[str]) -> Made:
        """The files are gone afterwards, so that the next run finds the same folder with the same name."""
        here, temporary = self.folder / "project", self.folder / "temporary"
        temporary.mkdir()
        inputs = {here / name: text for name, text in _inputs(source).items()}
        for path, text in inputs.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            # Line tables hold it.
            os.utime(path, (1_000_000_000, 1_000_000_000))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NVCC_")}
        environment |= {**dict(self.mode.environment), "TMPDIR": str(temporary), "PWD": str(here)}
        statuses: list[int] = []
        texts: dict[str, bytes] = {}
        for number, step in enumerate(self.mode.steps, 1):
            step, _, read = step.format(here=here).partition(" < ")
            words = shlex.split(step)
            command = words if step.startswith("./") else [*program, *options, *words]
            text = (here / read).read_bytes() if read else b""
            done = subprocess.run(
                command, cwd=here, env=environment, input=text, capture_output=True, check=False
            )
            texts |= {f"stdout {number}": done.stdout, f"stderr {number}": done.stderr}
            statuses.append(done.returncode)
            if done.returncode != 0:
                break
        found = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
        files = {
            str(path.relative_to(here)): data
            for path, data in sorted(found.items())
            if path not in inputs or data != inputs[path].encode()
        }
        # PTX is compared as PTX, wherever it is written.
        files |= {f"{name}.ptx": texts.pop(name) for name in list(texts) if b"\n.version " in texts[name]}
        left = tuple(sorted(path.name for path in temporary.iterdir()))
        shutil.rmtree(here)
        shutil.rmtree(temporary)
        return Made(tuple(statuses), texts, files, left)


def _inputs(source: Source) -> dict[str, str]:
    return {
        "kernel.cu": source.kernel,
        "kernel.text": source.kernel,
        "kernel.ptx": source.ptx,
        "a folder/kernel näh 1.cu": source.kernel,
        "other.cu": OTHER,
        "main.cpp": MAIN,
        "include here/value.h": "#define VALUE 3\n",
        "first.options": "-ptx -lineinfo\n",
        "second.options": '-o "out/kernel 1.ptx"\n',
        "third.options": "-DVALUE=3 kernel.cu\n",
        "CMakeFiles/program.dir/includes_CUDA.rsp": '-I"include here" -isystem=out\n',
        "CMakeFiles/program.dir/objects1.rsp": "CMakeFiles/program.dir/kernel.cu.o\n",
        "out/.keep": "",
    }


@functools.cache
def _source(kernel: str) -> Source:
    annotated = "#pragma" in kernel
    # PTX that comes from cicc has no pragmas that could be declined, only marks.
    text = kernel.replace("#pragma ccc for\n  for (int k", "#pragma ccc for off\n  for (int k")
    with tempfile.TemporaryDirectory(prefix="modes-") as folder:
        place = Path(folder, "kernel.cu")
        place.write_text(text)
        command = [CCC_NVCC, "-ptx", "-arch=sm_80", f"--ccc-keep={folder}/kept", "--ccc-keep-going", place]
        subprocess.run([*command, "-o", f"{folder}/out.ptx"], check=True, capture_output=True)
        # PTX with marks is what cicc makes of the marked text; without annotations there are none.
        stages = list(Path(folder, "kept").glob("*.1.ptx"))
        ptx = (stages[0] if stages else Path(folder, "out.ptx")).read_text()
    return Source(kernel, ptx, annotated)


# --- what may differ ---------------------------------------------------------------------------------------

_TOOL_FOLDER = re.compile(rb"/[^\s\"':=]*/toolkits/[^/\s\"]+")
_STAMP = re.compile(rb"^// cccopt \S+ \(cfg [0-9a-f]{8}\)\n\Z", re.MULTILINE)
_VERSION_LINE = re.compile(rb"^cccopt \S+ \(cfg [0-9a-f]{8}\)\n\Z", re.MULTILINE)
_PRAGMA_WARNING = re.compile(
    rb"^[^\n]*\(\d+\): warning #20199-D: unrecognized #pragma in device code\n(?:[^\n]+\n)*\n"
    rb"(?:Remark: The warnings can be suppressed[^\n]*\n\n)?",
    re.MULTILINE,
)


def _process_number(name: str, data: bytes, ours: bool) -> bytes:
    return re.sub(rb"tmpxft_[0-9a-f]{8}_[0-9a-f]{8}", b"tmpxft", data)


def _stamp(name: str, data: bytes, ours: bool) -> bytes:
    if not ours or not name.endswith(".ptx"):
        return data
    unstamped, found = _STAMP.subn(b"", data)
    return unstamped if found else data + b"(no stamp)"


def _own_help(name: str, data: bytes, ours: bool) -> bytes:
    _, found, rest = data.partition(b"as `nvcc --help` prints them:\n")
    if not ours or not found:
        return data
    return rest.lstrip(b"\n") if rest.startswith(b"\n\n") else rest


def _version_line(name: str, data: bytes, ours: bool) -> bytes:
    if not ours or name != "stdout 1":
        return data
    theirs, found = _VERSION_LINE.subn(b"", data)
    return theirs if found else data + b"(no line of ours)"


def _tool_paths(name: str, data: bytes, ours: bool) -> bytes:
    """The folder of nvcc's own programs, and the settings that our profile makes again."""
    if not name.startswith("std"):
        return data
    lines = [] if ours else data.splitlines(keepends=True)
    for line in data.splitlines(keepends=True) if ours else ():
        setting = re.match(rb"#\$ (CICC_PATH|PATH|LIBRARIES|LIBRARY_PATH)=", line)
        if setting is None or _TOOL_FOLDER.search(line) is None:
            lines.append(_TOOL_FOLDER.sub(os.fsencode(find_nvcc().root), line))
    return b"".join(lines)


def _times(name: str, data: bytes, ours: bool) -> bytes:
    """Only texts hold times; which entries of a trace are long enough to be written changes from run to run."""
    if name.endswith(".json"):
        return b"\n".join(sorted(set(re.findall(rb'"(?:name|ph)": ?"[^"]*"', data))))
    return re.sub(rb"\d+(\.\d+)?", b"0", data) if name.startswith("std") or name.endswith(".csv") else data


def _resources(name: str, data: bytes, ours: bool) -> bytes:
    return re.sub(rb"Compile time = .*", b"", data) if name.startswith("std") else data


DIFFERENCES: dict[str, tuple[str, Callable[[str, bytes, bool], bytes]]] = {
    "process": ("the process ID in the names of nvcc's temporary files", _process_number),
    "stamp": ("the last line of the PTX, `// cccopt ...`", _stamp),
    "version": ("the last line, `cccopt ...`", _version_line),
    "help": ("the options of ccc-nvcc, ahead of nvcc's", _own_help),
    "tools": ("the folder of cicc and cudafe++, and the settings that name it", _tool_paths),
    "times": ("numbers", _times),
    "resources": ("what ptxas prints about its own time and about rewritten kernels", _resources),
}


def _normal(mode: Mode, made: Made, source: Source, *, ours: bool) -> Made:
    """``made`` without what may differ."""

    def settle(name: str, data: bytes) -> bytes:
        if source.annotated and not ours and name.startswith("stderr"):
            data = _PRAGMA_WARNING.sub(b"", data)
        if source.annotated and name.endswith((".ii", ".cudafe1.cpp", ".cudafe1.gpu")):
            # The compilers see no pragma of ours, and number the line behind it where they print one.
            data = re.sub(rb"(?m)^(#pragma ccc.*|# \d+( \"[^\"\n]*\")?|)\n", b"", data)
        for difference in mode.may_differ:
            data = DIFFERENCES[difference][1](name, data, ours)
        return data

    texts = {name: settle(name, data) for name, data in made.texts.items()}
    files = {name: settle(name, data) for name, data in made.files.items()}
    return Made(made.statuses, texts, files, made.left_behind)


# --- comparing ---------------------------------------------------------------------------------------------


def _same(theirs: Made, ours: Made, source: str, problems: list[str]) -> str:
    found = _differences(theirs, ours, theirs.files.keys() | ours.files.keys())
    problems += [f"{source}: {problem}" for problem in found]
    return "differs" if found else SAME


def _differences(theirs: Made, ours: Made, names: Iterable[str]) -> list[str]:
    found = []
    if theirs.statuses != ours.statuses:
        found.append(f"exit status {ours.statuses} instead of {theirs.statuses}: {ours.texts}")
    if theirs.left_behind != ours.left_behind:
        found.append(f"left in TMPDIR: {ours.left_behind} instead of {theirs.left_behind}")
    for name in sorted(theirs.texts.keys() & ours.texts.keys()):
        if theirs.texts[name] != ours.texts[name]:
            found.append(f"{name} differs: {_first_change(theirs.texts[name], ours.texts[name])}")
    for name in sorted(names):
        if name not in ours.files or name not in theirs.files:
            found.append(f"{name} is made by {'nvcc' if name in theirs.files else 'ccc-nvcc'} alone")
        elif theirs.files[name] != ours.files[name]:
            found.append(f"{name} differs: {_first_change(theirs.files[name], ours.files[name])}")
    return found


def _first_change(theirs: bytes, ours: bytes) -> str:
    """The first few lines that differ, or the place where binary files part."""
    if b"\0" in theirs + ours:
        at = next((i for i, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b), -1)
        return f"{len(theirs)} and {len(ours)} bytes, first at {at}"
    old, new = (text.decode(errors="replace").splitlines() for text in (theirs, ours))
    return "\n".join(list(difflib.unified_diff(old, new, "nvcc", "ccc-nvcc", lineterm="", n=0))[:12])


def _refused(ours: Made, problems: list[str]) -> str:
    said = b"".join(ours.texts.values())
    if ours.statuses[-1] != 1 or f"error[{REFUSED}]".encode() not in said:
        problems.append(f"annotated: not refused: exit status {ours.statuses}: {said.decode()}")
        return "not refused"
    if ours.files or ours.left_behind:
        problems.append(f"annotated: refused, yet left {[*ours.files, *ours.left_behind]}")
    return REFUSED


def _without_warnings(ours: Made, problems: list[str]) -> Made:
    """``ours`` without the warnings of --ccc-keep-going, which must be there."""
    warning = re.compile(rb"^warning\[CCC038\].*\n(?: +.*\n|\n)*", re.MULTILINE)
    texts = {name: warning.sub(b"", text) for name, text in ours.texts.items()}
    if texts == ours.texts:
        problems.append(f"kept going: no warning in {ours.texts}")
    return Made(ours.statuses, texts, ours.files, ours.left_behind)


def _rewritten(mode: Mode, theirs: Made, ours: Made, problems: list[str]) -> str:
    """All code of the marked kernel is rewritten, wherever it is embedded; all else is as nvcc makes it."""
    before = len(problems)
    found = 0
    for name in sorted(theirs.files.keys() & ours.files.keys()):
        old, new = code_of(name, theirs.files[name]), code_of(name, ours.files[name])
        found += len(old)
        if [code.kind for code in old] != [code.kind for code in new]:
            problems.append(f"annotated: {name} holds {len(new)} pieces of code instead of {len(old)}")
        for plain, code in zip(old, new, strict=False):
            if plain.kernel == code.kernel or not code.has_votes:
                problems.append(f"annotated: {code.kind} in {name} is not rewritten")
            others = [n for n, function in plain.rest.items() if code.rest.get(n) != function]
            problems += [f"annotated: {code.kind} in {name}: {n} is not nvcc's" for n in others]
    others = [n for n in theirs.files.keys() | ours.files.keys() if not code_of(n, theirs.files.get(n, b""))]
    if mode.opaque and theirs.files.keys() == ours.files.keys():
        # The only file cannot be searched, but it must not be nvcc's.
        found, others = int(theirs.files != ours.files), []
    if not found:
        problems.append("annotated: no code of the marked kernel found")
    # cicc prints here what it was given, marks and all.
    others = [n for n in others if not n.endswith(".cudafe1.gpu")]
    if "resources" in mode.may_differ:
        theirs, ours = _without_resources(theirs), _without_resources(ours)
    problems += [f"annotated: {problem}" for problem in _differences(theirs, ours, others)]
    return REWRITTEN if len(problems) == before else "differs"


def _without_resources(made: Made) -> Made:
    """The rewrite needs other registers and shared memory than the loop as it was."""
    used = re.compile(rb"(?m)^(ptxas info +: Used ).*|^.* bytes (stack frame|gmem).*")
    texts = {name: used.sub(rb"\1", text) for name, text in made.texts.items()}
    return Made(made.statuses, texts, made.files, made.left_behind)
