"""How long `cccopt advise` takes for sources without a run, beside their compilation by nvcc.

    python -m bench.advise_speed FILE.cu ... [--nvcc=OPTION ...] [--jobs N]

Each file is compiled (`nvcc -c`) and then advised on, in its own folder, so that `--nvcc=-I.` means that folder. Files
that nvcc refuses are left out. A file is a row: seconds of both, and their ratio; the last row has the sums.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cccopt.cli.main import main as cccopt

ARCH = "sm_90"


@dataclass(frozen=True, slots=True)
class Row:
    """A file with the seconds that it took; ``status`` is that of `cccopt advise`."""

    name: str
    compiled: float
    advised: float
    status: int


def measured(options: Sequence[str], source: Path) -> Row | None:
    """Compile and advise on a file; None if nvcc refuses it."""
    os.chdir(source.parent)
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        begun = time.monotonic()
        command = ["nvcc", *options, f"-arch={ARCH}", "-c", source.name, "-o", f"{folder}/out.o"]
        done = subprocess.run(command, capture_output=True, check=False)
        compiled = time.monotonic() - begun
    if done.returncode != 0:
        return None
    begun = time.monotonic()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        status = cccopt(["advise", source.name, f"--arch={ARCH}", *(f"--nvcc={o}" for o in options)])
    return Row(f"{source.parent.name}/{source.name}", compiled, time.monotonic() - begun, status)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sources", nargs="+", type=Path, metavar="FILE.cu")
    parser.add_argument("--nvcc", action="append", default=[], metavar="OPTION", help="an option for nvcc")
    parser.add_argument("--jobs", type=int, default=1, help="files at a time (default: %(default)s)")
    given = parser.parse_args()
    sources = [source.resolve() for source in given.sources]
    rows = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for row in filter(None, pool.map(partial(measured, given.nvcc), sources)):
            rows.append(row)
            failed = f"  status {row.status}" if row.status else ""
            ratio = row.advised / row.compiled
            print(f"{row.name:44}{row.compiled:9.1f} s{row.advised:9.1f} s{ratio:7.2f}{failed}", flush=True)
    if not rows:
        parser.error("nvcc refuses all of them")
    compiled, advised = sum(row.compiled for row in rows), sum(row.advised for row in rows)
    slower = sum(row.advised > 1.2 * row.compiled for row in rows)
    print(f"{f'{len(rows)} files':44}{compiled:9.1f} s{advised:9.1f} s{advised / compiled:7.2f}")
    print(f"{slower} of them take more than 1.2 times their compilation")


if __name__ == "__main__":
    main()
