"""The mutants of `bench.mutation` that no test can tell from the package, by name, and why that is so."""

from __future__ import annotations

OUT_OF_TIME = "no test in the time given (--seconds)"

EQUIVALENT: dict[str, str] = {}
