// Loops and what is known of the independence of their iterations: above each kernel the state, with the accesses or
// conditions that are named (tests/ccc/legality/test_independence.py).
#include <cstdint>

struct Item { float first, second; int third; };

__device__ __noinline__ void put(float* at, float x) { *at = x; }
__device__ __noinline__ float square(float x) { return x * x; }

// proven
extern "C" __global__ void __launch_bounds__(256) each_its_own(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i] = x;
  }
}

// proven
extern "C" __global__ void __launch_bounds__(256) in_place(int n, float* in) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    in[i] = x;
  }
}

// proven
extern "C" __global__ void __launch_bounds__(256) reads_neighbors(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i] = x + in[i + 1] + in[i - 1];
  }
}

// open on: parameter 3 does not overlap parameter 2
extern "C" __global__ void __launch_bounds__(256) may_overlap(int n, const float* in, float* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i] = x;
  }
}

// open on: parameter 3 does not overlap parameter 2 or parameter 4, parameter 4 does not overlap parameter 2
extern "C" __global__ void __launch_bounds__(256) may_overlap_thrice(int n, const float* in, float* first, float* second) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    first[i] = x;
    second[i] = x;
  }
}

// contradicted: stores, loads
extern "C" __global__ void __launch_bounds__(256) sum_in_one_place(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[0] += x;
  }
}

// contradicted: stores, loads
extern "C" __global__ void __launch_bounds__(256) neighbor(int n, float* in) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    in[i + 1] = x;
  }
}

// contradicted: stores, loads
extern "C" __global__ void __launch_bounds__(256) the_one_before(int n, float* in, float scale) {
#pragma ccc for
  for (int i = threadIdx.x + 32; i < n; i += 32) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    in[i] = in[i - 32] * x * scale;
  }
}

// contradicted: stores
extern "C" __global__ void __launch_bounds__(256) by_thread(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[threadIdx.x] = x;
  }
}

// contradicted: stores
extern "C" __global__ void __launch_bounds__(256) shared_scratch(int n, const float* __restrict__ in, float* __restrict__ out) {
  __shared__ float scratch[256];
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    scratch[threadIdx.x] = x;
    __syncwarp();
    out[i] = scratch[threadIdx.x ^ 1];
  }
}

// contradicted: stores
extern "C" __global__ void __launch_bounds__(256) first_thread(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    if (threadIdx.x == 0) out[blockIdx.x] = x;
  }
}

// open: stores
extern "C" __global__ void __launch_bounds__(256) one_iteration(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    if (i == 0) out[0] = x;
  }
}

// open: stores
extern "C" __global__ void __launch_bounds__(256) where_data_say_so(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    if (in[i] > 3) out[0] = x;
  }
}

// open: stores
extern "C" __global__ void __launch_bounds__(256) indirect(int n, const float* __restrict__ in, const int* __restrict__ at, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[at[i]] = x;
  }
}

// proven
extern "C" __global__ void __launch_bounds__(256) same_value(int n, const float* __restrict__ in, float* __restrict__ out, int* __restrict__ found) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i] = x;
    if (x < 0) *found = 1;
  }
}

// proven
extern "C" __global__ void __launch_bounds__(256) zeros(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    if (x < 0) out[i] = 0;
  }
}

// open: stores, loads
extern "C" __global__ void __launch_bounds__(256) flag_read(int n, const float* __restrict__ in, float* __restrict__ out, int* found) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    if (*found) out[i] = x;
    if (x < 0) *found = 1;
  }
}

// proven
extern "C" __global__ void __launch_bounds__(256) counts(int n, const float* __restrict__ in, int* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    atomicAdd(&out[int(x) & 7], 1);
  }
}

// proven, sums
extern "C" __global__ void __launch_bounds__(256) sums(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    atomicAdd(&out[int(x) & 7], x);
  }
}

// open: updates, stores
extern "C" __global__ void __launch_bounds__(256) slots(int n, const float* __restrict__ in, float* __restrict__ out, int* __restrict__ count) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    if (x > 0) out[atomicAdd(count, 1)] = x;
  }
}

// open: updates
extern "C" __global__ void __launch_bounds__(256) different_atomics(int n, const float* __restrict__ in, int* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    atomicAdd(&out[int(x) & 7], 1);
    atomicMax(&out[int(x) & 3], 9);
  }
}

// proven
extern "C" __global__ void __launch_bounds__(256) fields(int n, const float* __restrict__ in, Item* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i].first = x;
    out[i].third = 1;
  }
}

// open on: index
extern "C" __global__ void __launch_bounds__(256) pair_in_words(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[2 * i] = x;
    out[2 * i + 1] = 1;
  }
}

// proven
extern "C" __global__ void __launch_bounds__(256) vectors(int n, const float* __restrict__ in, float4* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i] = make_float4(x, x, 1, 2);
  }
}

// contradicted: stores
extern "C" __global__ void __launch_bounds__(256) vectors_that_overlap(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    *(float2*)(out + 2 * (size_t)i) = make_float2(x, 1);
    out[2 * (size_t)i + 2] = x;
  }
}

// open: stores
extern "C" __global__ void __launch_bounds__(256) widths(int n, const float* __restrict__ in, char* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    *(float*)(out + 4 * (size_t)i) = x;
    *(double*)(out + 4 * (size_t)(i & ~1)) = x;
  }
}

// open on: index
extern "C" __global__ void __launch_bounds__(256) unsigned_product(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < (unsigned)n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i * 65536u] = x;
  }
}

// open: stores
extern "C" __global__ void __launch_bounds__(256) sixteen_bits(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[(unsigned short)i] = x;
  }
}

