// Values that nvcc moves over the path's ends, joins with others, or keeps where another lane cannot see them.
#include "rows.h"

// Strength-reduced pointers, one a lane and array, that advance together.
extern "C" __global__ void __launch_bounds__(256)
pointers(int trips, const float* __restrict__ a, const float* __restrict__ b, float* c, float* d) {
  int t = threadIdx.x + blockIdx.x * blockDim.x;
  const float *pa = a + t * trips, *pb = b + t * trips;
  float *pc = c + t * trips, *pd = d + t * trips;
#pragma ccc for
  for (int k = 0; k < trips; k++) {
#pragma ccc if
    if (pa[k] > 0.f) {
      pc[k] = sqrtf(pb[k]) * k;
      pd[k] = pb[k];
    }
  }
}

// An inner loop that may have no trips, bounds read into locals; its trips are tasks as well.
extern "C" __global__ void __launch_bounds__(256)
neighbours(int n, const int* __restrict__ row, const int* __restrict__ column, const int* level, int* out, int current) {
#pragma ccc for
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < n; v += gridDim.x * blockDim.x) {
#pragma ccc if
    if (level[v] == current) {
      int first = row[v], last = row[v + 1];
#pragma ccc for variable
      for (int j = first; j < last; j++) {
        int u = column[j];
        if (level[u] < 0) out[u] = current + 1;
      }
    }
  }
}

// The same loop alone: lanes off the level have no trips.
extern "C" __global__ void __launch_bounds__(256)
only_variable(int n, const int* __restrict__ row, const int* __restrict__ column, const int* level, int* out, int current) {
#pragma ccc for
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < n; v += gridDim.x * blockDim.x) {
    int first = row[v], last = level[v] == current ? row[v + 1] : first;
#pragma ccc for variable
    for (int j = first; j < last; j++) {
      int u = column[j];
      if (level[u] < 0) out[u] = current + 1;
    }
  }
}

// The bound is read again in each trip, so that nvcc keeps it for the code behind the loop.
extern "C" __global__ void __launch_bounds__(256)
bound_read_again(int n, const int* row, const int* __restrict__ column, const int* __restrict__ level, int* out, int current) {
#pragma ccc for
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < n; v += gridDim.x * blockDim.x) {
#pragma ccc for variable
    for (int k = row[v]; k < row[v + 1]; ++k) {
      int u = column[k];
      if (level[u] == current) out[u] = current + 1;
    }
  }
}

// The bound of the marked loop itself is read again at the end of each trip, when the path has not run yet.
extern "C" __global__ void __launch_bounds__(256) bound_of_marked_loop(int n, const int* row, const int* a, int* out) {
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < n; v += gridDim.x * blockDim.x) {
#pragma ccc for
    for (int k = row[v]; k < row[v + 1]; ++k) {
#pragma ccc if
      if (a[k] > 3) out[k] = a[k] * 3 + v;
    }
  }
}

// The legal twin.
extern "C" __global__ void __launch_bounds__(256) bound_in_local(int n, const int* row, const int* a, int* out) {
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < n; v += gridDim.x * blockDim.x) {
    int first = row[v], last = row[v + 1];
#pragma ccc for
    for (int k = first; k < last; ++k) {
#pragma ccc if
      if (a[k] > 3) out[k] = a[k] * 3 + v;
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) local_array(int trips, const int* a, int* out, int n) {
  int t = threadIdx.x + blockIdx.x * blockDim.x;
  int held[16];
  for (int q = 0; q < 16; q++) held[q] = a[q * n + t];
#pragma ccc for
  for (int k = 0; k < trips; k++) {
    int v = a[k * n + t];
#pragma ccc if
    if (v & 1) out[k * n + t] = held[v & 15] * held[(v >> 4) & 15];
  }
}

// The legal twin: the array lives in the path.
extern "C" __global__ void __launch_bounds__(256) local_array_in_path(int trips, const int* a, int* out, int n) {
  int t = threadIdx.x + blockIdx.x * blockDim.x;
#pragma ccc for
  for (int k = 0; k < trips; k++) {
    int v = a[k * n + t];
#pragma ccc if
    if (v & 1) {
      int held[16];
#pragma unroll 1
      for (int q = 0; q < 16; q++) held[q] = v * q + k;
      out[k * n + t] = held[v & 15] * held[(v >> 4) & 15];
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) reduction(int trips, const float* a, float* out, int n) {
  int t = threadIdx.x + blockIdx.x * blockDim.x;
  float s = 0;
#pragma ccc for
  for (int k = 0; k < trips; k++) {
    float v = a[k * n + t];
#pragma ccc if
    if (v > 0.5f) s += sqrtf(v) * v;
  }
  out[t] = s;
}

// Both indices advance ahead of the path, which reads the old and the new ones.
extern "C" __global__ void __launch_bounds__(256) advanced_ahead(int trips, const int* __restrict__ a, int* out, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
#pragma ccc for
  for (int k = 0; k < trips;) {
    int v = a[i];
    int x = (i << 3) ^ k;
    i += n;
    k++;
#pragma ccc if
    if (v & 1) {
      int s = x;
#pragma unroll 1
      for (int q = 0; q < (v & 31); q++) s = s * i + x;
      out[i] = s;
    }
  }
}

// Loads and arithmetic that nvcc may sink into the path.
extern "C" __global__ void __launch_bounds__(256)
sunk(unsigned n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out) {
#pragma ccc for
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float v = a[i];
    float w = b[i];
    float y = w * w + 3.f;
#pragma ccc if
    if (v > 0.5f) out[i] = sqrtf(y) * 3.f + w;
  }
}

// One load serves the path and the code behind it; the two stores go to one array.
extern "C" __global__ void __launch_bounds__(256)
shared_load(unsigned n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out) {
#pragma ccc for
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float v = a[i];
#pragma ccc if
    if (v > 0.5f) out[i] = sqrtf(b[i]) * 3.f;
    out[i + n] = b[i];
  }
}

// The legal twin.
extern "C" __global__ void __launch_bounds__(256)
shared_load_independent(unsigned n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out) {
#pragma ccc for
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float v = a[i];
#pragma ccc if independent
    if (v > 0.5f) out[i] = sqrtf(b[i]) * 3.f;
    out[i + n] = b[i];
  }
}

