// Kernels that keep their order within an iteration, or break the promise that iterations share no scratch; each has the
// code it is refused with above it, or `right`.

#define ARGUMENTS int n, const unsigned* __restrict__ a, unsigned* out, unsigned* count
#define EACH int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x

__device__ __forceinline__ unsigned work(unsigned x) {
#pragma unroll 1
  for (int q = 0; q < 9; ++q) x = x * 1664525u + (x >> 7);
  return x;
}
__device__ __noinline__ unsigned whose(unsigned x) { return x * 64 + threadIdx.x; }
__device__ __noinline__ unsigned given(unsigned x, unsigned thread) { return x * 64 + thread; }
__device__ __noinline__ void flushed(unsigned* at, unsigned x) { *at = x; __threadfence(); }
__device__ __noinline__ void locked(unsigned* lock) { while (atomicCAS(lock, 0u, 1u)) {} }

// right: another place in each inner iteration
extern "C" __global__ void __launch_bounds__(64) while_moves_on(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i]; int k = 0;
#pragma ccc while
    while ((x >> 20) & 7 && k < 16) {
      x = work(x);
#pragma ccc if
      if (x & 0x100) out[16 * i + k] = work(x + k);
      ++k;
    }
  }
}

// CCC036: the same place in each inner iteration
extern "C" __global__ void __launch_bounds__(64) while_counts(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc while
    while ((x >> 20) & 7) {
      x = work(x);
#pragma ccc if
      if (x & 0x100) out[i] = work(out[i] + x);
    }
  }
}

// CCC036: slots of the iteration, found in data
#pragma ccc grid
extern "C" __global__ void __launch_bounds__(64) grid_while_counts(ARGUMENTS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = a[i];
#pragma ccc while
  while ((x >> 20) & 7) {
    x = work(x);
#pragma ccc if
    if (x & 0x100) out[4 * i + (x & 3)] = work(out[4 * i + (x & 3)] + x);
  }
}

// right: a sum of integers has no order
extern "C" __global__ void __launch_bounds__(64) while_adds(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc while
    while ((x >> 20) & 7) {
      x = work(x);
#pragma ccc if
      if (x & 0x100) atomicAdd(&count[x & 63], work(x));
    }
  }
}

// CCC036: an atomic whose result is used keeps its order
extern "C" __global__ void __launch_bounds__(64) while_takes_tickets(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc while
    while ((x >> 20) & 7) {
      x = work(x);
#pragma ccc if
      if (x & 0x100) out[16 * i + atomicAdd(&out[16 * i + 15], 1u) % 15] = work(x);
    }
  }
}

// CCC036: the next inner iteration overwrites what the path reads
extern "C" __global__ void __launch_bounds__(64) while_reads(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc while
    while ((x >> 20) & 7) {
      x = work(x);
      out[4 * i + (x >> 3 & 3)] = x;
#pragma ccc if
      if (x & 0x100) atomicAdd(&count[x & 63], work(out[4 * i] + out[4 * i + 1]));
    }
  }
}

// right: the user's word
extern "C" __global__ void __launch_bounds__(64) while_independent(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i]; unsigned char k = 0;
#pragma ccc while
    while ((x >> 20) & 7 && k < 16) {
      x = work(x);
#pragma ccc if independent
      if (x & 0x100) out[16 * i + (k * 5 & 15)] = work(x);
      ++k;
    }
  }
}

// CCC036: a place of the iteration alone: the last one wins
extern "C" __global__ void __launch_bounds__(64) variable_last(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i]; int trips = x >> 20 & 15;
#pragma ccc for variable
    for (int k = 0; k < trips; ++k) {
#pragma ccc if
      if (x >> k & 1) out[i] = work(x + k);
    }
  }
}

// CCC036: load, modify, store
extern "C" __global__ void __launch_bounds__(64) variable_updates(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i]; int trips = x >> 20 & 15;
#pragma ccc for variable
    for (int k = 0; k < trips; ++k) {
#pragma ccc if
      if (x >> k & 1) { unsigned* at = &out[4 * i + (work(x + k) & 3)]; *at = *at * 5 + k; }
    }
  }
}

