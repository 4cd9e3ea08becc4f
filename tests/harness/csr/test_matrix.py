"""Matrices in CSR form, what `load` takes, and the cache folder behind it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from cccopt.diagnostic import CccError
from cccopt.harness.csr import cache as csr_cache
from cccopt.harness.csr import files as csr_files
from cccopt.harness.csr import generators as csr_generators
from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr import matrix as csr_matrix
from cccopt.harness.csr.matrix import Csr, from_degrees, from_edges

EDGES = (np.array([2, 0, 2, 0]), np.array([1, 2, 0, 2]))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "inputs"


def lists(matrix: Csr) -> list[list[int]]:
    """The columns of each row."""
    return [row.tolist() for row in np.split(matrix.indices, matrix.offsets[1:-1])]


def test_edges_become_sorted_rows_with_their_values() -> None:
    graph = from_edges(4, *EDGES, np.array([1, 2, 3, 4], np.float32)).check()
    assert lists(graph) == [[2, 2], [], [0, 1], []]
    assert graph.values is not None
    assert graph.values.tolist() == [2, 4, 3, 1]
    assert graph.degrees.tolist() == [2, 0, 2, 0]
    assert (graph.rows, graph.columns, graph.nnz) == (4, 4, 4)
    assert lists(from_edges(4, *EDGES)) == lists(graph)


def test_repeated_edges_stay_in_their_order() -> None:
    count = 1000  # enough that a sort which is not stable would mix them
    graph = from_edges(2, np.zeros(count), np.arange(count) % 2, np.arange(count, dtype=np.float32))
    assert graph.values is not None
    assert graph.values.tolist() == [*range(0, count, 2), *range(1, count, 2)]


def test_a_transpose_keeps_repeated_entries_and_values() -> None:
    graph = from_edges(4, *EDGES, np.array([1, 2, 3, 4], np.float32))
    turned = graph.transpose().check()
    assert lists(turned) == [[2], [2], [0, 0], []]
    assert turned.values is not None
    assert turned.values.tolist() == [3, 1, 2, 4]
    assert from_edges(4, *EDGES).transpose().values is None
    wide = from_degrees(np.array([1, 2]), 5, np.array([4, 0, 4], np.int32)).transpose()
    assert (wide.rows, wide.columns, lists(wide)) == (5, 2, [[1], [], [], [], [0, 1]])


def test_what_does_not_fit_together_is_no_matrix() -> None:
    ints = np.zeros(3, np.int32)
    with pytest.raises(ValueError, match="offsets"):
        Csr(3, 3, ints, ints)
    with pytest.raises(ValueError, match=r"indices.*\(0,\)"):
        Csr(2, 3, ints, ints)
    with pytest.raises(ValueError, match="float64"):
        Csr(2, 3, ints, ints[:0], np.zeros(0))
    with pytest.raises(ValueError, match="within the 2 columns"):
        Csr(1, 2, np.array([0, 1], np.int32), np.array([2], np.int32)).check()
    with pytest.raises(ValueError, match="rise"):
        Csr(2, 2, np.array([0, 3, 1], np.int32), ints[:1]).check()


def test_more_than_32_bits_number_is_an_error() -> None:
    with pytest.raises(CccError, match=r"CCC101.*too many non-zeros: 2147483648"):
        from_degrees(np.array([2**31 - 1, 1]), 5, np.zeros(0, np.int32))
    with pytest.raises(CccError, match="too many vertices"):
        from_edges(2**31, *EDGES)


def test_drawn_values_are_exact_positive_and_the_seeds() -> None:
    count = 2**20  # each of the 2**16 values comes 16 times on average
    bare = from_degrees(np.array([count]), count, np.zeros(count, np.int32))
    first, again, other = bare.completed(1), bare.completed(1), bare.completed(2)
    for name in ("values", "x"):
        drawn = getattr(first, name)
        assert drawn.shape == (count,)
        assert (drawn.min(), drawn.max()) == (2**-16, 1)
        assert np.array_equal(drawn * 65536, np.trunc(drawn * 65536))
        assert np.array_equal(drawn, getattr(again, name))
        assert not np.array_equal(drawn, getattr(other, name))
    assert first.completed(5).values is first.values


def test_load_by_name_or_by_path(tmp_path: Path, cache: Path) -> None:
    made = csr_inputs.load("road", "small", 3)
    assert made.values is not None
    assert made.x is not None
    assert not cache.exists()  # small ones are made again
    file = tmp_path / "edges.txt"
    file.write_text("0 1\n1 2\n")
    read = csr_inputs.load(str(file), "full", 3)
    assert lists(read) == [[1], [2], []]
    assert read.values is not None
    assert read.x is not None


def test_load_of_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CccError, match=r"CCC100.*`raod`(?s:.*)`road`"):
        csr_inputs.load("raod", "small", 0)
    with pytest.raises(CccError, match=r"CCC091.*`road` has no size `huge`(?s:.*)`small`, `full`"):
        csr_inputs.load("road", "huge", 0)
    with pytest.raises(CccError, match=r"CCC086.*directory"):
        csr_inputs.load(str(tmp_path), "small", 0)


@pytest.mark.usefixtures("cache")
def test_full_inputs_are_made_once_and_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def make(size: str, seed: int) -> Csr:
        made.append(seed)
        return csr_generators.GENERATORS["road"]("small", seed)

    monkeypatch.setattr(csr_inputs, "GENERATORS", {"road": make, "banded": make})
    first, again = csr_inputs.load("road", "full", 1), csr_inputs.load("road", "full", 1)
    assert made == [1]
    assert lists(first) == lists(again)
    for array in (first.offsets, first.indices):
        assert type(array) is np.ndarray
        assert isinstance(array.base, np.memmap)
    csr_inputs.load("road", "full", 2)
    assert made == [1, 2]
    monkeypatch.setattr(csr_inputs, "VERSION", csr_inputs.VERSION + 1)
    csr_inputs.load("road", "full", 2)
    assert made == [1, 2, 2]
    made.clear()
    csr_inputs.load("banded", "full", 1)  # no seed changes it
    csr_inputs.load("banded", "full", 2)
    assert made == [0]


def test_a_file_is_read_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "edges.txt"
    file.write_text("0 1 2.5\n")
    os.utime(file, ns=(0, 10**9))
    first = csr_files.read(str(file))
    assert [p.suffix for p in cache.iterdir()] == [".npz"]
    with monkeypatch.context() as patch:
        patch.setattr(csr_files, "_read", None)
        monkeypatch.chdir(tmp_path)
        again = csr_files.read("edges.txt")
    assert (lists(again), again.values.tolist(), again.x) == (lists(first), [2.5], None)
    file.write_text("1 0 2.5\n")
    os.utime(file, ns=(0, 2 * 10**9))
    assert lists(csr_files.read(str(file))) == [[], [0]]
    assert len(list(cache.iterdir())) == 1


def test_a_damaged_or_foreign_cache_is_no_harm(tmp_path: Path, cache: Path) -> None:
    file = tmp_path / "edges.txt"
    file.write_text("0 1\n")
    right = csr_files.read(str(file))
    (kept,) = cache.iterdir()
    content = kept.read_bytes()
    for bad in (b"", content[:100], content[:-30], b"PK" + content[2:200]):
        kept.write_bytes(bad)
        assert lists(csr_files.read(str(file))) == lists(right)
        assert kept.read_bytes() == content
    kept.unlink()
    kept.mkdir()
    assert lists(csr_files.read(str(file))) == lists(right)
    assert kept.is_file()
    folder = cache / "road-v1"
    folder.mkdir()
    (folder / "offsets.npy").write_bytes(b"half")
    assert csr_cache.kept_mapped("road-v1", lambda: right).rows == right.rows
    assert sorted(p.name for p in cache.iterdir()) == sorted([kept.name, "road-v1"])


def test_a_cache_that_cannot_be_written_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "cache"))
    matrix = from_edges(4, *EDGES)
    assert csr_cache.kept_mapped("some", lambda: matrix) is matrix


def test_without_scipy_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ImportError(f"no {name}")

    monkeypatch.setattr("importlib.import_module", absent)
    with pytest.raises(CccError, match=r"CCC092.*sparse matrices: scipy(?s:.*)cccopt\[bench\]"):
        csr_matrix.from_edges(4, *EDGES).transpose()
