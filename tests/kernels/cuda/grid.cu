// Kernels with one task a thread: marked `grid`, they get a loop over thread blocks.

__device__ int work(int v) {
  int r = v;
#pragma unroll 4
  for (int k = 0; k < 20; ++k) r = r * 31 + (r >> 3);
  return r;
}

#pragma ccc grid
extern "C" __global__ void __launch_bounds__(128) shade(const int* __restrict__ in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = in[i];
#pragma ccc if
  if ((v & 3) == 0) out[i] = work(v);
}

// Several early returns, three dimensions, the block index inside a path.
#pragma ccc grid
extern "C" __global__ void __launch_bounds__(128) image(const int* __restrict__ in, int* out, int* sum, int w, int h, int d) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= w || y >= h) return;
  if (z >= d) return;
  int at = (z * h + y) * w + x;
  int v = in[at];
  if (v == 7) {
    out[at] = -1;
    return;
  }
#pragma ccc if
  if ((v & 3) == 0) {
    out[at] = work(v) + blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z;
  }
#pragma ccc else
  else if (v & 4) {
    out[at] = v * 7 + threadIdx.x;
    atomicAdd(sum, v);
  }
}

// How often each block runs, whatever the shape of the grid.
#pragma ccc grid
extern "C" __global__ void __launch_bounds__(64) visits(int* count) {
  int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
#pragma ccc if
  if (threadIdx.x % 5 == 2) atomicAdd(count + block, 1);
}

// No launch bounds: only the launch tells the size of a block.
#pragma ccc grid
extern "C" __global__ void trips(const int* __restrict__ in, int* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = in[i], r = v;
#pragma ccc while
  while (v > 1) {
    v = v & 1 ? 3 * v + 1 : v >> 1;
    ++r;
  }
  out[i] = r;
}
