"""How often Python looks for garbage while much code is analyzed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 200_000
"""The number of new objects after which Python looks for garbage; its default is 700."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Search for garbage rarely: the objects of code live on, hold no cycles, and are many for a large file."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
