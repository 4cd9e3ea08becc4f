"""The kept part of the corpus: PTX that Triton, clang and numba make of our kernels, for machines without them.

``python -m tests.corpus.snapshot`` packs it from the built corpus (``make corpus``), with the producers' versions.
"""

from __future__ import annotations

import io
import sys
import tarfile
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).parent / "snapshot.tar.xz"
PRODUCERS = ("clang", "numba", "triton")
LIMIT = 2_000_000
"""The most bytes that the snapshot may have."""


@lru_cache(maxsize=1)
def contents() -> dict[str, str]:
    """Each file's text by ``PRODUCER/NAME``: the PTX, and the producers' ``version.txt``."""
    with tarfile.open(FILE, "r:xz") as archive:
        read = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        return {name: file.read().decode() for name, file in read.items() if file is not None}


def pack(corpus: Path, to: Path = FILE) -> int:
    """Write the snapshot of what is built in ``corpus``; its size. The same files make the same bytes."""
    with tarfile.open(to, "w:xz", preset=9) as archive:
        for path in sorted(p for name in PRODUCERS for p in (corpus / name).iterdir()):
            data = path.read_bytes()
            member = tarfile.TarInfo(f"{path.parent.name}/{path.name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return to.stat().st_size


if __name__ == "__main__":
    from tests.corpus.build import folder

    size = pack(folder())
    print(f"{FILE.name}: {size} bytes")
    sys.exit(size > LIMIT)
