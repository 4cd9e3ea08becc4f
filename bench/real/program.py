"""A program of the gallery: where it comes from, and where our pragmas go in it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import tomllib

PROGRAMS = Path(__file__).parent / "programs"


class LineChangedError(ValueError):
    """A line is not the one that an annotation was written for."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A pragma, and the line that it stands above: its number in the original file, from 1, and a hash of it."""

    file: str
    line: int
    hash: str
    pragma: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel and its annotations, those in functions that it calls included."""

    name: str
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A program: `checkout` is the name of the folder that holds its repository, `folder` where it lies in that."""

    name: str
    repository: str
    commit: str
    checkout: str
    folder: str
    licence: str
    origin: str
    kernels: tuple[Kernel, ...]

    @property
    def annotations(self) -> tuple[Annotation, ...]:
        """Those of all kernels, each once: kernels may share a function."""
        return tuple(dict.fromkeys(each for kernel in self.kernels for each in kernel.annotations))


def read_program(path: Path) -> Program:
    """A file of `programs/`; `KeyError` or `TypeError` where it lacks a key or has one too many."""
    table = tomllib.loads(path.read_text())
    kernels = tuple(
        Kernel(kernel["name"], tuple(Annotation(**each) for each in kernel["annotations"]))
        for kernel in table.pop("kernel")
    )
    return Program(name=path.stem, kernels=kernels, **table)


def read_programs(names: tuple[str, ...] = ()) -> list[Program]:
    """All programs of the gallery, or those of these names; `FileNotFoundError` for a name that it does not have."""
    paths = [PROGRAMS / f"{name}.toml" for name in names] or sorted(PROGRAMS.glob("*.toml"))
    return [read_program(path) for path in paths]


def line_hash(line: str) -> str:
    """What a line is recognized by: 12 digits of the SHA-256 of its text without the white space around it."""
    return hashlib.sha256(line.strip().encode(errors="surrogateescape")).hexdigest()[:12]


def annotated(text: str, annotations: tuple[Annotation, ...]) -> str:
    """The text with a line `#pragma ccc ...` above each annotated line, indented as that; `LineChangedError`."""
    lines = text.split("\n")
    for each in sorted(annotations, key=lambda each: -each.line):
        if each.line > len(lines) or line_hash(lines[each.line - 1]) != each.hash:
            raise LineChangedError(f"{each.file}:{each.line} is not the line that was annotated")
        line = lines[each.line - 1]
        indent = line[: len(line) - len(line.lstrip())]
        lines.insert(each.line - 1, f"{indent}#pragma ccc {each.pragma}")
    return "\n".join(lines)


def annotate(folder: Path, annotations: tuple[Annotation, ...]) -> None:
    """Put the pragmas into the files of a folder."""
    by_file = sorted(annotations, key=lambda each: each.file)
    for file, group in groupby(by_file, key=lambda each: each.file):
        path = folder / file
        text = path.read_text(errors="surrogateescape")
        path.write_text(annotated(text, tuple(group)), errors="surrogateescape")


def line_after(annotation: Annotation, annotations: tuple[Annotation, ...]) -> int:
    """The number of the annotated line once all pragmas are in the file."""
    above = [each for each in annotations if each.file == annotation.file and each.line <= annotation.line]
    return annotation.line + len(above)
