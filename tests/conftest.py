"""What every test shares: a cache of their own, hypothesis without deadlines, and the `nvcc`, `gpu` and `slow`
markers.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from cccopt.diagnostic import CccError
from cccopt.toolchain.discovery import find_nvcc
from tests import slow
from tests.shared import shared_folder
from tests.slow import is_slow

# The machine is shared with other work, so an example's time says nothing about the code.
settings.register_profile("cccopt", deadline=None, print_blob=True)
settings.load_profile("cccopt")
settings.register_profile("quick", settings.get_profile("cccopt"), max_examples=30)
# Hours of random kernels: `pytest tests/passes/test_random_kernels.py --hypothesis-profile=long`.
settings.register_profile("long", deadline=None, print_blob=True, max_examples=5000)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Shadow toolkits of the tests go into a folder of this run, never into the user's cache."""
    os.environ["CCCOPT_CACHE"] = str(tmp_path_factory.mktemp("cccopt-cache"))
    if sys.dont_write_bytecode:
        # Every program that a test starts would compile the whole package anew.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(shared_folder(tmp_path_factory) / "bytecode")


def _no_nvcc() -> str | None:
    try:
        find_nvcc()
    except CccError as error:
        return error.diagnostics[0].message
    return None


def _no_gpu() -> str | None:
    if importlib.util.find_spec("pycuda") is None:
        return "PyCUDA is not installed (extra `gpu`)"
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver on this machine"
    return None if driver.cuInit(0) == 0 else "the NVIDIA driver does not find a GPU"


def pytest_configure(config: pytest.Config) -> None:
    """Tests that leave slow ones out are quick themselves."""
    slow.quick = config.getoption("markexpr") == "not slow"
    if slow.quick and config.getoption("--hypothesis-profile") is None:
        settings.load_profile("quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that needs what this machine lacks is skipped, and says what is lacking; slow ones are marked."""
    slow.collected = tuple(item.nodeid for item in items)
    lacking = {"nvcc": _no_nvcc(), "gpu": _no_gpu()}
    for item in items:
        if is_slow(item.nodeid):
            item.add_marker("slow")
        for marker, reason in lacking.items():
            if reason is not None and item.get_closest_marker(marker) is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Look for garbage seldom, and never among what all tests need: it took a fifth of the time."""
    gc.freeze()
    gc.set_threshold(100_000)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).resolve().parent.parent
