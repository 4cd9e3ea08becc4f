"""Annotated CUDA files, each compiled once in a run of the tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import settings

from cccopt.ptx.ir import Module
from tests.passes.running import CUDA, marked

# Hours of random kernels: `pytest tests/passes/test_random_kernels.py --hypothesis-profile=long`.
settings.register_profile("long", deadline=None, print_blob=True, max_examples=5000)

Compiled = Callable[[str, str], Module]


@pytest.fixture(scope="session")
def compiled() -> Compiled:
    """The marked PTX of ``cuda/NAME.cu`` for an architecture."""

    @cache
    def module(name: str, arch: str) -> Module:
        return marked(CUDA / f"{name}.cu", arch)

    return module
