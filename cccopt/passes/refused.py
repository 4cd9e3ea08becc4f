"""What happens to a function that a pass refuses."""

from __future__ import annotations

from cccopt.ccc.outcome.refusal import Refusal
from cccopt.diagnostic import Diagnostic
from cccopt.passes.options import Options


def left(refused: Refusal, options: Options) -> tuple[Diagnostic, ...]:
    """The warnings with which the function is left as it was. Raises ``refused`` unless options say ``keep_going``."""
    if not options.keep_going:
        raise refused
    return tuple(d.as_warning() for d in refused.diagnostics)
