"""Each generator gives what its description promises; the probe's inputs are those of ``std::mt19937``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from cccopt.harness.csr import meshes, probe
from cccopt.harness.csr.generators import GENERATORS, SEEDLESS, random
from cccopt.harness.csr.matrix import Csr

NAMES = tuple(GENERATORS)
SYMMETRIC = ("delaunay", "road", "banded")


@pytest.fixture(scope="module")
def small() -> dict[str, Csr]:
    return {name: make("small", 4) for name, make in GENERATORS.items()}


@pytest.mark.parametrize("name", NAMES)
def test_small_inputs_are_small_and_sound(small: dict[str, Csr], name: str) -> None:
    matrix = small[name].check()
    assert matrix.rows == matrix.columns
    assert 10_000 <= matrix.nnz <= 35_000
    assert matrix.rows == 100_000 if name == "mostly_empty" else 2_000 <= matrix.rows <= 4_000


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_sorted_but_for_the_probes(small: dict[str, Csr], name: str) -> None:
    matrix = small[name]
    owners = np.repeat(np.arange(matrix.rows), matrix.degrees)
    inside = owners[1:] == owners[:-1]
    assert bool(np.all(np.diff(matrix.indices)[inside] >= 0)) == (not name.endswith("_probe"))


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_says_all(small: dict[str, Csr], name: str) -> None:
    again, other = GENERATORS[name]("small", 4), GENERATORS[name]("small", 5)
    assert np.array_equal(small[name].offsets, again.offsets)
    assert np.array_equal(small[name].indices, again.indices)
    assert np.array_equal(again.indices, other.indices) == (name in SEEDLESS)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_meshes_are_symmetric_and_name_no_edge_twice(small: dict[str, Csr], name: str) -> None:
    matrix = small[name]
    turned = matrix.transpose()
    assert np.array_equal(matrix.offsets, turned.offsets)
    assert np.array_equal(matrix.indices, turned.indices)
    edges = {*zip(np.repeat(np.arange(matrix.rows), matrix.degrees), matrix.indices, strict=True)}
    assert len(edges) == matrix.nnz


def test_a_triangulation_is_planar_and_near(small: dict[str, Csr]) -> None:
    mesh = small["delaunay"]
    assert mesh.degrees.min() >= 2
    # Euler: a triangulation of n points has 3 n - 3 - h edges, h of them around.
    assert 3 * mesh.rows - 200 < mesh.nnz / 2 <= 3 * mesh.rows - 6
    distance = np.abs(np.repeat(np.arange(mesh.rows), mesh.degrees) - mesh.indices)
    assert np.median(distance) < 100


def test_roads_are_a_grid_with_gaps_and_diagonals() -> None:
    side = 200
    grid = meshes.road(side, random(1)).check()
    step = grid.indices - np.repeat(np.arange(grid.rows), grid.degrees)
    assert {*np.abs(step).tolist()} == {1, side, side + 1}
    there = [np.count_nonzero(step == s) / side**2 for s in (1, side, side + 1)]
    assert there == pytest.approx([0.95, 0.95, 0.03], abs=0.02)
    assert 0.9 < np.mean((grid.degrees >= 1) & (grid.degrees <= 4)) < 1


def test_bands_are_cut_at_the_corners() -> None:
    band = meshes.banded(9, random(0))
    dense = [[abs(i - j) <= 3 for j in range(9)] for i in range(9)]
    rows = np.split(band.indices, band.offsets[1:-1])
    assert [row.tolist() for row in rows] == [np.flatnonzero(row).tolist() for row in dense]


def test_rows_have_the_lengths_of_their_laws(small: dict[str, Csr]) -> None:
    degrees = {name: matrix.degrees for name, matrix in small.items()}
    assert degrees["erdos_renyi"].mean() == pytest.approx(8, abs=0.2)
    assert degrees["erdos_renyi"].var() == pytest.approx(8, abs=1)
    # P(1) = 1 / zeta(2.1), P(2) / P(1) = 2 ** -2.1
    counts = np.bincount(degrees["power_law"])
    assert counts[1] / len(degrees["power_law"]) == pytest.approx(0.641, abs=0.03)
    assert counts[2] / counts[1] == pytest.approx(2**-2.1, abs=0.03)
    assert degrees["power_law"].max() <= 2000
    assert degrees["log_normal"].mean() == pytest.approx(12, abs=1.2)
    assert np.median(degrees["log_normal"]) == pytest.approx(12 / np.exp(0.5), abs=1)
    assert sorted(degrees["one_giant"].tolist())[-2:] == [2, 8000]
    assert degrees["one_giant"].argmax() == 1000
    assert degrees["one_giant"].min() == 2
    full = degrees["mostly_empty"][degrees["mostly_empty"] > 0]
    assert full.tolist() == [1000] * 10


def test_rmat_has_the_probabilities_of_its_quadrants(small: dict[str, Csr]) -> None:
    graph = small["rmat"]
    assert (graph.rows, graph.nnz) == (2048, 20_001)
    # A vertex whose number has k ones of 11 bits has an edge's tail with probability .76**(11 - k) * .24**k.
    longest = np.sort(graph.degrees)[::-1]
    assert longest[0] == pytest.approx(20_001 * 0.76**11, rel=0.1)
    assert longest[1:12].mean() == pytest.approx(20_001 * 0.76**10 * 0.24, rel=0.1)
    hub = int(graph.degrees.argmax())
    heads = np.bincount(graph.indices, minlength=graph.rows)
    assert heads.argmax() == hub  # b == c: both sides alike
    assert np.count_nonzero(graph.indices[slice(*graph.offsets[hub : hub + 2])] == hub) == pytest.approx(
        20_001 * 0.57**11, abs=30
    )
    assert hub > 20  # renumbered


PROGRAM = r"""
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>
static void fill(const char *name, const std::vector<int> &degrees, int near) {
  const int n = degrees.size();
  std::vector<int> offsets(n + 1), columns;
  std::vector<float> values, x;
  std::mt19937 g(1);
  for (int i = 0; i < n; i++) {
    offsets[i + 1] = offsets[i] + degrees[i];
    x.push_back((g() & 0xffff) / 65536.f);
    for (int k = 0; k < degrees[i]; k++) {
      long column;
      if (near) column = std::min<long>(n - 1, std::max<long>(0, (long)i + (int)(g() % near) - near / 2));
      else if (g() & 3) column = g() % n;
      else column = (int)(n * pow((g() & 0xffffff) / 16777216.0, 4));
      columns.push_back(column);
      values.push_back((g() & 0xffff) / 65536.f);
    }
  }
  FILE *file = fopen(name, "wb");
  fwrite(offsets.data(), 4, n + 1, file);
  fwrite(columns.data(), 4, columns.size(), file);
  fwrite(values.data(), 4, values.size(), file);
  fwrite(x.data(), 4, n, file);
  fclose(file);
}
int main(int, char **rows) {
  std::mt19937 g(7);
  std::vector<int> a(atoi(rows[1])), b(atoi(rows[2])), c(atoi(rows[3]));
  for (auto &v : a) v = (int)std::min(20000.0, 1.9 / pow((g() + 0.5) / 4294967296.0, 0.62));
  for (auto &v : b) { v = 3 + (g() & 3); v += g() & 3; v += g() % 3; }
  for (auto &v : c) v = 4 + g() % 2;
  fill("power_law_probe", a, 0);
  fill("delaunay_probe", b, 2000);
  fill("rajat_probe", c, 400);
}
"""

ROWS = (40_001, 30_011, 20_021)


@pytest.fixture(scope="module")
def by_cpp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the three inputs, of `ROWS` rows, by a C++ program."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler on this machine")
    folder = tmp_path_factory.mktemp("probe")
    (folder / "probe.cpp").write_text(PROGRAM)
    subprocess.run([compiler, "-O1", "probe.cpp", "-o", "probe"], cwd=folder, check=True)
    subprocess.run(["./probe", *map(str, ROWS)], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("name", ["power_law_probe", "delaunay_probe", "rajat_probe"])
@pytest.mark.parametrize("piece", [1 << 23, 50_003])
def test_probes_are_those_of_mt19937(
    by_cpp: Path, name: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_PIECE", piece)
    made = getattr(probe, name)(ROWS)
    assert made.values is not None
    assert made.x is not None
    bits = [part.tobytes() for part in (made.offsets, made.indices, made.values, made.x)]
    assert b"".join(bits) == (by_cpp / name).read_bytes()
