"""What the hunt and the process that runs kernels on a GPU tell each other."""

from __future__ import annotations

from dataclasses import dataclass

from tests.kernels.running import Launch


@dataclass(frozen=True)
class Image:
    """Code of a file's kernels in one form, as PTX and as a cubin."""

    label: str
    ptx: str
    cubin: bytes


@dataclass(frozen=True)
class Case:
    """One kernel: its plain version's name, the images (by place in the job) that hold it rewritten, its launches."""

    kernel: str
    plain: str
    images: tuple[int, ...]
    launches: tuple[Launch, ...]


@dataclass(frozen=True)
class Job:
    """A file's kernels: ``images[0]`` has the plain ones."""

    seed: int
    images: tuple[Image, ...]
    cases: tuple[Case, ...]


@dataclass(frozen=True)
class Ready:
    """The GPU and its architecture, or why there is none."""

    gpu: str = ""
    arch: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Begun:
    """A run that has begun."""

    kernel: str
    label: str
    launch: Launch


@dataclass(frozen=True)
class Ran:
    """A run that has ended; ``difference`` is empty if it gave what the plain kernel does."""

    difference: str
    fault: bool = False


def three(size: int | tuple[int, ...]) -> tuple[int, int, int]:
    """A size of a grid or block in three dimensions."""
    x, y, z = [*((size,) if isinstance(size, int) else size), 1, 1][:3]
    return x, y, z
