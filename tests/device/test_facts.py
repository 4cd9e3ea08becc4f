"""What the driver says of GPUs: a driver that the test compiles, the machine's own, and none."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cccopt.device.facts import ATTRIBUTES, DeviceFacts, devices

FAKE = """
#include <cstring>
extern "C" int cuInit(unsigned) { return FAILURE; }
extern "C" int cuDeviceGetCount(int *count) { *count = 2; return 0; }
extern "C" int cuDeviceGet(int *device, int number) { *device = number + 5; return 0; }
extern "C" int cuDeviceGetName(char *name, int size, int device) {
  std::strncpy(name, device == 5 ? "GPU five" : "GPU six", size);
  return 0;
}
extern "C" int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute * 10 + device;
  return attribute == 106;
}
"""


def driver(folder: Path, failure: int) -> str:
    """A shared library that is a driver with two GPUs."""
    source, made = folder / "driver.cpp", folder / f"driver{failure}.so"
    source.write_text(FAKE)
    subprocess.run(["g++", "-shared", "-fPIC", f"-DFAILURE={failure}", source, "-o", made], check=True)
    return str(made)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_each_gpu_is_described(tmp_path: Path) -> None:
    five, six = devices(driver(tmp_path, 0))
    # The last attribute fails, and is not known.
    assert five == DeviceFacts("GPU five", 165, 135, 365, 375, 385, 395, 815, 825, 0)
    assert (six.name, six.processors) == ("GPU six", 166)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_a_driver_that_does_not_start_describes_nothing(tmp_path: Path) -> None:
    assert devices(driver(tmp_path, 100)) == ()


def test_without_a_driver_there_is_nothing() -> None:
    assert devices("no-such-library.so") == ()


def test_peak_rates_are_those_of_the_data_sheet() -> None:
    """NVIDIA H100 SXM: 132 multiprocessors at 1.98 GHz, HBM3 with 5120 bits at 2.619 GHz: 3.35 TB/s."""
    h100 = DeviceFacts("H100", 132, 1_980_000, 2_619_000, 5120, 50 << 20, 2048, 233_472, 65_536, 32)
    assert h100.bytes_per_ns == pytest.approx(3352, abs=1)
    assert h100.slots_per_ns == pytest.approx(1045, abs=1)
    assert h100.warps == 132 * 64


def test_the_agent_asks_for_the_same(repository: Path) -> None:
    agent = (repository / "cccopt/profiling/agent.cpp").read_text()
    (listed,) = re.findall(r"kAttributes\[\] = \{([^}]*)\}", agent)
    assert tuple(map(int, listed.split(","))) == ATTRIBUTES


@pytest.mark.gpu
def test_this_machine() -> None:
    (first, *_) = devices()
    assert first.name
    assert all((first.processors, first.clock, first.memory_clock, first.bus, first.cache, first.registers))