extern "C" __global__ void __launch_bounds__(256) tile(int tiles, const float* a, float* out, int n) {
  __shared__ float sh[256];
  int t = threadIdx.x + blockIdx.x * blockDim.x;
#pragma ccc for
  for (int k = 0; k < tiles; k++) {
    sh[threadIdx.x] = a[k * n + t];
    __syncthreads();
    float v = sh[255 - threadIdx.x];
#pragma ccc if
    if (v > 0.5f) out[k * n + t] = sqrtf(sh[threadIdx.x ^ 1]) * sh[(threadIdx.x + 7) & 255];
    __syncthreads();
  }
}

// Barriers in the loop and none in the path; each value is a function of the trip alone.
extern "C" __global__ void __launch_bounds__(256) tile_counted(unsigned n, unsigned k, const unsigned* a, unsigned* out) {
  __shared__ unsigned s[256];
  unsigned t = threadIdx.y * blockDim.x + threadIdx.x, m = blockDim.x * blockDim.y;
#pragma ccc for
  for (unsigned c = 0; c < n / m; c++) {
    unsigned v = a[c * m + t];
    s[t] = v;
    __syncthreads();
#pragma ccc if
    if ((hash32(v) & 31) < k) {
      unsigned r = 0;
#pragma unroll 1
      for (unsigned q = 0; q < (v & 15) + 1; q++) r = r * 5 + s[(t + q) % m];
      out[c * m + t] = r;
    }
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(256) scratch(int trips, const int* a, int* out, int n) {
  __shared__ int s[256 * 4];
  int t = threadIdx.x + blockIdx.x * blockDim.x;
#pragma ccc for
  for (int k = 0; k < trips; k++) {
    int v = a[k * n + t];
#pragma ccc if
    if (v & 1) {
      for (int q = 0; q < 4; q++) s[threadIdx.x * 4 + q] = v * q;
      int r = 0;
      for (int q = 0; q < (v & 31); q++) r += s[threadIdx.x * 4 + ((v >> q) & 3)] * r + 1;
      out[k * n + t] = r;
    }
  }
}

// The scratch is written in a loop, through an index that changes within the path alone.
extern "C" __global__ void __launch_bounds__(256) scratch_in_loop(unsigned n, unsigned k, const unsigned* a, unsigned* out) {
  __shared__ unsigned s[256 * 4];
  unsigned t = threadIdx.y * blockDim.x + threadIdx.x;
#pragma ccc for
  for (unsigned i = t; i < n; i += blockDim.x * blockDim.y) {
    unsigned v = a[i];
#pragma ccc if
    if ((hash32(v) & 31) < k) {
#pragma unroll 1
      for (unsigned q = 0; q < 4; q++) s[t * 4 + q] = v * (q + 3);
      unsigned r = 0;
#pragma unroll 1
      for (unsigned q = 0; q < (v & 15) + 4; q++) r = r * 5 + s[t * 4 + ((v >> q) & 3)];
      out[i] = r;
    }
  }
}

// Behind the path is read what it wrote, through another address.
extern "C" __global__ void __launch_bounds__(256) read_back(unsigned n, unsigned k, const unsigned* a, unsigned* out) {
  unsigned t = threadIdx.y * blockDim.x + threadIdx.x;
#pragma ccc for
  for (unsigned i = t; i < n; i += blockDim.x * blockDim.y) {
    unsigned v = a[i];
    out[i] = v;
#pragma ccc if
    if ((hash32(v) & 31) < k) {
      unsigned s = v;
#pragma unroll 1
      for (unsigned q = 0; q < (v & 15); q++) s = s * 3 + q;
      out[i] = s;
    }
    out[n + i] = (out + (k >> 9))[i] + 1;
  }
}

// A lock taken ahead of the path and released behind it.
extern "C" __global__ void __launch_bounds__(256) locked(int n, const int* a, int* lock, int* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    int s = a[i] & 3;
    while (atomicCAS(&lock[s], 0, 1)) {
    }
    __threadfence();
#pragma ccc if
    if (a[i] & 8) out[s] = out[s] * 3 + i;
    __threadfence();
    atomicExch(&lock[s], 0);
  }
}

// Many registers and no launch bounds: the stacks must not cap the registers by stating a block size.
extern "C" __global__ void hungry(const float* __restrict__ a, float* out, int n, int trips) {
  float x[96];
  int t = threadIdx.x;
#pragma unroll
  for (int i = 0; i < 96; i++) x[i] = a[(i * n + t) % (n * trips)];
#pragma ccc for
  for (int q = 0; q < trips; q++) {
    float v = a[q * n + t];
#pragma ccc if
    if (v > 0.5f) out[q * n + t] = sqrtf(v) + q;
#pragma unroll
    for (int i = 0; i < 96; i++) x[i] = fmaf(x[i], x[(i * 7 + 1) % 96], v);
  }
  float s = 0;
#pragma unroll
  for (int i = 0; i < 96; i++) s += x[i] * i;
  out[trips * n + t] = s;
}
