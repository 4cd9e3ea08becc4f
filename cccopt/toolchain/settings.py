"""What a compilation was asked to do, as it travels from ``ccc-nvcc`` to the shims that nvcc starts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass

VARIABLE = "CCC_OPTIONS"
MODES = ("auto", "always", "off")


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of ``ccc-nvcc`` that the shims heed.

    ``mode`` is ``auto``, ``always`` or ``off``; ``reports`` is a folder that takes one JSON report a
    compilation of one file for one architecture, ``keep`` one that takes what went into cicc and came out
    (empty: none).
    """

    mode: str = "auto"
    keep_going: bool = False
    verbose: bool = False
    reports: str = ""
    keep: str = ""

    def environment(self) -> dict[str, str]:
        """The variable that carries these settings through nvcc."""
        return {VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """The settings that `environment` carried here, or the defaults."""
        text = environment.get(VARIABLE)
        return cls(**json.loads(text)) if text else cls()
