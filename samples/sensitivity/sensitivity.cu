// How long must a divergent path be, and how rarely taken, for CCC to pay off? A path of N dependent fused multiply-adds, taken
// by k of 32 lanes on average: F. Khorasani's thesis, section 4.1.5.
//
//   sensitivity [log2_iterations] [k]     runs every N and prints a checksum of what each wrote
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

constexpr unsigned CELLS = 1u << 20;

__host__ __device__ inline uint32_t hash32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

template <int N>
__device__ __forceinline__ float path(float x) {
#pragma unroll 4
  for (int i = 0; i < N; ++i) x = fmaf(x, 1.0001f, 0.5f);
  return x;
}

// The hash of the iteration decides which lanes take the path, which is therefore the same for every shape of the grid. What is
// stored depends on the cell alone: several iterations may store into one cell, and all of them store the same number.
template <int N>
__device__ __forceinline__ void repeat(unsigned iterations, unsigned k, float* cells) {
#pragma ccc for
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < iterations; i += gridDim.x * blockDim.x) {
#pragma ccc if
    if ((hash32(i) & 31) < k) {
      unsigned cell = i & (CELLS - 1);
      cells[cell] = path<N>(float(cell));
    }
  }
}

#define KERNEL(N)                                                                                                  \
  extern "C" __global__ void __launch_bounds__(256) path_##N(unsigned iterations, unsigned k, float* cells) { \
    repeat<N>(iterations, k, cells);                                                                           \
  }
KERNEL(1)
KERNEL(5)
KERNEL(20)
KERNEL(80)
KERNEL(320)

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "sensitivity: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

int main(int argc, char** argv) {
  const int log2_iterations = argc > 1 ? std::atoi(argv[1]) : 20, k = argc > 2 ? std::atoi(argv[2]) : 4;
  if (log2_iterations < 0 || log2_iterations > 30 || k < 0 || k > 32) {
    std::fprintf(stderr, "usage: sensitivity [log2_iterations 0..30] [k 0..32]\n");
    return 2;
  }
  struct {
    const char* name;
    void (*kernel)(unsigned, unsigned, float*);
  } kernels[] = {{"path_1", path_1}, {"path_5", path_5}, {"path_20", path_20}, {"path_80", path_80}, {"path_320", path_320}};
  std::vector<float> cells(CELLS);
  float* device_cells = nullptr;
  check(cudaMalloc(&device_cells, CELLS * sizeof(float)), "cudaMalloc");
  for (const auto& entry : kernels) {
    check(cudaMemset(device_cells, 0, CELLS * sizeof(float)), "cudaMemset");
    entry.kernel<<<32, 256>>>(1u << log2_iterations, unsigned(k), device_cells);
    check(cudaGetLastError(), "the launch");
    check(cudaMemcpy(cells.data(), device_cells, CELLS * sizeof(float), cudaMemcpyDeviceToHost), "the kernel");
    uint32_t checksum = 0;
    for (unsigned cell = 0; cell < CELLS; ++cell) {
      uint32_t bits;
      std::memcpy(&bits, &cells[cell], sizeof bits);
      checksum += hash32(cell ^ hash32(bits));
    }
    std::printf("%s k %d checksum %08x\n", entry.name, k, checksum);
  }
  cudaFree(device_cells);
  return 0;
}
