// Control flow that a naive rewrite gets wrong: conditions that become branch trees, jumps around the path, tails, copies.
#include "rows.h"

extern "C" __global__ void __launch_bounds__(256) basic(unsigned n, const float* __restrict__ a, float* out) {
#pragma ccc for
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float v = a[i];
#pragma ccc if
    if (v > 0.5f) out[i] = sqrtf(v) * 3.f + logf(v);
  }
}

// The store reads what the path writes, and runs with the task.
extern "C" __global__ void __launch_bounds__(256) live_out(unsigned n, const float* __restrict__ a, float* out) {
#pragma ccc for
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float v = a[i];
    float r = v * 2.f;
#pragma ccc if
    if (v > 0.5f) r = sqrtf(v) * 3.f + logf(v);
    out[i] = r;
  }
}

// Two conditions, two branches to the path; the loop in it has no annotation of its own.
extern "C" __global__ void __launch_bounds__(256)
both_conditions(unsigned n, const int* __restrict__ a, const int* b, int* out) {
#pragma ccc for
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
#pragma ccc if
    if (a[i] > 3 && b[a[i]] > 7) {
      int s = 0;
      for (int k = 0; k < a[i]; k++) s += b[k] ^ i;
      out[i] = s;
    }
  }
}

// The counter is the same in all lanes, but not the same at push and pop.
extern "C" __global__ void __launch_bounds__(256) uniform_counter(int trips, const int* __restrict__ a, int* out, int n) {
  int t = threadIdx.x + blockIdx.x * blockDim.x;
#pragma ccc for
  for (int k = 0; k < trips; k++) {
    int v = a[k * n + t];
#pragma ccc if
    if (v & 1) {
      int s = v;
#pragma unroll 1
      for (int q = 0; q < (v & 15); q++) s = s * k + q;
      out[k * n + t] = s;
    }
  }
}

// Behind the path `out` is read and written again: the path would come too late.
extern "C" __global__ void __launch_bounds__(256) jumps_then_update(int trips, const int* a, int* out, int n) {
  int t = threadIdx.x + blockIdx.x * blockDim.x;
#pragma ccc for
  for (int k = 0; k < trips; k++) {
    int v = a[k * n + t];
    if (v == 7) break;
    if (v == 9) continue;
#pragma ccc if
    if (v & 1) {
      int s = v;
      if (v == 13) {
        out[0] = 1;
      } else {
        for (int q = 0; q < (v & 15); q++) s = s * k + q;
      }
      out[k * n + t] = s;
    }
    out[k * n + t] += 1;
  }
}

// The legal twin: what is behind the path is elsewhere.
extern "C" __global__ void __launch_bounds__(256) jumps_ahead(int trips, const int* a, int* out, int* seen, int n) {
  int t = threadIdx.x + blockIdx.x * blockDim.x;
#pragma ccc for
  for (int k = 0; k < trips; k++) {
    int v = a[k * n + t];
    if (v == 7) break;
    if (v == 9) continue;
#pragma ccc if independent
    if (v & 1) {
      int s = v;
      for (int q = 0; q < (v & 15); q++) s = s * k + q;
      out[k * n + t] = s;
    }
    seen[k * n + t] += 1;
  }
}

extern "C" __global__ void __launch_bounds__(256) returns_ahead(int trips, const int* a, int* out, int n) {
  int t = threadIdx.x + blockIdx.x * blockDim.x;
#pragma ccc for
  for (int k = 0; k < trips; k++) {
    int v = a[k * n + t];
    if (v < 0) return;
#pragma ccc if
    if (v & 1) out[k * n + t] = __float2int_rn(sqrtf(v)) + 1;
  }
  out[t] = -1;
}

// A `continue` in the path that skips what is behind it leaves the path other than at its end.
extern "C" __global__ void __launch_bounds__(256) continue_past_the_rest(int n, const int* a, int* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    int v = a[i];
#pragma ccc if
    if (v & 1) {
      if (v == 77) continue;
      out[i] = v * v;
    }
    out[i + n] = v;
  }
}

// One that leads where the end of the path leads anyway ends it.
extern "C" __global__ void __launch_bounds__(256) continue_as_end(int n, const int* a, int* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    int v = a[i];
#pragma ccc if
    if (v & 1) {
      if (v == 77) continue;
      out[i] = v * v;
    }
  }
}

// `continue` ahead of the path, which is a plain block.
extern "C" __global__ void __launch_bounds__(256) continue_ahead(int n, const int* a, int* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    int v = a[i];
    if (!(v & 1)) continue;
#pragma ccc if
    {
      int s = v;
#pragma unroll 1
      for (int q = 0; q < (v & 15); q++) s = s * 3 + q;
      out[i] = s;
    }
  }
}

