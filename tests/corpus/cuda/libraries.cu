// Device-side algorithms of CUB and functors of Thrust and libcu++.
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/optional>
#include <cuda/std/tuple>
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>

template <typename T> __global__ void sums(const T* in, T* out, int n) {
  using Reduce = cub::BlockReduce<T, 128>;
  using Scan = cub::BlockScan<T, 128>;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Scan::TempStorage scan;
  } scratch;
  T mine = threadIdx.x < n ? in[threadIdx.x] : T(0), before;
  T total = Reduce(scratch.reduce).Sum(mine);
  __syncthreads();
  Scan(scratch.scan).ExclusiveSum(mine, before);
  out[threadIdx.x] = before + total;
}
template __global__ void sums<int>(const int*, int*, int);
template __global__ void sums<double>(const double*, double*, int);

__global__ void radix(unsigned* keys, float* values) {
  using Sort = cub::BlockRadixSort<unsigned, 64, 4, float>;
  __shared__ Sort::TempStorage scratch;
  unsigned k[4];
  float v[4];
  for (int i = 0; i < 4; ++i) k[i] = keys[threadIdx.x * 4 + i], v[i] = values[threadIdx.x * 4 + i];
  Sort(scratch).Sort(k, v);
  for (int i = 0; i < 4; ++i) keys[threadIdx.x * 4 + i] = k[i], values[threadIdx.x * 4 + i] = v[i];
}

__global__ void sequential(int* a, int n, int* out) {
  thrust::sort(thrust::seq, a, a + n);
  out[0] = thrust::reduce(thrust::seq, a, a + n, 0, cuda::maximum<int>());
}

__global__ void standard(const float* in, float* out) {
  cuda::std::complex<float> z(in[0], in[1]), w = z * z / cuda::std::complex<float>(in[2], 1.0f);
  cuda::std::optional<float> maybe = in[3] > 0 ? cuda::std::optional<float>(in[3]) : cuda::std::nullopt;
  auto t = cuda::std::make_tuple(1, 2.0f, in[4]);
  cuda::std::array<float, 4> a{in[5], in[6], in[7], in[8]};
  out[0] = w.real() + w.imag() + maybe.value_or(1.5f) + cuda::std::get<2>(t) + a[threadIdx.x & 3];
}
