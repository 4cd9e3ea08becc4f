"""Files of matrices and graphs: what is read from each format, and what is said of a malformed one."""

from __future__ import annotations

import contextvars
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from cccopt.cli import common
from cccopt.diagnostic import CccError
from cccopt.harness.csr import files as csr_files
from cccopt.harness.csr.files import read, watch
from cccopt.harness.csr.matrix import Csr

BANNER = "%%MatrixMarket matrix coordinate real general\n"


def dense(matrix: Csr) -> list[list[float]]:
    """The matrix as rows of numbers; entries without a value count 1, repeated ones are added up."""
    rows = np.zeros((matrix.rows, matrix.columns))
    values = np.ones(matrix.nnz) if matrix.values is None else matrix.values
    np.add.at(rows, (np.repeat(np.arange(matrix.rows), matrix.degrees), matrix.indices), values)
    return rows.tolist()


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """Writes a file and gives its path, with a cache that knows no file."""
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "cache"))

    def write(name: str, text: str) -> str:
        path = tmp_path / name
        content = text.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return str(path)

    return write


MATRICES = {
    "general": (BANNER + "% about\n\n2 3 3\n2 1 2.5\n1 3 -1\n2 1 1e0\n", [[0, 0, -1], [3.5, 0, 0]]),
    "symmetric": (
        "%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 7\n2 1 3\n",
        [[7, 3], [3, 0]],
    ),
    "skew": ("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n", [[0, -3], [3, 0]]),
    "hermitian": ("%%MatrixMarket matrix coordinate real hermitian\n2 2 1\n2 1 3\n", [[0, 3], [3, 0]]),
    "pattern": ("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1\n", [[0, 0], [1, 0]]),
    "array": ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n0\n4\n", [[1, 0], [2, 4]]),
    "line ends of Windows": (BANNER.replace("\n", "\r\n") + "1 1 1\r\n1 1 2.5\r\n", [[2.5]]),
    "nothing in it": (BANNER + "2 2 0\n", [[0, 0], [0, 0]]),
}


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
@pytest.mark.parametrize(("text", "expected"), MATRICES.values(), ids=MATRICES)
def test_matrix_market(
    written: Callable[[str, str], str], text: str, expected: list[list[float]], suffix: str
) -> None:
    matrix = read(written("a" + suffix, text)).check()
    assert dense(matrix) == expected
    assert (matrix.values is None) == ("pattern" in text)


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_edge_lists(written: Callable[[str, str], str], suffix: str) -> None:
    text = "# Nodes: 3 \u00e4\n# From\tTo\n2\t0\n0  1\n\n2\t0\n# more\n4 0"
    graph = read(written("g" + suffix, text)).check()
    assert (graph.rows, graph.columns, graph.values) == (5, 5, None)
    assert list(zip(graph.degrees, [1, 0, 2, 0, 1], strict=True)) == [(d, d) for d in graph.degrees]
    assert graph.indices.tolist() == [1, 0, 0, 0]
    weighted = read(written("w" + suffix, "% bip\n# x\n0 1 2.5\n1 0 -3 # y\n"))
    assert dense(weighted) == [[0, 2.5], [-3, 0]]


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_read_can_be_watched(tmp_path: Path, packed: bool) -> None:
    """In pieces, from front to end, packed as it is: so a bar tells how much is left."""
    text = "".join(f"{tail} {tail * 7 % 5000}\n" for tail in range(300_000)).encode()
    file = tmp_path / ("many.txt.gz" if packed else "many.txt")
    file.write_bytes(gzip.compress(text) if packed else text)
    sizes: list[int] = []

    class Watched(io.FileIO):
        def readinto(self, buffer: Any) -> int:
            sizes.append(super().readinto(buffer) or 0)
            return sizes[-1]

    context = contextvars.copy_context()
    context.run(watch.set, Watched)
    assert context.run(read, str(file)).nnz == 300_000
    assert sum(sizes) == file.stat().st_size
    assert len(sizes) > 2


def test_a_terminal_shows_how_much_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "graph.txt"
    file.write_text("0 1\n")
    shown = io.StringIO()
    monkeypatch.setattr(common, "Console", lambda stderr: Console(file=shown, force_terminal=True, width=80))
    with common.open_shown(str(file)) as stream:
        assert stream.read() == b"0 1\n"
    assert "Reading graph.txt" in shown.getvalue()
    assert "4/4 bytes" in shown.getvalue()
    shown.truncate(0)
    monkeypatch.setattr(common, "Console", lambda stderr: Console(file=shown, force_terminal=False))
    with common.open_shown(str(file)) as stream:
        assert stream.read() == b"0 1\n"
    assert shown.getvalue().strip("\0\n") == ""


