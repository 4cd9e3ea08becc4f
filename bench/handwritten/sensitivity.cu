// The kernels of samples/sensitivity with the path collected by hand.
#include "warp_stack.cuh"

constexpr unsigned CELLS = 1u << 20;

__device__ __forceinline__ uint32_t hash32(uint32_t x) {
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

// The loop runs while all lanes have a trip, which a vote says: the compiler then knows that the warp stays together.
template <int N>
__device__ __forceinline__ void repeat(unsigned iterations, unsigned k, float* cells) {
  using Stack = ccc::WarpStack<unsigned>;
  __shared__ Stack::Storage storage;
  Stack stack(storage);
  const auto run = [=](unsigned i) {
    const unsigned cell = i & (CELLS - 1);
    cells[cell] = path<N>(float(cell));
  };
  const auto wanted = [=](unsigned i) { return (hash32(i) & 31) < k; };
  const unsigned stride = gridDim.x * blockDim.x;
  unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
  for (; __all_sync(ccc::WHOLE_WARP, i < iterations); i += stride) stack.collect(wanted(i), i, run);
  stack.collect(i < iterations && wanted(i), i, run);
  stack.drain(run);
}

#define KERNEL(N)                                                                                            \
  extern "C" __global__ void __launch_bounds__(256) path_##N(unsigned iterations, unsigned k, float* cells) { \
    repeat<N>(iterations, k, cells);                                                                         \
  }
KERNEL(1)
KERNEL(5)
KERNEL(20)
KERNEL(80)
KERNEL(320)
