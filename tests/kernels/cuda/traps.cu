// Lanes that trap in a path, in a loop of tasks, and after both: what they print first reads values of their task.
#include <cassert>
#include <cstdio>

extern "C" __global__ void __launch_bounds__(64) in_path(int n, const unsigned* __restrict__ a, unsigned* __restrict__ out) {
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = a[i];
#pragma ccc if independent
    if (x & 1) {
      unsigned s = x * 5u + 2u;
#pragma unroll 1
      for (unsigned j = 0; j < (x & 15u); j++) {
        s = s * 3u + j;
        if (s == 154u) {
          printf("in the loop: %d %u %u\n", i, x, j);
          __trap();
        }
      }
      if (s == 21u) {
        if (n > 100)
          printf("in the path: %d %u\n", i, x);
        else
          printf("never: %u\n", s);
        __trap();
      }
      out[i] = s;
    }
  }
}

extern "C" __global__ void __launch_bounds__(64) in_tasks(int n, const unsigned* __restrict__ a, unsigned* __restrict__ out) {
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = a[i], y = x;
#pragma ccc while independent
    while (y % 13u != 5u) {
      y = y * 3u + 1u;
      if (y == 100u) {
        printf("in a task: %d %u\n", i, x);
        __trap();
      }
    }
    out[i] = y;
  }
}

// The rest of the iteration reads what the path has written: a task is all of it.
extern "C" __global__ void __launch_bounds__(64) after(int n, const unsigned* __restrict__ a, unsigned* __restrict__ out) {
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = a[i], y = x;
#pragma ccc if
    if (x & 1) {
      y = x * 7u + 3u;
#pragma unroll 1
      for (unsigned j = 0; j < (x & 15u); j++) y = y * 3u + j;
      if (y == 30u) {
        if (n > 100)
          printf("in the path: %d %u\n", i, x);
        else
          printf("never: %u\n", y);
        __trap();
      }
    }
    assert(y != 14u);
    out[i] = y ^ x;
  }
}

// What an assertion reads no path writes.
extern "C" __global__ void __launch_bounds__(64) beside(int n, const unsigned* __restrict__ a, unsigned* __restrict__ out) {
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) {
      unsigned s = x;
#pragma unroll 1
      for (unsigned j = 0; j < (x & 15u); j++) s = s * 3u + j;
      assert(s != 3u);
      out[i] = s;
    }
    assert(x != 14u);
  }
}

// Two ways to one trap, which prints what the path does not have any more: only whole iterations may be tasks.
extern "C" __global__ void __launch_bounds__(64) shared_trap(int n, const unsigned* __restrict__ a, unsigned* __restrict__ out) {
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = a[i];
#pragma ccc if independent
    if (x & 1) {
      unsigned s = x;
      for (unsigned j = 0; j < (x & 15u); j++) {
        s = s * 3u + j;
        if (s == 28u) goto bad;
      }
      out[i] = s;
    }
    if (x != 14u) continue;
  bad:
    printf("bad: %d %u\n", i, x);
    __trap();
  }
}
