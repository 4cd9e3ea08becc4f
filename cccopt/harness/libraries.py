"""Libraries that only some commands need: extras of the package, imported when they are used."""

from __future__ import annotations

import importlib
from typing import Any

from cccopt.diagnostic import CccError, error


def library(module: str, what: str, extra: str, instead: str = "") -> Any:
    """Import ``module``, or raise CCC092: ``what`` cannot be done without ``extra``; ``instead`` is another way out."""
    try:
        return importlib.import_module(module)
    except ImportError as reason:
        name = module.partition(".")[0]
        raise CccError(
            error(
                "CCC092",
                f"cannot {what}: {name} does not load",
                why=str(reason),
                help=f"install the extra `{extra}` (`pip install 'cccopt[{extra}]'`){instead}",
            )
        ) from reason
