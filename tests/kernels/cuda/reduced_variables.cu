// What `reduce` may name: members, elements with a literal index; and variables that are in memory, which stay there.

#define ARGUMENTS int n, const unsigned* __restrict__ a, unsigned* out, unsigned* count
__device__ __forceinline__ unsigned work(unsigned x) {
#pragma unroll 1
  for (int q = 0; q < 9; ++q) x = x * 1664525u + (x >> 7);
  return x;
}
#define EACH int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x
struct Sums { unsigned total, most; };

extern "C" __global__ void __launch_bounds__(64) members(ARGUMENTS) {
  Sums s = {0, 0};
#pragma ccc for reduce(+: s.total) reduce(max: s.most)
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) { x = work(x); s.total += x; s.most = max(s.most, x); out[i] = x; }
  }
  count[blockIdx.x * blockDim.x + threadIdx.x] = s.total ^ s.most * 3;
}

extern "C" __global__ void __launch_bounds__(64) elements(ARGUMENTS) {
  unsigned s[3] = {0, 1, 2};
#pragma ccc for reduce(+: s[0], s[ 1 ]) reduce(^: s[2])
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) { x = work(x); s[0] += x; s[1] += x >> 3; s[2] ^= x; out[i] = x; }
  }
  count[blockIdx.x * blockDim.x + threadIdx.x] = s[0] ^ s[1] * 3 ^ s[2] * 5;
}

extern "C" __global__ void __launch_bounds__(64) by_reference(ARGUMENTS) {
  unsigned& total = count[0];
#pragma ccc for reduce(+: total)
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) { for (int q = 0; q < (x & 31); ++q) x = x * 1664525u + (x >> 7); atomicAdd(&total, x); out[i] = x; }
  }
}

// A sum of one iteration, in a path in a loop of tasks.
#pragma ccc grid block(64) reduce(+: sum)
extern "C" __global__ void in_a_path(ARGUMENTS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned sum = 3;
#pragma ccc for variable
  for (unsigned k = 0; k < (a[i] & 15); ++k) {
    unsigned x = a[i] ^ k;
#pragma ccc if
    if (x & 2) { sum += work(x); }
  }
  out[i] = sum;
}

extern "C" __global__ void __launch_bounds__(64) flags(ARGUMENTS) {
  bool found = false, ok = true;
  int changed = -5;
#pragma ccc for reduce(|: found) reduce(&: ok) reduce(=: changed)
  for (EACH) {
    unsigned x = a[i];
    ok &= x != 77;
#pragma ccc if
    if (x & 1) {
      x = work(x);
      found |= x & 8192;
      if (x % 11 == 3) changed = 9;
      out[i] = x;
    }
    if (x % 97 == 5) ok = false;
  }
  count[blockIdx.x * blockDim.x + threadIdx.x] = found + 2 * ok + 4 * changed;
}

// nvcc sets these before it is known whether it must.
extern "C" __global__ void __launch_bounds__(64) found_and_left(ARGUMENTS) {
  bool found = false;
#pragma ccc for reduce(|: found)
  for (EACH) {
    unsigned x = a[i];
#pragma ccc while
    while (x > 100) {
      x = work(x) & 0xffff;
      if (x % 17 == 1) { found = true; break; }
    }
    out[i] = x;
  }
  count[blockIdx.x * blockDim.x + threadIdx.x] = found;
}

extern "C" __global__ void __launch_bounds__(64) set_and_continued(ARGUMENTS) {
  float worst = -1.f;
#pragma ccc for reduce(=: worst)
  for (EACH) {
    unsigned x = a[i];
    if (x % 3 == 0) continue;
#pragma ccc if
    if (x & 1) { x = work(x); if (x & 64) worst = 0.f; out[i] = x; }
    if (x % 100 == 1) { worst = 0.f; continue; }
    out[i] ^= 3;
  }
  count[blockIdx.x * blockDim.x + threadIdx.x] = worst * 8 + 8;
}

// One flag lives through several runs of the loop, another one through one.
extern "C" __global__ void __launch_bounds__(64) runs_of_a_loop(ARGUMENTS) {
  bool any = false;
  for (int r = 0; r < 3; ++r) {
    bool here = false;
#pragma ccc for reduce(|: any, here)
    for (EACH) {
      unsigned x = a[i] + r;
#pragma ccc if
      if (x & 1) { x = work(x); any |= x % 19 == 3; here |= x % 5 == 2; out[i] += x; }
    }
    count[blockIdx.x * blockDim.x + threadIdx.x] += here ? r * 3 + 1 : 0;
  }
  count[blockIdx.x * blockDim.x + threadIdx.x] += any ? 100 : 0;
}
