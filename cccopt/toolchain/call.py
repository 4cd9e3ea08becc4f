"""A call of cicc or cudafe++ by nvcc, run with the real tool on a different text from nvcc's."""

from __future__ import annotations

import resource
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cccopt.diagnostic import CccError, error
from cccopt.files import read_text, write_text
from cccopt.toolchain.inputs import preprocessed

_LINES = "-generate-line-info"


@dataclass(frozen=True, slots=True)
class CallResult:
    """How the real tool ended: exit status, what it printed, the PTX that it made (empty if it failed or makes none),
    and the processor time that it took.
    """

    status: int
    messages: str
    ptx: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Running:
    """The real tool while it runs."""

    process: subprocess.Popen[str]
    ptx: Path

    def wait(self) -> CallResult:
        """Wait until it ends. To be called once, and while no other tool runs."""
        before = _seconds_of_children()
        messages, _ = self.process.communicate()
        seconds = _seconds_of_children() - before
        status = self.process.returncode
        status = status if status >= 0 else 128 - status
        return CallResult(status, messages, read_text(self.ptx) if self.ptx.exists() else "", seconds)


@dataclass(frozen=True, slots=True)
class Call:
    """The real tool's path and the arguments that nvcc passed. Inputs are recognized by their suffix, never by their
    position.
    """

    real: str
    arguments: tuple[str, ...]

    @property
    def source(self) -> Path:
        """The preprocessed input. Raises CccError (CCC084) if there is none, or more than one."""
        texts = preprocessed(self.arguments)
        if len(texts) != 1:
            raise CccError(
                error(
                    "CCC084",
                    f"cannot tell which file `{Path(self.real).name}` compiles",
                    why=f"its command line names {len(texts)} preprocessed files: {' '.join(self.arguments)}",
                    help="compile with --ccc=off and report the nvcc version",
                )
            )
        return Path(texts[0])

    @property
    def output(self) -> Path | None:
        """The file for the PTX, whatever its name; None if another kind of code is written."""
        if {"-lto", "--emit-optix-ir"} & set(self.arguments):
            return None
        return Path(self.after("-o"))

    @property
    def file(self) -> str:
        """The user's file, spelled as it was given to nvcc."""
        return self.after("--orig_src_file_name") or str(self.source)

    @property
    def arch(self) -> str:
        """The virtual architecture (``compute_90``), or an empty string."""
        return self.after("-arch")

    @property
    def most_registers(self) -> int | None:
        """The limit that ``-maxrregcount`` sets; None without one."""
        return int(self.after("-maxreg") or self.after("--maxreg") or 0) or None

    @property
    def links_late(self) -> bool:
        """Whether cicc writes code that our PTX cannot replace: LTO-IR (with or without PTX) or OptiX-IR."""
        return self.output is None or "-olto" in self.arguments

    @property
    def makes_no_code(self) -> bool:
        """Whether cicc only checks the text (``-fdevice-syntax-only``): its PTX is empty."""
        return "--device-syntax-only" in self.arguments

    @property
    def is_relocatable(self) -> bool:
        """Whether other code may be linked to what cicc makes (``-rdc=true``)."""
        return "--device-c" in self.arguments

    def after(self, option: str) -> str:
        """The argument after ``option``, or an empty string."""
        if option not in self.arguments[:-1]:
            return ""
        return self.arguments[self.arguments.index(option) + 1]

    @property
    def with_lines(self) -> Call:
        """The same call of cicc with line information (`.loc`), as ``nvcc -lineinfo`` makes it."""
        if _LINES in self.arguments:
            return self
        return replace(self, arguments=(_LINES, *self.arguments))

    def run(self, text: str) -> CallResult:
        """Run the real tool on ``text``; the PTX is returned, but not yet written where nvcc looks for it."""
        with self.running(text) as tool:
            return tool.wait()

    @contextmanager
    def running(self, text: str) -> Iterator[Running]:
        """Like `run`, while the caller does something else; the tool is stopped if the caller does not wait for it."""
        with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
            source = Path(folder) / self.source.name
            write_text(source, text)
            swapped = {str(self.source): str(source)}
            aside = Path(folder) / "out.ptx"
            if self.output is not None:
                swapped[str(self.output)] = str(aside)
            process = subprocess.Popen(
                [self.real, *(swapped.get(argument, argument) for argument in self.arguments)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="surrogateescape",
            )
            try:
                yield Running(process, aside)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.communicate()


def _seconds_of_children() -> float:
    """The processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