// right: places found in data, which the promise covers
extern "C" __global__ void __launch_bounds__(64) variable_scatters(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i]; int trips = x >> 20 & 15;
#pragma ccc for variable
    for (int k = 0; k < trips; ++k) {
#pragma ccc if
      if (x >> k & 1) out[16 * i + (a[k] & 0xf0000000u) * 0 + k] = work(x + k);
    }
  }
}

// CCC036: three deep, the outer `while` keeps its order
extern "C" __global__ void __launch_bounds__(64) three_deep(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc while
    while ((x >> 20) & 7) {
      x = work(x);
      int trips = x >> 8 & 7;
#pragma ccc for variable
      for (int k = 0; k < trips; ++k) {
#pragma ccc if
        if (x >> k & 1) out[16 * i + k] = work(x + k);
      }
    }
  }
}

// CCC037: scratch of the thread, the slot found in data
extern "C" __global__ void __launch_bounds__(64) scratch_by_data(ARGUMENTS) {
  __shared__ unsigned bins[4 * 64];
#pragma ccc for
  for (EACH) {
#pragma ccc if
    if (a[i] & 1) {
      unsigned x = a[i], z = 0;
#pragma unroll 1
      for (int q = 0; q < 6; ++q) bins[(x >> (2 * q + 4) & 3) * 64 + threadIdx.x] = q + i;
#pragma unroll 1
      for (int q = 0; q < 6; ++q) z = z * 1664525u + bins[(x >> (2 * q + 4) & 3) * 64 + threadIdx.x];
      out[i] = z;
    }
  }
}

// CCC037: counters of the thread, the marked loop's remainder the slot
extern "C" __global__ void __launch_bounds__(64) counters_of_the_thread(ARGUMENTS) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
#pragma ccc for
  for (int k = 0; k < n; ++k) {
    unsigned x = a[k] + t;
#pragma ccc if
    if (x & 1) { unsigned r = work(x); out[4 * t + (k & 3)] += r; }
  }
}

// CCC037: a loop of tasks with scratch of the thread
extern "C" __global__ void __launch_bounds__(64) scratch_of_a_loop(ARGUMENTS) {
  __shared__ unsigned own[64 * 4];
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc while
    while ((x >> 20) & 7) { own[threadIdx.x * 4 + (x & 3)] = x; x = work(x + own[threadIdx.x * 4 + (x >> 2 & 3)]); }
    out[i] = x;
  }
}

// right: four places for each iteration
extern "C" __global__ void __launch_bounds__(64) slots_of_the_iteration(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) { unsigned r = work(x); out[4 * i + (r & 3)] = r; out[4 * i + (x & 3)] += r; }
  }
}

// right: an index made of the number of the iteration
#pragma ccc grid
extern "C" __global__ void __launch_bounds__(64) tiles(ARGUMENTS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = a[i];
#pragma ccc if
  if (x & 1) out[i / 7 * 16 + i % 7] = work(x);
}

// right: a segment for each thread, a place in it for each iteration
extern "C" __global__ void __launch_bounds__(64) segments(ARGUMENTS) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
#pragma ccc for
  for (int k = 0; k < 8; ++k) {
    unsigned x = a[(t + k * 3) % 97];
#pragma ccc if
    if (x & 1) out[8 * t + k] = work(x);
  }
}

// CCC041: a call that reads the thread's index
extern "C" __global__ void __launch_bounds__(64) asks_whose(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
#pragma ccc if independent
    if (a[i] & 1) out[i] = whose(work(a[i]));
  }
}

// right: the index as an argument
extern "C" __global__ void __launch_bounds__(64) is_told_whose(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
#pragma ccc if independent
    if (a[i] & 1) out[i] = given(work(a[i]), threadIdx.x);
  }
}