// proven
extern "C" __global__ void __launch_bounds__(256) wide_counter(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i] = x;
  }
}

// open: stores
extern "C" __global__ void __launch_bounds__(256) cut_to_32_bits(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[(unsigned)(i * 3000000007ull)] = x;
  }
}

// proven
extern "C" __global__ void __launch_bounds__(256) rows_of_one(int n, int w, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
#pragma unroll 1
    for (int j = 0; j < w; ++j) out[(size_t)i * w + j] = x;
  }
}

// open: stores
extern "C" __global__ void __launch_bounds__(256) rows_that_overlap(int n, int w, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
#pragma unroll 1
    for (int j = 0; j < w; ++j) out[i + j] = x;
  }
}

// open: stores
extern "C" __global__ void __launch_bounds__(256) rows_too_short(int n, int w, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
#pragma unroll 1
    for (int j = 0; j <= w; ++j) out[(size_t)i * w + j] = x;
  }
}

// open: calls
extern "C" __global__ void __launch_bounds__(256) store_in_callee(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    put(out + i, x);
  }
}

// proven
extern "C" __global__ void __launch_bounds__(256) pure_callee(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i] = square(x);
  }
}

// open: loads
extern "C" __global__ void __launch_bounds__(256) local_array_kept(int n, const float* __restrict__ in, float* __restrict__ out) {
  float kept[8];
  for (int j = 0; j < 8; ++j) kept[j] = j;
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    kept[int(x) & 7] += x;
    out[i] = kept[i & 7];
  }
}

// proven
extern "C" __global__ void __launch_bounds__(256) local_array_filled(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    float own[4];
    for (int j = 0; j < 4; ++j) own[j] = x * j;
    out[i] = own[int(x) & 3];
  }
}

// proven
extern "C" __global__ void __launch_bounds__(256) behind_the_other(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i] = x;
    out[n + (size_t)i] = x;
  }
}

// open: stores
extern "C" __global__ void __launch_bounds__(256) half_a_place(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i / 2] = x;
  }
}

// proven
extern "C" __global__ void __launch_bounds__(256) row_and_column(int n, int w, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    int row = i / w, column = i % w;
    out[row * w + column] = x;
  }
}

// contradicted: stores
extern "C" __global__ void __launch_bounds__(256) every_thread_all(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = 0; i < n; ++i) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[3] = x;
  }
}

// open on: index, threads
extern "C" __global__ void __launch_bounds__(256) chunks(int n, int w, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = (threadIdx.x + blockIdx.x * blockDim.x) * w; i < n; ++i) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i] = x;
  }
}

// open: stores
extern "C" __global__ void __launch_bounds__(256) any_step(int n, int step, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += step) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i] = x;
  }
}

// proven
extern "C" __global__ void __launch_bounds__(256) flat_block(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < n; i += blockDim.x * blockDim.y) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i] = x;
  }
}

// open on: threads
extern "C" __global__ void __launch_bounds__(256) block_of_unknown_width(int n, const float* __restrict__ in, float* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.y * 32 + threadIdx.x; i < n; i += 32 * blockDim.y) {
    float x = in[i];
    while (x > 1) x = x * 0.5f;
    out[i] = x;
  }
}

// proven
#pragma ccc grid
extern "C" __global__ void __launch_bounds__(256) task_a_thread(int n, const float* __restrict__ in, float* __restrict__ out) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  float x = in[i];
#pragma ccc if
  if (x > 1) x = x * 0.5f;
  out[i] = x;
}

// contradicted: stores
#pragma ccc grid
extern "C" __global__ void __launch_bounds__(256) tasks_in_one_place(int n, const float* __restrict__ in, float* __restrict__ out) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  float x = in[i];
#pragma ccc if
  if (x > 1) x = x * 0.5f;
  out[0] = x;
}

// open: stores
#pragma ccc grid
extern "C" __global__ void __launch_bounds__(256) place_in_block(int n, const float* __restrict__ in, float* __restrict__ out) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  float x = in[i];
#pragma ccc if
  if (x > 1) x = x * 0.5f;
  out[threadIdx.x] = x;
}

// open on: index
#pragma ccc grid
extern "C" __global__ void __launch_bounds__(256) image(int n, int h, const float* __restrict__ in, float* __restrict__ out) {
  int column = threadIdx.x + blockIdx.x * blockDim.x, row = threadIdx.y + blockIdx.y * blockDim.y;
  if (column >= n || row >= h) return;
  int i = row * n + column;
  float x = in[i];
#pragma ccc if
  if (x > 1) x = x * 0.5f;
  out[i] = x;
}

// proven
#pragma ccc grid
extern "C" __global__ void __launch_bounds__(256) wide_image(int n, int h, const float* __restrict__ in, float* __restrict__ out) {
  int column = threadIdx.x + blockIdx.x * blockDim.x, row = threadIdx.y + blockIdx.y * blockDim.y;
  if (column >= n || row >= h) return;
  size_t i = (size_t)row * n + column;
  float x = in[i];
#pragma ccc if
  if (x > 1) x = x * 0.5f;
  out[i] = x;
}

// open: stores
#pragma ccc grid
extern "C" __global__ void __launch_bounds__(256) image_without_guard(int n, int h, const float* __restrict__ in, float* __restrict__ out) {
  int column = threadIdx.x + blockIdx.x * blockDim.x, row = threadIdx.y + blockIdx.y * blockDim.y;
  size_t i = (size_t)row * n + column;
  float x = in[i];
#pragma ccc if
  if (x > 1) x = x * 0.5f;
  out[i] = x;
}
