"""Inputs for programs whose own are not in their repositories: `python -m bench.real.inputs KIND FILE SIZE`.

All are random with a fixed seed, of the sizes and shapes that these programs' users have: degrees of a graph by a power
law, reads that differ from their reference in a few places, words of English length.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

RNG = np.random.default_rng(2024)
BASES = np.frombuffer(b"ACGT", np.uint8)


def _edges(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Both directions of random edges, sorted by source: a third of the ends are drawn from a power law."""
    count = 4 * nodes
    source = RNG.integers(0, nodes, count)
    near = (source + RNG.integers(1, 64, count)) % nodes
    hub = (nodes * RNG.random(count) ** 4).astype(np.int64)
    target = np.where(RNG.random(count) < 1 / 3, hub, near)
    both = np.stack([np.concatenate([source, target]), np.concatenate([target, source])])
    both = np.unique(both[:, both[0] != both[1]], axis=1)
    return both[0], both[1]


def _offsets(sources: np.ndarray, nodes: int) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=nodes))])


def graph_binary(path: Path, nodes: int) -> None:
    """Nodes, edges, offsets, neighbours: 32-bit integers without a header, as ECL's programs read them."""
    sources, targets = _edges(nodes)
    parts = (np.array([nodes, targets.size]), _offsets(sources, nodes), targets)
    path.write_bytes(b"".join(part.astype(np.int32).tobytes() for part in parts))


def graph_text(path: Path, nodes: int) -> None:
    """Nodes with offset and degree, the source, edges with a cost: text, as Rodinia's programs read it."""
    sources, targets = _edges(nodes)
    offsets = _offsets(sources, nodes)
    with path.open("w") as file:
        file.write(f"{nodes}\n")
        np.savetxt(file, np.stack([offsets[:-1], np.diff(offsets)], 1), "%d")
        file.write(f"\n0\n\n{targets.size}\n")
        np.savetxt(file, np.stack([targets, np.ones_like(targets)], 1), "%d")


def text(path: Path, size: int) -> None:
    """Words of lower-case letters; each thousandth is the one that is looked for."""
    lengths = RNG.integers(2, 11, size // 6)
    letters = (
        RNG.choice(np.frombuffer(b"etaoinshrdlucmfwyp", np.uint8), int(lengths.sum())).tobytes().decode()
    )
    ends = np.cumsum(lengths)
    words = [letters[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    words[::1000] = ["clEnqueueNDRangeKernel"] * len(words[::1000])
    path.write_text(" ".join(words))


def bases(path: Path, size: int) -> None:
    """One sequence."""
    path.write_bytes(RNG.choice(BASES, size).tobytes())


def reads(path: Path, count: int) -> None:
    """FASTA: reads of 100 to 1,000 bases in families, whose members differ in up to one base of ten."""
    lines = []
    parent = RNG.choice(BASES, 1000)
    for index in range(count):
        if index % 8 == 0:
            parent = RNG.choice(BASES, 1000)
        read = parent[: RNG.integers(100, 1001)].copy()
        places = RNG.integers(0, read.size, int(read.size * RNG.random() * 0.1))
        read[places] = RNG.choice(BASES, places.size)
        lines.append(f">read{index}\n{read.tobytes().decode()}\n")
    path.write_text("".join(lines))


def pairs(path: Path, count: int) -> None:
    """A read of 100 bases and its reference, which differ in up to 30 places, a tab between them."""
    lines = []
    for _ in range(count):
        read = RNG.choice(BASES, 100)
        reference = read.copy()
        places = RNG.integers(0, 100, RNG.integers(0, 31))
        reference[places] = RNG.choice(BASES, places.size)
        lines.append(f"{read.tobytes().decode()}\t{reference.tobytes().decode()}\n")
    path.write_text("".join(lines))


def cities(path: Path, count: int) -> None:
    """Latitude and longitude in degrees, a city a line. All are in one half of the earth: for antipodes, iterations for
    their distance may not converge, and a program runs for ever.
    """
    np.savetxt(path, np.stack([RNG.uniform(-60, 70, count), RNG.uniform(-85, 85, count)], 1), "%.6f")


def counts(path: Path, count: int) -> None:
    """An event count and an exposure a line: the counts of a Poisson-Gamma model."""
    exposure = RNG.uniform(0.5, 50, count)
    events = RNG.poisson(RNG.gamma(0.8, 2, count) * exposure)
    np.savetxt(path, np.stack([events, exposure], 1), ("%d", "%.4f"))


def smooth(path: Path, count: int) -> None:
    """Quantized samples of a smooth signal: 32-bit integers with many repetitions."""
    signal = np.cumsum(RNG.normal(0, 0.2, count))
    path.write_bytes((np.round(signal).astype(np.int64) % 64).astype(np.uint32).tobytes())


def noise(path: Path, size: int) -> None:
    """Bytes without any order."""
    path.write_bytes(RNG.integers(0, 256, size, np.uint8).tobytes())


KINDS: dict[str, Callable[[Path, int], None]] = {
    kind.__name__.replace("_", "-"): kind
    for kind in (graph_binary, graph_text, text, bases, reads, pairs, cities, counts, smooth, noise)
}


def main() -> None:
    """Write a file, unless it is there."""
    options = argparse.ArgumentParser(
        prog="python -m bench.real.inputs", description=(__doc__ or "").splitlines()[0]
    )
    options.add_argument("kind", choices=KINDS)
    options.add_argument("file", type=Path)
    options.add_argument("size", type=int)
    given = options.parse_args()
    if not given.file.exists():
        KINDS[given.kind](given.file, given.size)


if __name__ == "__main__":
    main()
