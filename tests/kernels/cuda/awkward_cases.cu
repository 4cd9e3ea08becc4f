// Switches, loops of unknown trip count and functions, as far as `for`, `if` and `for variable` name them.
#include "rows.h"

// One register holds the result of every case, and cases share the code behind them.
extern "C" __global__ void __launch_bounds__(256) case_blocks(int n, const int* __restrict__ a, float* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    int v = a[i];
    float x = v, r;
    switch (v % 6) {
      case 0:
#pragma ccc if
      { r = sinf(x); }
      break;
      case 2:
#pragma ccc if
      { r = logf(x); }
      break;
      case 3:
#pragma ccc if
      { r = expf(x); }
      break;
      case 4:
#pragma ccc if
      { r = powf(x, 1.3f); }
      break;
      default: r = x;
    }
    out[i] = r;
  }
}

// The first case falls through into the second: that has two entries, both at its beginning.
extern "C" __global__ void __launch_bounds__(256) fallthrough(int n, const int* __restrict__ a, float* out, float* more) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    int v = a[i];
    float x = v;
    switch (v & 3) {
      case 1:
#pragma ccc if independent
      { out[i] = sqrtf(x); }
      case 2:
#pragma ccc if independent
      { more[i] = logf(x); }
      break;
      default:;
    }
  }
}

// The value of the first case is read in the second, which may come first.
extern "C" __global__ void __launch_bounds__(256) fallthrough_value(int n, const int* __restrict__ a, float* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    int v = a[i];
    float x = v;
    switch (v & 3) {
      case 1:
#pragma ccc if
      {
#pragma unroll 1
        for (int q = 0; q < (v & 15); q++) x = sqrtf(x) + q;
      }
      case 2:
#pragma ccc if
      { out[i] = logf(x); }
      break;
      default:;
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) if_chain(int n, const int* __restrict__ a, float* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    int v = a[i];
    float x = v, r = x;
    int c = v % 6;
#pragma ccc if
    if (c == 0) {
      r = sinf(x);
    } else {
#pragma ccc if
      if (c == 1) {
        r = sqrtf(x);
      } else {
#pragma ccc if
        if (c == 2) r = logf(x);
      }
    }
    out[i] = r;
  }
}

extern "C" __global__ void __launch_bounds__(256) else_alone(int n, const int* __restrict__ a, float* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    int v = a[i];
    float x = v, r = x;
    if (v % 6 < 4) {
      r = x + 1;
    } else if (v % 6 == 4) {
      r = 2 * x;
    }
#pragma ccc else
    else r = sqrtf(x) + sinf(x);
    out[i] = r;
  }
}

#define CASE(k, e)           \
  case k:                    \
    _Pragma("ccc if") { r = e; } \
    break;

extern "C" __global__ void __launch_bounds__(128) twelve_cases(int n, const int* __restrict__ a, float* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    int v = a[i];
    float x = v, r = x;
    switch (v % 14) {
      CASE(0, sqrtf(x))
      CASE(1, x * x)
      CASE(2, 1 / x)
      CASE(3, rsqrtf(x))
      CASE(4, x + 3)
      CASE(5, fabsf(x))
      CASE(6, __expf(x))
      CASE(7, __logf(x))
      CASE(8, __sinf(x))
      CASE(9, x * x * x)
      CASE(10, x - 7)
      CASE(11, floorf(x))
    }
    out[i] = r;
  }
}

// The count is read behind a loop whose trips are tasks: the store runs with the task.
extern "C" __global__ void __launch_bounds__(256) count_behind(int n, const float* __restrict__ a, int* out, int limit) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = a[i];
    int c = 0;
#pragma ccc for variable
    for (; x < 100.f && c < limit;) {
      x = x * x * 0.25f + x + 0.1f;
      c++;
    }
    out[i] = c;
  }
}

// Loop and store are one path.
extern "C" __global__ void __launch_bounds__(256) count_inside(int n, const float* __restrict__ a, int* out, int limit) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = a[i];
    if (x < 100.f) {
#pragma ccc if
      {
        int c = 0;
        while (x < 100.f && c < limit) {
          x = x * x * 0.25f + x + 0.1f;
          c++;
        }
        out[i] = c;
      }
    } else {
      out[i] = 0;
    }
  }
}

__device__ __noinline__ int odd_roots(int trips, const int* a, int* out, int n, int t) {
  int sum = 0;
#pragma ccc for
  for (int k = 0; k < trips; k++) {
    int v = a[k * n + t];
    sum += v;
#pragma ccc if
    if (v & 1) out[k * n + t] = __float2int_rn(sqrtf(v)) + 1;
  }
  return sum;
}

// The loop is in a function that is called.
extern "C" __global__ void __launch_bounds__(256) calls(int trips, const int* a, int* out, int* sums, int n) {
  int t = threadIdx.x + blockIdx.x * blockDim.x;
  sums[t] = odd_roots(trips, a, out, n, t);
}

// Half of the lanes call it from here, half from there: no warp enters the loop whole.
extern "C" __global__ void __launch_bounds__(512, 2) calls_in_arms(int trips, const int* a, int* out, int* sums, int n) {
  int t = threadIdx.x + blockIdx.x * blockDim.x;
  if (t & 1) {
    sums[t] = odd_roots(trips, a, out, n, t);
  } else {
    sums[t] = odd_roots(trips, a + 1, out, n, t) + 1;
  }
}
