"""What the package of the driver offers, and what it loads for that."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cccopt import driver


def test_every_name_of_the_driver_is_found() -> None:
    assert all(getattr(driver, name) is not None for name in driver.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = driver.nothing  # type: ignore[attr-defined]


def test_the_report_of_a_unit_loads_no_passes() -> None:
    program = (
        "import sys, cccopt.driver.unit_report; print(*(m for m in sys.modules if m.startswith('cccopt.')))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "cccopt.driver.unit_report" in loaded.stdout
    assert not {"cccopt.passes", "cccopt.ptx", "cccopt.driver.rewriting"} & set(loaded.stdout.split())
