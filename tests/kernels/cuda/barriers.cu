// A kernel in which every warp barrier of the rewrite has work to do: the loop is entered twice, so that pushes follow the
// pops of the run before, and each lane reads behind the loop, without a barrier of its own, what its tasks have stored.
extern "C" __global__ void __launch_bounds__(128) barriers(const unsigned* __restrict__ input, unsigned* output, unsigned rounds) {
  __shared__ unsigned results[1024];
  for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) results[i] = 0;
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned round = 0; round < rounds; ++round) {
#pragma ccc for
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) {
      unsigned value = input[i + round];
#pragma ccc if
      if (value % 3 == 0) {
        unsigned x = value;
#pragma ccc for variable chunk(1)
        for (unsigned k = 0; k < value % 11; ++k) {
          x = x * 1664525u + 1013904223u;
          results[i] = x ^ k;
        }
      }
    }
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) sum = sum * 31 + results[i];
  }
  output[threadIdx.x + blockIdx.x * blockDim.x] = sum;
}
