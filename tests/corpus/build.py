"""Builds the corpus: ``python -m tests.corpus.build [PRODUCER...]`` (what ``make corpus`` runs).

Each producer's PTX goes into a folder of its own under ``build/corpus`` (or ``CORPUS``), with its version in
``version.txt``. A producer that is not installed is left out and named. ``CORPUS_NVCC`` may hold paths of further
nvcc, separated by colons.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cccopt.toolchain.discovery import Nvcc, find_nvcc
from tests.corpus import ahead, clang, nvrtc
from tests.corpus.cases import SOURCES, Case, cases, sources, targets

ROOT = Path(__file__).parent.parent.parent
WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Producer:
    """A compiler: what it calls itself (None: it is missing) and its texts (None: it makes none of a source)."""

    version: str | None
    texts: Callable[[], Iterator[tuple[str, str | None]]]


def folder() -> Path:
    """Where the corpus is built."""
    return Path(os.environ.get("CORPUS", ROOT / "build" / "corpus"))


def producers() -> dict[str, Producer]:
    """The producers by the names of their folders."""
    found: dict[str, Producer] = {}
    for nvcc in toolkits():
        path = str(nvcc.driver)
        release = _release(path)
        # The first brings every option, the others their own targets and their own front ends.
        found[f"nvcc-{release}"] = Producer(f"nvcc {release}", partial(nvcc_texts, path, quick=bool(found)))
    include = find_nvcc().root / "include"
    found["nvrtc"] = Producer(nvrtc.version(), partial(nvrtc.texts, include))
    found["clang"] = Producer(clang.version(), clang.texts)
    found["triton"] = Producer(ahead.version("triton"), ahead.triton_texts)
    found["numba"] = Producer(ahead.version("numba-cuda"), ahead.numba_texts)
    return found


def toolkits() -> list[Nvcc]:
    """The toolkit that cccopt finds, and those that ``CORPUS_NVCC`` names."""
    return [find_nvcc(), *(find_nvcc(p) for p in os.environ.get("CORPUS_NVCC", "").split(":") if p)]


def _release(nvcc: str) -> str:
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    return said.partition(", V")[2].split()[0]


def nvcc_texts(nvcc: str, *, quick: bool) -> Iterator[tuple[str, str | None]]:
    """Name and text of each case of ``nvcc``; None where it fails (13.5's cicc does at `-O0` on dp4a)."""

    def attempt(case: Case) -> str | None:
        try:
            return compiled(nvcc, case)
        except subprocess.CalledProcessError:
            return None

    wanted = cases(sources(), targets(nvcc), quick=quick)
    with ThreadPoolExecutor(WORKERS) as pool:
        yield from zip((case.file for case in wanted), pool.map(attempt, wanted), strict=True)


def compiled(nvcc: str, case: Case) -> str:
    """The PTX that ``nvcc`` makes of a case; CalledProcessError where it makes none."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, case.file)
        subprocess.run(
            [nvcc, *case.arguments(), "-o", str(out)], cwd=SOURCES, check=True, capture_output=True
        )
        return out.read_text(encoding="utf-8")


def build(name: str, producer: Producer, out: Path) -> tuple[int, int, list[str]]:
    """Write the files of one producer into ``out/name``: how many, how many bytes, and which it did not make."""
    target = out / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    failed: list[str] = []
    for file, text in producer.texts():
        if text is None:
            failed.append(file)
            continue
        (target / file).write_text(text if name.startswith("nv") else ahead.neutral(text), encoding="utf-8")
    (target / "version.txt").write_text(f"{producer.version}\n")
    sizes = [path.stat().st_size for path in target.glob("*.ptx")]
    return len(sizes), sum(sizes), failed


def main(names: list[str]) -> int:
    """Build the named producers' files, or all; 1 where a named one is missing."""
    console, out, all_ = Console(), folder(), producers()
    missing = [name for name in names or all_ if name not in all_ or all_[name].version is None]
    table = Table("producer", "version", "files", "MB", "s", title=f"corpus in {out}")
    for name in names or all_:
        if name not in missing:
            start = time.perf_counter()
            files, size, failed = build(name, all_[name], out)
            taken = time.perf_counter() - start
            if failed:
                console.print(f"{name} does not compile {', '.join(failed)}")
            table.add_row(name, all_[name].version, str(files), f"{size / 1e6:.1f}", f"{taken:.0f}")
    console.print(table)
    if missing:
        console.print(f"not installed: {', '.join(missing)}")
    return 1 if names and missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