// CCC039: what follows the path would come before its fence
extern "C" __global__ void __launch_bounds__(64) fence_in_the_path(ARGUMENTS) {
  __shared__ unsigned flag[64];
  flag[threadIdx.x] = 1;
#pragma ccc for
  for (EACH) {
#pragma ccc if
    if (a[i] & 1) { unsigned r = work(flag[a[i] & 63]); __threadfence(); if (r == 7) flag[r] = 0; }
    out[i] = 1;
  }
}

// right: nothing follows
extern "C" __global__ void __launch_bounds__(64) fence_at_the_end(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
#pragma ccc if
    if (a[i] & 1) { out[2 * i] = work(a[i]); __threadfence(); out[2 * i + 1] = 1; }
  }
}

// CCC039: a fence in a call before the path
extern "C" __global__ void __launch_bounds__(64) fence_in_a_call(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    flushed(&out[2 * i], i);
#pragma ccc if
    if (a[i] & 1) out[2 * i + 1] = work(a[i]);
  }
}

// CCC039: a lock taken in a call before the path
extern "C" __global__ void __launch_bounds__(64) lock_in_a_call(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    locked(&count[i]);
#pragma ccc if
    if (a[i] & 1) out[i] = work(a[i]);
  }
}

// right: a lane that has found something keeps it while the others go on
extern "C" __global__ void __launch_bounds__(64) finds(ARGUMENTS) {
  unsigned found = 0;
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
    if ((x & 63) == 60) { found = x; break; }
#pragma ccc if
    if ((x & 3) == 0) out[i] = work(x);
  }
  count[blockIdx.x * blockDim.x + threadIdx.x] = found;
}

// right: a lane that returns from the loop stores what it has read there
extern "C" __global__ void __launch_bounds__(64) returns(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
    if ((x & 31) == 28) { count[i] = x * 3; return; }
#pragma ccc if
    if ((x & 3) == 0) out[i] = work(x);
  }
}

__device__ __noinline__ void rings(int n, const unsigned* a, unsigned* out) {
#pragma ccc for block(64)
  for (EACH) {
    unsigned x = a[i];
#pragma ccc for variable
    for (unsigned k = 0; k < (x & 15u); ++k) out[i * 16 + k] = out[i * 16 + ((k + 15u) & 15u)] * 3u + x;
  }
}
// right: the lane's own part of an array that a function is given, at two places of which one is hidden by a mask
extern "C" __global__ void __launch_bounds__(64) ring_of_a_function(ARGUMENTS) { rings(n, a, out); }

// right: the pointers lead to different memory, as one of them says
extern "C" __global__ void __launch_bounds__(64) restricted(int n, const unsigned* __restrict__ a, unsigned* __restrict__ out, unsigned* count) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) out[i] += work(x);
    count[i] = x * 2;
  }
}

// CCC036: they may lead to the same memory
extern "C" __global__ void __launch_bounds__(64) unrestricted(int n, const unsigned* __restrict__ a, unsigned* out, unsigned* count) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) out[i] += work(x);
    count[i] = x * 2;
  }
}

// CCC036: a pointer that is another one by then
extern "C" __global__ void __launch_bounds__(64) assigned(int n, const unsigned* __restrict__ a, unsigned* __restrict__ out, unsigned* count) {
  unsigned* places = out;
  if (n > 100) out = count;
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) places[i] += work(x);
    count[i] = x * 2;
  }
}

// CCC036: 16 bits of a number that grows: every sixteenth inner iteration has the same place
extern "C" __global__ void __launch_bounds__(64) while_wraps(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i]; int k = 0;
    unsigned* ring = out + 8 * i + 4096;
#pragma ccc while
    while (k < 40 + (int)(x & 7)) {
      x = x * 1664525u + 1013904223u;
#pragma ccc if
      if (x & 0x10000) ring[(short)(k * 4096) >> 12] = work(x);
      ring[(short)(k * 4096)] = 1;
      ++k;
    }
  }
}

// CCC036: the upper half of a number that grows stays the same for four inner iterations
extern "C" __global__ void __launch_bounds__(64) while_in_halves(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], k = 0;
    unsigned long long at = 0;