def test_huge_ids_are_numbered_anew_and_others_kept(written: Callable[[str, str], str]) -> None:
    graph = read(written("a.txt", "5000000000 7\n7 1048576\n"))
    assert dense(graph) == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]
    assert read(written("b.txt", "0 1048575\n")).rows == 1 << 20


@pytest.mark.parametrize("suffix", [".gr", ".gr.gz"])
def test_dimacs(written: Callable[[str, str], str], suffix: str) -> None:
    text = "c a road\nc\np sp 3 3\nc arcs\na 1 2 803\na 3 1 1\na 1 2 158\n"
    graph = read(written("r" + suffix, text)).check()
    assert graph.rows == 3
    assert graph.degrees.tolist() == [2, 0, 1]
    assert graph.indices.tolist() == [1, 1, 0]
    assert graph.values is not None
    assert graph.values.tolist() == [803, 158, 1]


# name, text, where the mistake is, a part of the line that says why
BAD = [
    ("a.mtx", "", "1:1", "empty"),
    ("a.mtx", "3 3 1\n1 1 1\n", "1:1", "%%MatrixMarket"),
    ("a.mtx", "%%MatrixMarket matrix coordinate quux general\n1 1 1\n1 1 1\n", "1:34", "`real` or"),
    ("a.mtx", "%%MatrixMarket matrix coordinate\n1 1 1\n1 1 1\n", "1:33", "`real` or"),
    ("a.mtx", "%%matrixmarket matrix coordinate real general\n1 1 1\n1 1 1\n", "1:1", "must be spelled"),
    ("a.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "1:34", "`pattern`"),
    ("a.mtx", "%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 1 0\n", "1:34", "`pattern`"),
    ("a.mtx", BANNER, "1:46", "is missing"),
    ("a.mtx", BANNER + "3 3\n1 1 1\n", "2:4", "number of entries is missing"),
    ("a.mtx", BANNER + "3 -3 1\n1 1 1\n", "2:3", "columns is -3"),
    ("a.mtx", BANNER + "3000000000 1 1\n1 1 1\n", "2:1", "not between 0 and 2147483647"),
    ("a.mtx", BANNER + "%\n3 3 2\n1 1 1\n1  x 1\n", "5:4", "column is `x`"),
    ("a.mtx", BANNER + "3 3 2\n1 1 1\n4 1 1\n", "4:1", "row is 4, which is not between 1 and 3"),
    ("a.mtx", BANNER + "3 3 2\n1 1 1\n1 0 1\n", "4:3", "column is 0"),
    ("a.mtx", BANNER + "3 3 1\n1.5 1 1\n", "3:1", "`1.5`, which is not a whole"),
    ("a.mtx", BANNER + "3 3 1\n1 1\n", "3:4", "value is missing"),
    ("a.mtx", BANNER + "3 3 1\n1 1 1,5\n", "3:5", "`1,5`, which is not a number"),
    ("a.mtx", BANNER + "3 3 1\n1 1 1 7\n", "3:7", "`7` does not belong"),
    ("a.mtx", BANNER + "3 3 1\n% late\n1 1 1\n", "3:1", "row is `%`"),
    ("a.mtx", BANNER.replace("real", "pattern") + "3 3 1\n1 1 1\n", "3:5", "`1` does not belong"),
    ("a.mtx", "\n \n", "1:1", "empty"),
    ("a.mtx", BANNER + "3 3 1\n1 1 1e300\n", "3:5", "float cannot hold"),
    ("a.mtx", BANNER + "3 3 1\n1 1 nan\n", "3:5", "float cannot hold"),
    ("a.mtx", BANNER + "3 3 2\n1 1 1\n", "2:5", "2 entries, but the file ends after 1"),
    ("a.mtx", BANNER + "3 3 1\n1 1 1\n1 2 2\n", "4:1", "should end here"),
    ("a.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", "2:1", "4 entries"),
    ("a.txt", "", "1:1", "empty"),
    ("a.txt", "# nothing\n", "1:1", "no edge"),
    ("a.txt", "# c\n0 1\n2 b\n", "3:3", "vertex is `b`"),
    ("a.txt", "0 1\n\n2\n", "3:2", "vertex is missing"),
    ("a.txt", "0 1 # one\n% two\n2 % three\n", "3:10", "vertex is missing"),
    ("a.txt", "7\n", "1:2", "vertex is missing"),
    ("a.txt", "0 1\n1 -2\n", "2:3", "vertex is -2"),
    ("a.txt", "0 1\n1 2 3\n", "2:5", "does not belong in a line of 2 words"),
    ("a.txt", "0 1 1.5\n1 2\n", "2:4", "value is missing"),
    ("a.txt", "0 1 1.5\n1 2 z\n", "2:5", "`z`, which is not a number"),
    ("a.txt", "0 1 2 3\n", "1:7", "does not belong"),
    ("a.txt", "0 1\n1.5 2\n", "2:1", "not a whole number"),
    ("a.txt", "0,1\n", "1:1", "`0,1`, which is not a whole"),
    ("a.txt", "0 99999999999999999999\n", "1:3", "not between"),
    ("a.gr", "", "1:1", "empty"),
    ("a.gr", "c only\n", "1:1", "`p sp VERTICES ARCS` is missing"),
    ("a.gr", "a 1 2 3\n", "1:1", "before any arc"),
    ("a.gr", "p max 3 1\na 1 2 3\n", "1:1", "before any arc"),
    ("a.gr", "p sp three 1\na 1 2 3\n", "1:6", "`three`"),
    ("a.gr", "p sp 3\na 1 2 3\n", "1:7", "number of arcs is missing"),
    ("a.gr", "p sp 3 1\na 1 4 3\n", "2:5", "vertex is 4"),
    ("a.gr", "p sp 3 1\na 0 2 3\n", "2:3", "vertex is 0"),
    ("a.gr", "p sp 3 1\na 1 2\n", "2:6", "value is missing"),
    ("a.gr", "p sp 3 1\na 1 2 z\n", "2:7", "`z`"),
    ("a.gr", "p sp 3 2\na 1 2 3\n", "1:8", "ends after 1"),
    ("a.gr", "p sp 3 1\na 1 2 3\na 2 3 1\n", "3:1", "should end here"),
    ("a.gr", "c\np sp 3 2\na 1 2 3\nb 2 3 1\n", "4:1", "only lines with"),
    ("a.csv", "0,1\n", "1:1", "the suffix of the file name"),
]


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize(("name", "text", "place", "why"), BAD)
def test_the_first_mistake_is_named(
    written: Callable[[str, str], str], name: str, text: str, place: str, why: str, packed: str
) -> None:
    path = written(name + packed, text)
    with pytest.raises(CccError) as caught:
        read(path)
    (said,) = caught.value.diagnostics
    assert said.code == "CCC101"
    assert str(said.place) == f"{path}:{place}"
    assert why in said.why
    assert said.help
    assert said.place is not None
    lines = text.split("\n")
    assert said.place.line_text in ("", lines[int(place.partition(":")[0]) - 1])
    assert said.place.line_text or any(part in why for part in ("empty", "no edge", "is missing"))


def test_files_that_are_no_text(written: Callable[[str, str], str], tmp_path: Path) -> None:
    for name in ("a.mtx", "a.txt", "a.gr", "a"):
        (tmp_path / name).write_bytes(bytes(range(256)) * 20)
        with pytest.raises(CccError, match=rf"CCC101(?s:.*)/{name}:1:"):
            read(str(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.mtx.gz", BANNER + "1 1 1\n1 1 1\n"),
        ("a.txt.gz", "0 1\n"),
        ("a.gr.gz", "c a\np sp 2 1\na 1 2 3\n"),
    ],
)
def test_a_damaged_gz(written: Callable[[str, str], str], tmp_path: Path, name: str, text: str) -> None:
    good = written(name, text)
    content = Path(good).read_bytes()
    checksum = content[:-8] + bytes([content[-8] ^ 1]) + content[-7:]
    for bad in (b"plain text\n", content[: len(content) // 2], checksum):
        (tmp_path / name).write_bytes(bad)
        with pytest.raises(CccError, match=r"CCC101.*cannot unpack"):
            read(good)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "folder.mtx").mkdir()
    for name, reason in (("folder.mtx", "directory"), ("absent.mtx", "no such file")):
        with pytest.raises(CccError, match=rf"CCC086.*{name}.*{reason}"):
            read(str(tmp_path / name))


def test_a_failure_is_not_kept(written: Callable[[str, str], str], tmp_path: Path) -> None:
    path = written("a.txt", "0 x\n")
    for _ in range(2):
        with pytest.raises(CccError, match="CCC101"):
            read(path)
    assert not (tmp_path / "cache").exists()


NUMBERS = st.sampled_from(
    ["0", "1", "2", "3", "-1", "1.5", "x", "p", "sp", "a", "c", "#", "%", "\n", "\n", "4e9"]
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    form=st.sampled_from([(".mtx", BANNER), (".mtx", ""), (".txt", ""), (".gr", "p sp 3 2\n"), (".gr", "")]),
    words=st.lists(NUMBERS, max_size=20),
)
def test_any_text_is_a_matrix_or_an_error_with_a_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: tuple[str, str], words: list[str]
) -> None:
    path = tmp_path / f"a{form[0]}"
    path.write_text(form[1] + " ".join(words))
    monkeypatch.setattr(csr_files, "kept", lambda file, state, make: make())
    try:
        read(str(path)).check()
    except CccError as problem:
        (said,) = problem.diagnostics
        assert said.code == "CCC101"
        assert said.place is not None
        assert said.place.line_text == (path.read_text().split("\n")[said.place.position.line - 1]) or (
            said.place.line_text == ""
        )
