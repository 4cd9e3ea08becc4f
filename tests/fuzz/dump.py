"""Writes rewritten kernels and a host program that launches them all, for compute-sanitizer on a machine with a GPU.

manifest.txt   one launch a line: cubin, kernel, grid (3), block (3), file of arguments
launch.cu      the host program
run.sh         builds it and runs memcheck, racecheck and synccheck over it
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from tests.fuzz.cuda_memory import arguments
from tests.fuzz.gpu_jobs import Case, Job, three
from tests.kernels.running import Arguments

_PROGRAM = r"""// Launches every kernel of a manifest once: ./launch [MANIFEST]. Exit status 1 if one fails.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

static void check(cudaError_t result, const std::string& what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what.c_str(), cudaGetErrorString(result));
  std::exit(1);
}

template <class T> static T next(std::ifstream& file) {
  T value{};
  file.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

int main(int count, char** words) {
  std::ifstream manifest(count > 1 ? words[1] : "manifest.txt");
  if (!manifest) { std::fprintf(stderr, "no manifest\n"); return 1; }
  check(cudaDeviceSetLimit(cudaLimitStackSize, 8192), "stack");
  std::map<std::string, cudaLibrary_t> loaded;
  int launches = 0;
  for (std::string line; std::getline(manifest, line); ++launches) {
    std::istringstream in(line);
    std::string image, kernel, file;
    unsigned g[3], b[3];
    in >> image >> kernel >> g[0] >> g[1] >> g[2] >> b[0] >> b[1] >> b[2] >> file;
    if (!loaded.count(image)) {
      check(cudaLibraryLoadFromFile(&loaded[image], image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0), image);
    }
    cudaKernel_t function;
    check(cudaLibraryGetKernel(&function, loaded[image], kernel.c_str()), line);
    std::ifstream data(file, std::ios::binary);
    const auto number = next<uint32_t>(data);
    std::vector<uint32_t> scalars(number);
    std::vector<void*> buffers(number);
    std::vector<void*> passed(number);
    for (uint32_t i = 0; i < number; ++i) {
      const auto kind = next<uint32_t>(data);  // 0: a number, 1: a buffer, 2: a buffer of zeros
      if (kind == 0) { scalars[i] = next<uint32_t>(data); passed[i] = &scalars[i]; continue; }
      const auto size = next<uint64_t>(data);
      check(cudaMalloc(&buffers[i], size), line);
      if (kind == 1) {
        std::vector<char> bytes(size);
        data.read(bytes.data(), size);
        check(cudaMemcpy(buffers[i], bytes.data(), size, cudaMemcpyHostToDevice), line);
      } else {
        check(cudaMemset(buffers[i], 0, size), line);
      }
      passed[i] = &buffers[i];
    }
    const dim3 grid(g[0], g[1], g[2]), block(b[0], b[1], b[2]);
    check(cudaLaunchKernel(reinterpret_cast<const void*>(function), grid, block, passed.data()), line);
    check(cudaDeviceSynchronize(), line);
    for (void* buffer : buffers) if (buffer) check(cudaFree(buffer), line);
  }
  std::printf("%d launches\n", launches);
}
"""
_SCRIPT = """#!/bin/sh
set -e
cd "$(dirname "$0")"
nvcc -std=c++17 -o launch launch.cu
./launch
for tool in memcheck racecheck synccheck; do
  echo "== $tool"
  compute-sanitizer --tool $tool --error-exitcode 1 ./launch
done
"""


class Dump:
    """A folder that takes in jobs until it has ``count`` kernels."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.left = folder, count
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "launch.cu").write_text(_PROGRAM)
        (folder / "run.sh").write_text(_SCRIPT)
        (folder / "run.sh").chmod(0o755)
        (folder / "manifest.txt").write_text("")

    def add(self, job: Job) -> None:
        """Writes the kernels of ``job``, each form of each with the smaller of its launches."""
        lines = []
        for case in job.cases[: self.left]:
            lines += self._case(job, case)
        self.left -= min(len(job.cases), self.left)
        with (self.folder / "manifest.txt").open("a") as manifest:
            manifest.writelines(lines)

    def _case(self, job: Job, case: Case) -> list[str]:
        lines = []
        for number, launch in enumerate(case.launches):
            if launch.threads > 512:
                continue
            given = f"{job.seed}_{case.kernel}_{number}.bin"
            (self.folder / given).write_bytes(packed(arguments(launch)))
            for place in case.images:
                image = f"{job.seed}_{place}.cubin"
                (self.folder / image).write_bytes(job.images[place].cubin)
                sizes = (*three(launch.grid), *three(launch.block))
                lines.append(f"{image} {case.kernel} {' '.join(map(str, sizes))} {given}\n")
        return lines


def packed(given: Arguments) -> bytes:
    """Arguments as the host program reads them: their number, then kind and value, or kind, size and bytes."""
    parts = [struct.pack("<I", len(given))]
    for argument in given:
        if not isinstance(argument, np.ndarray):
            parts.append(struct.pack("<II", 0, argument & 0xFFFFFFFF))
        elif argument.any():
            parts += [struct.pack("<IQ", 1, argument.nbytes), argument.tobytes()]
        else:
            parts.append(struct.pack("<IQ", 2, argument.nbytes))
    return b"".join(parts)
