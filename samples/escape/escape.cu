// The Mandelbrot set's neighborhood: how many steps each pixel's orbit takes to escape, at most `limit`.
//
//   escape [width] [height] [limit]      a window 2e-4 wide at -0.7436 + 0.1318i, where the steps differ most
//
// A warp iterates until the last of its 32 orbits has escaped. A step is short: to ask after every step whether all lanes
// still have work would cost more than the step, so `chunk` lets tasks run 32 steps from vote to vote.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "escape.cuh"

extern "C" __global__ void __launch_bounds__(256)
escape(int width, int height, float left, float top, float pitch, int limit, int* __restrict__ steps) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < width * height; i += gridDim.x * blockDim.x) {
    const float cx = fmaf(float(i % width), pitch, left), cy = fmaf(float(i / width), pitch, top);
    float x = 0.0f, y = 0.0f;
    int taken = 0;
#pragma ccc while chunk(32)
    while (inside(x, y) && taken < limit) {
      step(x, y, cx, cy);
      ++taken;
    }
    steps[i] = taken;
  }
}

// --- the host side: workload.py computes the same summary ----------------------------------------------------------------

static uint32_t hash32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "escape: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

int main(int argc, char** argv) {
  const int width = argc > 1 ? std::atoi(argv[1]) : 512, height = argc > 2 ? std::atoi(argv[2]) : 512;
  const int limit = argc > 3 ? std::atoi(argv[3]) : 4000;
  if (width < 1 || width > 16384 || height < 1 || height > 16384 || limit < 1) {
    std::fprintf(stderr, "usage: escape [width 1..16384] [height 1..16384] [limit]\n");
    return 2;
  }
  std::vector<int> steps(size_t(width) * height);
  int* device_steps = nullptr;
  check(cudaMalloc(&device_steps, steps.size() * sizeof(int)), "cudaMalloc");
  escape<<<64, 256>>>(width, height, -0.7436f, 0.1318f, 2e-4f / width, limit, device_steps);
  check(cudaGetLastError(), "the launch");
  check(cudaMemcpy(steps.data(), device_steps, steps.size() * sizeof(int), cudaMemcpyDeviceToHost), "the kernel");
  cudaFree(device_steps);

  uint32_t checksum = 0;
  long long sum = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    checksum += hash32(uint32_t(i) ^ hash32(uint32_t(steps[i])));
    sum += steps[i];
  }
  std::printf("pixels %zu steps %lld stayed %lld checksum %08x\n", steps.size(), sum,
              static_cast<long long>(std::count(steps.begin(), steps.end(), limit)), checksum);
  return 0;
}