// The first trip is special: a candidate for peeling.
extern "C" __global__ void __launch_bounds__(256) first_trip(int trips, const int* a, int* out, int n) {
  int t = threadIdx.x + blockIdx.x * blockDim.x;
  int first = 0;
#pragma ccc for
  for (int k = 0; k < trips; k++) {
    int v = a[k * n + t];
    if (k == 0) first = v;
#pragma ccc if
    if ((v ^ first) & 1) out[k * n + t] = __float2int_rn(sqrtf(v * (float)k)) + 1;
  }
}

// A condition that never changes: a candidate for unswitching.
extern "C" __global__ void __launch_bounds__(256) unswitched(int trips, const int* a, int* out, int n, int flag) {
  int t = threadIdx.x + blockIdx.x * blockDim.x;
#pragma ccc for
  for (int k = 0; k < trips; k++) {
    int v = a[k * n + t];
    if (flag) v *= 3;
#pragma ccc if
    if (v & 1) out[k * n + t] = __float2int_rn(sqrtf(v)) + 1;
  }
}

__device__ __forceinline__ void work(int v, int* out, int i) {
#pragma ccc if
  if (v & 1) {
    int s = v;
#pragma unroll 1
    for (int q = 0; q < (v & 15); q++) s = s * i + q;
    out[i] = s;
  }
}

// One annotated path, inlined in both arms.
extern "C" __global__ void __launch_bounds__(256) inlined_twice(int n, const int* a, int* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    int v = a[i];
    if (v & 64) {
      work(v >> 7, out, i);
    } else {
      work(v >> 9, out, i);
    }
  }
}

__device__ __forceinline__ int rooted(int v, int i) {
  int r;
#pragma ccc if
  {
    r = (v * v + i) * v;
    r = __float2int_rn(sqrtf(r));
  }
  return r;
}

// Two copies of a path whose last instruction nvcc may merge.
extern "C" __global__ void __launch_bounds__(256) merged_ends(int n, const int* a, int* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    int v = a[i];
    int r = 0;
    if (v & 64) {
      r = rooted(v >> 7, i);
    } else if (v & 32) {
      r = rooted(v * 3, i);
    }
    out[i] = r;
  }
}

__device__ __forceinline__ void stored(int v, int i, int* out) {
#pragma ccc if
  { out[i] = __float2int_rn(sqrtf(v * v + i)); }
}

// Both arms are the path, so that the lanes of a warp reach either copy.
extern "C" __global__ void __launch_bounds__(256) both_arms(int n, const int* a, int* out, int* other) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    int v = a[i];
    if (v & 64) {
      stored(v, i, out);
    } else {
      stored(v, i, other);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) three_of_four_cases(int n, const int* a, int* out, int* other) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    int v = a[i];
    switch (v & 3) {
      case 0: stored(v, i, out); break;
      case 1: stored(v + 1, i, out); break;
      case 2: stored(v * 5, i, other); break;
      default: out[i] = 0;
    }
  }
}

// The path stands in a loop that is not marked.
extern "C" __global__ void __launch_bounds__(256) unmarked_between(int n, const int* a, int* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
#pragma unroll 1
    for (int j = 0; j < (a[i] & 7); j++) {
      int v = a[i] * j;
#pragma ccc if
      if (v & 8) out[i * 8 + j] = __float2int_rn(sqrtf(v));
    }
  }
}

// A loop with lane-varying trips around the marked one: a warp rarely enters it whole.
extern "C" __global__ void __launch_bounds__(256) divergent_entry(unsigned n, unsigned k, const unsigned* a, unsigned* out) {
  unsigned t = threadIdx.x + blockIdx.x * blockDim.x;
  unsigned start = 0;
  if (a[t] & 1) {
    for (unsigned q = 0; q < (a[t] & 63); q++) start = start * 3 + q;
  }
#pragma unroll 1
  for (unsigned round = 0; round < (a[t] & 7) + 1; round++) {
#pragma ccc for
    for (unsigned i = t; i < n; i += gridDim.x * blockDim.x) {
      unsigned v = a[i] + start + round;
#pragma ccc if
      if ((hash32(v) & 31) < k) {
        unsigned s = v;
#pragma unroll 1
        for (unsigned q = 0; q < (v & 63); q++) s = s * 1664525u + 1013904223u + (s >> 3);
        out[i] = s;
      }
    }
  }
}

// Most lanes make no trip: what nvcc puts between the loop's guard and its header is not run by those.
extern "C" __global__ void __launch_bounds__(256) no_trips(unsigned n, unsigned k, const unsigned* a, unsigned* out) {
  unsigned t = threadIdx.y * blockDim.x + threadIdx.x;
  unsigned trips = (a[t % n] & 3) ? 0 : 20;
#pragma ccc for
  for (unsigned j = 0; j < trips; j++) {
    unsigned v = a[(t * 20 + j) % n];
#pragma ccc if
    if ((hash32(v) & 31) < k) {
      unsigned s = v;
#pragma unroll 1
      for (unsigned q = 0; q < (v & 15); q++) s = s * 3 + q * n;
      out[t * 20 + j] = s + n * 3;
    }
  }
}
