"""A driver that reads CUDA_VISIBLE_DEVICES as CUDA does: for the choice of GPUs, which needs none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

# Its GPUs: four with the UUIDs 10.., 11.., 12.., 13.., the last with another name, and MIG devices 20.. and 21.. of
# which it shows one to a process.
DRIVER = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
static std::vector<int> seen;
static int number_of(const std::string &name) {
  if (name.rfind("MIG-2", 0) == 0) return 0x20 + std::atoi(name.c_str() + 5);
  if (name.rfind("GPU-1", 0) == 0 && name.size() > 5) return 0x10 + (name[5] - '0');
  bool number = name.size() == 1 && name[0] >= '0' && name[0] < '4';
  return number ? 0x10 + (name[0] - '0') : -1;
}
extern "C" int cuInit(unsigned) {
  const char *names = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!names) { seen = {0x10, 0x11, 0x12, 0x13}; return 0; }
  std::string rest = names;
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    int number = number_of(rest.substr(0, comma));
    if (number < 0 || (number >= 0x20 && !seen.empty())) break;
    seen.push_back(number);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return seen.empty() ? 100 : 0;
}
extern "C" int cuDeviceGetCount(int *count) { *count = seen.size(); return 0; }
extern "C" int cuDeviceGet(int *device, int number) { *device = seen[number]; return 0; }
extern "C" int cuDeviceGetName(char *name, int size, int device) {
  std::strncpy(name, device == 0x13 ? "Small GPU" : "Large GPU", size);
  return 0;
}
extern "C" int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  std::memset(uuid, 0, 16);
  uuid[0] = device;
  return 0;
}
"""


def make_driver(folder: Path) -> Path:
    """Compile it into a folder, for LD_LIBRARY_PATH, which is returned."""
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    (folder / "driver.cpp").write_text(DRIVER)
    made = folder / "libcuda.so.1"
    subprocess.run(["g++", "-shared", "-fPIC", folder / "driver.cpp", "-o", made], check=True)
    return folder
