"""What a compilation was asked to do, as it travels from ``ccc-nvcc`` to the shims that nvcc starts.

Three variables carry it: one holds the option words, one per line; the others hold what ``ccc-nvcc`` adds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cccopt.toolchain.options import (
    CANDIDATES,
    DEFAULT,
    FIND,
    INSTRUMENT,
    MODES,
    OPTIONS,
    PREFIX,
    REPORTS,
    STAMP,
    counted,
    is_known,
    value_of,
)

__all__ = ["MODES", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of ``ccc-nvcc`` that the shims obey.

    ``mode`` is ``auto``, ``always`` or ``off``. ``keep`` is a folder for cicc's inputs and outputs (empty: none),
    ``reports`` one for a JSON report per file and architecture. ``stamp`` is a line to end each PTX with (empty:
    none). ``profile`` is the file that tells `auto` how often lanes reach each region (empty: none). ``resident`` is
    how many blocks of a kernel marked ``grid`` share its work (0: as many as the target runs at once). ``form`` is one
    of `FORMS`, ``stacks`` one of `MEMORIES`; ``only`` names the regions to rewrite, separated by commas (empty: all).
    With ``instrument`` (`DEFAULT`, `ALL`, `SAMPLED` or `DETAILED` of `cccopt.toolchain.options`), kernels get counters
    and nothing is rewritten. With ``candidates``, what could be annotated is marked instead of what is, and nothing is
    rewritten. ``decisions`` is the file that `cccopt tune` wrote (empty: none). With ``find``, candidates that gain
    according to ``profile`` and need no promise are rewritten too.
    """

    mode: str = "auto"
    keep_going: bool = False
    verbose: bool = False
    keep: str = ""
    reports: str = ""
    stamp: str = ""
    profile: str = ""
    resident: int = 0
    form: str = "auto"
    only: str = ""
    stacks: str = "auto"
    instrument: str = ""
    decisions: str = ""
    candidates: bool = False
    find: bool = False

    def words(self) -> list[str]:
        """The options of ccc-nvcc that express these settings."""
        flags = {
            INSTRUMENT: self.instrument == DEFAULT,
            CANDIDATES: self.candidates,
            FIND: self.find,
            "--ccc-keep-going": self.keep_going,
            "--ccc-verbose": self.verbose,
        }
        resident = str(self.resident) if self.resident else ""
        valued = {
            INSTRUMENT: self.instrument if self.instrument != DEFAULT else "",
            "--ccc-keep": self.keep,
            "--ccc-profile": self.profile,
            "--ccc-decisions": self.decisions,
            "--ccc-resident": resident,
            "--ccc-form": self.form if self.form != "auto" else "",
            "--ccc-only": self.only,
            "--ccc-stacks": self.stacks if self.stacks != "auto" else "",
        }
        return [
            f"{PREFIX}={self.mode}",
            *(flag for flag, given in flags.items() if given),
            *(f"{name}={value}" for name, value in valued.items() if value),
        ]

    def environment(self) -> dict[str, str]:
        """The variables that carry these settings through nvcc."""
        return {OPTIONS: "\n".join(self.words()), REPORTS: self.reports, STAMP: self.stamp}

    @classmethod
    def of_words(cls, words: Sequence[str], reports: str = "", stamp: str = "") -> Settings:
        """The settings that option words express; words that are not options of ours are ignored."""
        known = [word for word in words if is_known(word)]
        return cls(
            value_of(PREFIX, known) or "auto",
            "--ccc-keep-going" in known,
            "--ccc-verbose" in known,
            value_of("--ccc-keep", known),
            reports,
            stamp,
            value_of("--ccc-profile", known),
            int(value_of("--ccc-resident", known) or 0),
            value_of("--ccc-form", known) or "auto",
            value_of("--ccc-only", known),
            value_of("--ccc-stacks", known) or "auto",
            counted(known),
            value_of("--ccc-decisions", known),
            CANDIDATES in known,
            FIND in known,
        )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """The settings that `environment` carried here, or the defaults."""
        words = environment.get(OPTIONS, "").splitlines()
        return cls.of_words(words, environment.get(REPORTS, ""), environment.get(STAMP, ""))
