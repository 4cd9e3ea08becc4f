// Loops whose keyword is not that of their pragma: `for` over `while` and `do`, `while` over `for`.

#define ARGUMENTS int n, const unsigned* __restrict__ a, unsigned* out, unsigned* count
#define EACH int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x

__device__ __forceinline__ unsigned work(unsigned x) {
#pragma unroll 1
  for (int q = 0; q < 9; ++q) x = x * 1664525u + (x >> 7);
  return x;
}

extern "C" __global__ void __launch_bounds__(64) over_while(ARGUMENTS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma ccc for
  while (i < n) {
#pragma ccc if
    if (a[i] & 1) out[i] = work(a[i]);
    i += gridDim.x * blockDim.x;
  }
}

extern "C" __global__ void __launch_bounds__(64) over_do(ARGUMENTS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
#pragma ccc for
  do {
    unsigned x = a[i];
    i += gridDim.x * blockDim.x;
    if (x == 7) continue;
#pragma ccc if
    if (x & 1) out[i] = work(x);
  } while (i < n);
}

extern "C" __global__ void __launch_bounds__(64) worklist(ARGUMENTS) {
#pragma ccc for
  while (true) {
    unsigned i = atomicAdd(count, 1);
    if (i >= n) break;
#pragma ccc if
    if (a[i] & 1) out[i] = work(a[i]);
  }
}

extern "C" __global__ void __launch_bounds__(64) counted_for(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i]; unsigned most = x & 15;
#pragma ccc while
    for (unsigned k = 0; k < most; ++k) {
      if (k == 3) continue;
      x = work(x + k);
    }
    out[i] = x;
  }
}

extern "C" __global__ void __launch_bounds__(64) for_break(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i]; unsigned found = 99;
#pragma ccc while chunk(2)
    for (unsigned k = 0; k < 20; ++k) {
      x = work(x);
      if ((x & 7) == 1) { found = k; break; }
      out[i + n] = x;
    }
    out[i] = found;
  }
}

extern "C" __global__ void __launch_bounds__(64) for_memory(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned most = a[i] & 3;
#pragma ccc while
    for (unsigned k = 0; k < most; ++k) out[i * 4 + k + 1] = out[i * 4 + k] * 3u + a[i];
  }
}

extern "C" __global__ void __launch_bounds__(64) variable_while(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned k = 0, most = a[i] & 15;
#pragma ccc for variable
    while (k < most) { atomicAdd(&count[k & 3], work(a[i] + k)); ++k; }
  }
}
