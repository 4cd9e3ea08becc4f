// What the kernels of these files share: arguments, a hash that makes lanes differ, the usual loop.
#define ARGUMENTS int n, const int* __restrict__ a, int* __restrict__ out, int* __restrict__ count
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define ME (int)(threadIdx.x + blockIdx.x * blockDim.x)
#define ALL (int)(gridDim.x * blockDim.x)
#define STRIDE int i = ME; i < n; i += ALL

__device__ __forceinline__ unsigned hash32(unsigned x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ x >> 16;
}
__device__ __forceinline__ int work(unsigned w, int i) {
  int r = w;
#pragma unroll 1
  for (int k = 0; k < (int)(w >> 8 & 7); k++) r += hash32(r + i);
  return r;
}
