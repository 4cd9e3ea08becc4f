"""What nvcc compiles: every source for some targets, every target for some sources, every option for both.

A case's file is ``SOURCE.ARCH.OPTION.ptx``: ``control.sm_90.O3.ptx``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent / "cuda"

OPTIONS: dict[str, tuple[str, ...]] = {
    "O3": (),
    "O0": ("-Xcicc", "-O0"),
    "G": ("-G",),
    "lineinfo": ("-lineinfo",),
    "rdc": ("-rdc=true",),
}
"""nvcc's options by the name that they have in a case."""

SLOW = frozenset({"libraries", "device_library", "atomics", "async", "warp"})
"""Sources that take seconds: libraries' headers."""

BASE = ("sm_80", "sm_90")
"""The targets that every source is compiled for."""


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """A source of ``cuda/`` by its stem, a target and the name of an option."""

    source: str
    arch: str
    option: str = "O3"

    @property
    def file(self) -> str:
        """The name of the PTX file."""
        return f"{self.source}.{self.arch}.{self.option}.ptx"

    def arguments(self) -> tuple[str, ...]:
        """What follows nvcc's path, the name of the output aside; to be run where the sources lie."""
        return (
            "-std=c++17", "-w", f"-arch={self.arch}", "-ptx", *OPTIONS[self.option], f"{self.source}.cu",
        )  # fmt: skip


def sources() -> list[str]:
    """The stems of all sources, sorted."""
    return sorted(path.stem for path in SOURCES.glob("*.cu"))


def targets(nvcc: str) -> list[str]:
    """The targets that ``nvcc`` lists, with those that only one architecture (a) or family (f) has."""
    listed = subprocess.run(
        [nvcc, "--list-gpu-arch"], capture_output=True, text=True, check=True
    ).stdout.split()
    numbers = sorted({int(name.removeprefix("compute_")) for name in listed})
    suffixes = [(n, s) for n in numbers for s in ("", "a", "f") if not s or n >= {"a": 90, "f": 100}[s]]
    return [f"sm_{number}{suffix}" for number, suffix in suffixes]


def cases(names: Sequence[str], archs: Sequence[str], *, quick: bool = False) -> list[Case]:
    """The cases of ``names`` (sources) over ``archs``; ``quick`` leaves out the options of the base targets."""
    return sorted({*_each_source(names, archs, quick), *_each_target(names, archs)})


def _each_source(names: Sequence[str], archs: Sequence[str], quick: bool) -> Iterator[Case]:
    for name in names:
        for at, arch in enumerate(a for a in BASE if a in archs):
            yield Case(name, arch)
            for option in () if quick else OPTIONS:
                if at == 0 or name not in SLOW:
                    yield Case(name, arch, option)


def _each_target(names: Sequence[str], archs: Sequence[str]) -> Iterator[Case]:
    """Five sources for each target, by turns, with the options by turns."""
    light = [name for name in names if name not in SLOW]
    options = list(OPTIONS)
    for at, arch in enumerate(archs):
        for step in range(4):
            yield Case(light[(4 * at + step) % len(light)], arch, options[(at + step) % len(options)])
        slow = sorted(SLOW.intersection(names))
        if slow and at % 2 == 0:
            yield Case(slow[at // 2 % len(slow)], arch)
        yield Case("specific", arch)
