"""Lines and hashes that leave annotations out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cccopt.profiling.run_file import FunctionRun, LineCount, RunFile
from cccopt.profiling.sources import Source, files_of, on_disk, with_sources

PLAIN = "one\ntwo\nthree\nfour"
ANNOTATED = "one\n#pragma ccc for \\\n  chunk(4)\n#pragma ccc if\ntwo\nthree\n#pragma unroll 4\n  # pragma ccc if\nfour"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_annotations_change_neither_lines_nor_hash(end: str) -> None:
    plain = Source(PLAIN.replace("three", "three\n#pragma unroll 4").replace("\n", end))
    marked = Source(ANNOTATED.replace("\n", end))
    assert plain.digest == marked.digest
    assert len(marked.lines) == len(plain.lines) + 4
    for n, line in enumerate(plain.lines, 1):
        assert marked.lines[marked.shown(n) - 1] == line
        assert marked.numbered(marked.shown(n)) == n
        assert plain.shown(n) == plain.numbered(n) == n
    # An annotation goes by the line behind it.
    assert [marked.numbered(n) for n in (2, 3, 4, 5)] == [2, 2, 2, 2]


@pytest.mark.parametrize(
    "text", ["", "\n", "#pragma ccc for", "#pragma ccc for\n", "a\n\n#pragma ccc if\n\nb\n"]
)
def test_every_number_has_a_line_and_every_line_a_number(text: str) -> None:
    source = Source(text)
    kept = [n for n, line in enumerate(source.lines, 1) if "pragma" not in line]
    assert [source.numbered(n) for n in kept] == list(range(1, len(kept) + 1))
    assert [source.shown(n) for n in range(1, len(kept) + 1)] == kept


def test_what_is_in_comments_is_no_annotation() -> None:
    text = "/*\n#pragma ccc for\n*/\na"
    assert Source(text).numbered(4) == 4
    assert Source(text).digest != Source(text.replace("#pragma ccc for\n", "")).digest


def test_a_change_is_noticed() -> None:
    assert Source(PLAIN).digest != Source(PLAIN.replace("two", "2")).digest


def test_lines_of_compilers_become_numbers_without_annotations(tmp_path: Path) -> None:
    path = str(tmp_path / "a.cu")
    Path(path).write_bytes(ANNOTATED.encode())
    function = FunctionRun(
        "f", "f", True, path, lines=(LineCount(path, 5, 1, 1, 32), LineCount("b.h", 5, 1, 1, 32))
    )
    assert files_of([function]) == (path, "b.h")
    sources = on_disk(files_of([function]))
    run = with_sources(RunFile(functions=(function,)), sources)
    assert [line.line for line in run.functions[0].lines] == [2, 5]
    assert run.sources == {path: Source(ANNOTATED).digest}
    assert replace(run, functions=()).sources == run.sources