#pragma ccc while
    while (k < 40 + (x & 7)) {
      x = x * 1664525u + 1013904223u;
      unsigned low, high;
      asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"(at));
#pragma ccc if
      if (x & 0x10000) out[13 * i + high] = work(x) ^ low;
      at += 1ull << 30;
      ++k;
    }
  }
}

// CCC036: two copies of an unrolled body share a place
extern "C" __global__ void __launch_bounds__(64) while_unrolled(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
    unsigned* place = out + 16 * i;
#pragma ccc while
#pragma unroll 2
    for (int k = 0; k < 32; ++k) {
#pragma ccc if
      if (x >> k & 1) *place = work(x + k);
      if (k & 1) ++place;
    }
  }
}

// right: each copy of an unrolled body has a place of its own
extern "C" __global__ void __launch_bounds__(64) while_unrolled_apart(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
    unsigned* place = out + 16 * i;
#pragma ccc while
#pragma unroll 2
    for (int k = 0; k < 16; ++k) {
#pragma ccc if
      if (x >> k & 1) *place = work(x + k);
      ++place;
    }
  }
}

// CCC034: a sum of 128 bits after the path: its carry stays where its lower half is
extern "C" __global__ void __launch_bounds__(64) carries_after_path(
    int n, const unsigned* __restrict__ a, unsigned* __restrict__ out, unsigned* __restrict__ count) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
    unsigned long long y = x;
#pragma ccc if
    if (x & 1) y = work(x);
    unsigned __int128 sum = ((unsigned __int128)x << 64 | 0xffffffff80000000ull) + y;
    out[i] = (unsigned)sum;
    count[i] = (unsigned)(sum >> 64);
  }
}

// right: registers of inline assembly before and after the path (cuda_fp16.h has such)
extern "C" __global__ void __launch_bounds__(64) scoped_registers(
    int n, const unsigned* __restrict__ a, unsigned* __restrict__ out, unsigned* __restrict__ count) {
#pragma ccc for
  for (EACH) {
    unsigned x, y;
    asm("{ .reg .u16 low, high; mov.b32 {low, high}, %1; cvt.u32.u16 %0, high; }" : "=r"(x) : "r"(a[i]));
    y = x;
#pragma ccc if
    if (x & 1) y = work(x);
    asm("{ .reg .b32 low; xor.b32 low, %1, 5; add.u32 %0, low, %1; }" : "=r"(y) : "r"(y));
    out[i] = y;
    count[i] = x;
  }
}

// CCC036: a place found from the distance of two addresses in shared memory
extern "C" __global__ void __launch_bounds__(64) distance_of_addresses(
    int n, const unsigned* __restrict__ a, unsigned char* __restrict__ out, unsigned* __restrict__ count) {
  __shared__ unsigned char marks[64];
  marks[threadIdx.x] = threadIdx.x % 7;
  __syncthreads();
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], y = 0;
    const unsigned char* p = marks + (x & 3);
#pragma unroll 1
    while (*p != (x >> 8) % 5 && p < marks + 15) ++p;
#pragma ccc if
    if (x & 1) {
      y = work(x);
      out[16 * i + (p - marks)] = y;
    }
    out[16 * i + 5] = 77;
    count[i] = y + 1;
  }
}

// CCC036: the same, one place further down: nvcc adds the complement of an address
extern "C" __global__ void __launch_bounds__(64) distance_less_one(
    int n, const unsigned* __restrict__ a, unsigned char* __restrict__ out, unsigned* __restrict__ count) {
  __shared__ unsigned char marks[64];
  marks[threadIdx.x] = threadIdx.x % 7;
  __syncthreads();
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], y = 0;
    const unsigned char* p = marks + 1 + (x & 3);
#pragma unroll 1
    while (*p != (x >> 8) % 5 && p < marks + 15) ++p;
    long long before = p - marks - 1;
#pragma ccc if
    if (x & 1) {
      y = work(x) + before;
      out[16 * i + before] = y;
    }
    out[16 * i + 5] = 77;
    count[i] = y + 1;
  }
}
