"""What nvcc runs in place of cudafe++ on a text with pragmas of ours: ``REAL_TOOL arguments...``.

The host's half of the program holds no kernels: it is compiled without our pragmas. This module imports
little, because every annotated file pays for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cccopt.diagnostic import CccError
from cccopt.files import read_text
from cccopt.source.annotate import strip
from cccopt.toolchain.call import Call


def main(argv: Sequence[str]) -> int:
    """Run the tool ``argv[0]``; returns its exit status, or 1 for an error of ours."""
    call = Call(argv[0], tuple(argv[1:]))
    try:
        outcome = call.run(strip(read_text(call.source)))
    except CccError as problem:
        print(problem, file=sys.stderr)
        return 1
    sys.stderr.write(outcome.messages)
    return outcome.status
