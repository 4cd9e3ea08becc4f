"""What nvcc runs in place of cudafe++ on a text with our pragmas, or one to instrument: ``REAL_TOOL arguments...``.

The host's half of the program holds no kernels, so it is compiled without our pragmas. They are removed from nvcc's own
intermediate file, which nothing else reads, and the real tool replaces this process. With `--ccc-instrument`, our
declarations are appended to that file. Imports little, because every annotated file pays for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cccopt.files import read_text, write_text
from cccopt.source.strip import strip
from cccopt.toolchain.inputs import original, preprocessed
from cccopt.toolchain.options import OPTIONS, counted


def main(argv: Sequence[str]) -> int:
    """Become the tool ``argv[0]``; returns only for an error of ours, with status 1."""
    try:
        for text in preprocessed(argv[1:]):
            plain = strip(read_text(text))
            if counted(os.environ.get(OPTIONS, "").splitlines()):
                from cccopt.toolchain.instrument import with_header

                plain = with_header(plain, original(argv[1:]) or text)
            write_text(text, plain)
    except Exception as problem:
        from cccopt.diagnostic import CccError  # takes 10 ms, so only after an error

        if not isinstance(problem, CccError):
            raise
        print(problem, file=sys.stderr)
        return 1
    os.execv(argv[0], list(argv))
