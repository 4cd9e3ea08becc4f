// Kernels that strain what a random generator does not reach: odd types, shapes of control flow, calls, memory.
#include "common.h"

__device__ __noinline__ void looped(ARGUMENTS, int from) {
#pragma ccc for
    for (int i = from; i < n; i += ALL) {
      int w = hash32(a[i] + from);
#pragma ccc if
      if ((w & 7) < 3) { int r = 0; for (int k = 0; k < (w >> 8 & 15); k++) r += hash32(r + i); atomicAdd(&out[i], r); }
    }
}

__device__ __noinline__ int outside(const int* __restrict__ a, int i, int* __restrict__ out) {
    unsigned w = hash32(a[i]);
    for (int k = 0; k < (w & 3); k++) out[i] += k * w;
    return w;
}

template <int K, bool B> __device__ void tk(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i] + K);
#pragma ccc if
    if ((w & 7) < K) { if constexpr (B) out[i] = work(w, i) + K; else out[i] = -work(w, i); }
  }
}

__device__ __noinline__ unsigned rec(int n, const int* a, int* out, int d) {
  unsigned s = 0;
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    unsigned w = hash32(a[i] + d);
#pragma ccc if
    if ((w & 7) < 3) atomicAdd(&out[i], work(w, i));
  }
  if (d > 0) s += rec(n / 2, a, out, d - 1) * 3;
  return s + d;
}

KERNEL many_predicates(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    int v = a[i];
    bool p[40];
#pragma unroll
    for (int k = 0; k < 40; k++) p[k] = ((v * (k + 1)) >> (k & 7)) & 1;
    int early = 0;
#pragma unroll
    for (int k = 0; k < 40; k++) early += p[k];
    count[i] = early;
#pragma ccc if
    if ((hash32(v) & 7) < 3) {
      int r = 0;
      for (int q = 0; q < (v & 7); q++) {
#pragma unroll
      for (int k = 0; k < 40; k++) if (p[k]) r = r * 3 + k + q; }
      out[i] = r;
    }
  }
}

KERNEL k_post(ARGUMENTS) {
  int carried = ME, c2 = 5; 
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 3) out[i] = work(w, i) + carried * c2;
    carried = carried * 3 + (w & 5); c2 += carried >> 3;
  }
}

KERNEL uniform_differs(ARGUMENTS) {
#pragma ccc for
  for (int k = 0; k < 20; k++) {
    int i = ME + k * ALL; if (i >= n) continue;
    unsigned w = hash32(a[i]);
    int u = a[k];
#pragma ccc if
    if ((w & 7) < 3) out[i] = work(w, i) + k * u;
  }
}

KERNEL always_true_dyn(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
#pragma ccc if
    if (n < 1000000) out[i] = work(w, i);
  }
}

KERNEL never(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
    count[i] = w;
#pragma ccc if
    if (a[i] < 0) out[i] = work(w, i);
  }
}

KERNEL down(ARGUMENTS) {
#pragma ccc for
  for (int i = n - 1 - ME; i >= 0; i -= ALL) {
    unsigned w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 3) out[i] = work(w, i);
  }
}

KERNEL wrap8(ARGUMENTS) {
  unsigned char start = ME & 3;
#pragma ccc for
  for (unsigned char c = start; c < 200; c += 4) {
    int i = c + (ME >> 2) * 256;
    if (i >= n) break;
    unsigned w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 3) out[i] = work(w, c);
  }
}

KERNEL called_in_both(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
    bool f = w & 64; short s = w; double d = (double)i * 0.1; long long L = (long long)w * i;
#pragma ccc if independent
    if ((w & 7) < 3) { int r = outside(a, i, out); count[i] = r + (f ? s : (int)d) + (int)(L >> 7); }
  }
}

KERNEL lambda(ARGUMENTS) {
  auto f = [&](int i) {
    unsigned w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 3) { auto g = [&](int q) { return work(w, i) + q; }; out[i] = g(i) + g(i + 1); }
  };
#pragma ccc for
  for (STRIDE) f(i);
}

KERNEL instances(ARGUMENTS) { tk<2, true>(n, a, out, count); tk<5, false>(n, a, out + n + 1, count); }

KERNEL atomics_used(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
    int slot = atomicAdd(&count[i & 63], 0) + i;
#pragma ccc if independent
    if ((w & 7) < 3) { int o = atomicAdd(&out[slot], w); out[slot + n] = o + work(w, i); }
  }
}

KERNEL jump_table(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
    int z = 0;
    switch (w & 15) { case 0: z = i; break; case 1: z = work(w, 3); break; case 2: z = a[i] * 3; break; case 3: z = ~i; break; case 4: z = w / 3; break; case 5: z = w % 7; break; case 6: continue; case 7: z = 77; break; case 9: z = w * w; break; }
#pragma ccc if
    if ((w & 48) == 16) {
      int r = z;
      switch (w >> 8 & 7) { case 0: r = i; break; case 1: r = work(w, 3); break; case 2: r *= 3; break; case 3: r = ~i; case 4: r += w / 3; break; case 5: r = w % 7; break; case 6: r++; case 7: r *= r; }
      out[i] = r;
    }
  }
}

KERNEL switch_blocks(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
    switch (w & 7) {
      case 0:
#pragma ccc if
      { out[i] = work(w, 1); } break;
      case 1: count[i] = 4; break;
      case 2:
#pragma ccc if
      { out[i] = work(w, 2) * 3; } break;
      case 3: continue;
      case 4:
#pragma ccc if
      { int r = 0; for (int k = 0; k < (w >> 9 & 7); k++) r ^= hash32(k); out[i] = r; } break;
      default: ;
    }
  }
}

KERNEL strength(ARGUMENTS) {
  const int* p = a + ME; int* q = out + ME; int* r = count + ME;
  int left = n - ME;
#pragma ccc for
  for (; left > 0; left -= ALL) {
    unsigned w = hash32(*p);
#pragma ccc if
    if ((w & 7) < 3) { *q = work(w, left); q[n] = p[1]; }
    p += ALL; q += ALL; r += ALL;
  }
}

KERNEL vectors(ARGUMENTS) {
#pragma ccc for
  for (int i = ME; i < n / 4; i += ALL) {
    int4 v = ((const int4*)a)[i];
    double2 d = make_double2(v.x * 0.5, v.y * 0.25);
#pragma ccc if
    if ((hash32(v.x) & 7) < 3) { int4 r; r.x = work(v.y, i); r.y = v.z; r.z = (int)(d.x * d.y); r.w = v.w; ((int4*)out)[i] = r; }
  }
}

KERNEL live_after_loop(ARGUMENTS) {
  int last = -1; unsigned acc = 0; int i;
#pragma ccc for
  for (i = ME; i < n; i += ALL) {
    unsigned w = hash32(a[i]);
    last = i; acc = acc * 3 + w;
    if (w % 37 == 1) break;
#pragma ccc if
    if ((w & 7) < 3) atomicAdd(&out[i], work(w, i));
    if (w % 41 == 1) { last = -5; break; }
    if (w % 43 == 1) { count[ME] = 77; return; }
  }
  count[ME] = last + acc + i;
}

KERNEL goto_out(ARGUMENTS) {
#pragma ccc for
  for (int g = 0; g < 6; g++) {
    int i = ME + g * ALL; if (i >= n) break;
    unsigned w = hash32(a[i]);
    for (int k = 0; k < 5; k++) { if ((w >> k & 15) == 3) goto done; w = w * 3 + k; }
#pragma ccc if
    if ((w & 7) < 3) atomicAdd(&out[i], work(w, i));
  }
  count[ME] = 1; return;
done: count[ME] = 2;
}

KERNEL nested_three(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]); int s = 3;
#pragma ccc if
    if ((w & 7) < 5) {
      unsigned z = work(w, i);
#pragma ccc if
      if (z & 1) {
        unsigned y = work(z, i); int lim = y & 7;
#pragma ccc for variable
        for (int k = 0; k < lim; k++) atomicAdd(&out[i], work(y, k) + s);
      }
    }
    s += w;
  }
}

KERNEL identity(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 3) {
      unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); unsigned lm; asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lm));
      atomicAdd(&out[i], work(w, threadIdx.x * 3 + l + __popc(lm) + threadIdx.y + blockIdx.x + blockDim.x));
    }
  }
}

KERNEL warp_id(ARGUMENTS) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma ccc for
  for (int i = warp + blockIdx.x * (blockDim.x >> 5); i * 32 < n; i += gridDim.x * (blockDim.x >> 5)) {
    int j = i * 32 + lane; unsigned w = hash32(a[j]) + warp;
#pragma ccc if
    if ((w & 7) < 3) out[j] = work(w, i + lane);
  }
}

KERNEL either_pointer(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
    int* dst = (w & 64) ? out : count;
#pragma ccc if
    if ((w & 7) < 3) dst[i] = work(w, i);
  }
}

KERNEL wide(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
    unsigned __int128 x = (unsigned __int128)w * w * i;
#pragma ccc if
    if ((w & 7) < 3) out[i] = work(w, (int)(x >> 67)) + (int)x;
  }
}

KERNEL tail_of_atomics(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]); int r = 5;
#pragma ccc if
    if ((w & 7) < 3) r = work(w, i);
    atomicAdd(&out[i], r); atomicMax(&count[i], r * 3);
  }
}

KERNEL empty_path(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 3) { }
    out[i] = w;
  }
}

KERNEL called_twice(ARGUMENTS) {
  looped(n, a, out, count, ME);
  if (threadIdx.x & 32) looped(n, a, out, count, ME + 3);
  if (threadIdx.x & 1) looped(n, a, out, count, ME + 3);
  looped(n / 2, a, out, count, ME + 1);
}

KERNEL called_in_path(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    int w = hash32(a[i] + 7);
#pragma ccc if
    if ((w & 7) < 5) { looped(4, a, out, count, w & 3); atomicAdd(&count[1], w & 0xff); }
  }
}

KERNEL divergent_branch(ARGUMENTS) {
  if (threadIdx.x % 3 == 0 || threadIdx.x < 64) {
#pragma ccc for
    for (STRIDE) {
      int w = hash32(a[i]);
#pragma ccc if
      if ((w & 7) < 3) { int r = 0; for (int k = 0; k < (w >> 8 & 15); k++) r += hash32(r + i); out[i] += r; }
    }
  }
  out[n + ME] = 7;
}

KERNEL two_loops(ARGUMENTS) {
  int t = ME;
#pragma unroll 1
  for (int rep = 0; rep < 3; rep++) {
#pragma ccc for
    for (STRIDE) {
      int w = hash32(a[i] + rep);
#pragma ccc if
      if ((w & 7) < 3) { int r = 0; for (int k = 0; k < (w >> 8 & 15); k++) r += hash32(r + i); out[i] += r; }
    }
#pragma ccc for
    for (int i = t; i < n / 2; i += ALL) {
      int w = hash32(a[i] - rep);
#pragma ccc if
      if ((w & 7) < 2) { int r = 0; for (int k = 0; k < (w >> 8 & 15); k++) r -= hash32(r + i); out[i + n] = out[i + n] * 3 + r; }
    }
  }
}

KERNEL last_is_break(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    int w = hash32(a[i]);
    if (w & 1) continue;
#pragma ccc if
    if ((w & 31) < 6) { int r = 0; for (int k = 0; k < (w & 15); k++) r += hash32(r + i); out[i] = r; }
    if (w & 64) break;
  }
}

KERNEL opaque_scope(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    int w = hash32(a[i]);
#pragma ccc if independent
    if ((w & 7) < 3) { int r; asm volatile("{ .reg .pred p; .reg .b32 t; setp.gt.s32 p, %1, 5; mov.b32 t, 3; @p add.s32 t, t, %1; mov.b32 %0, t; }" : "=r"(r) : "r"(w)); out[i] = r; }
    int q; asm volatile("{ .reg .pred p; .reg .b32 t; setp.gt.s32 p, %1, 5; mov.b32 t, 3; @p add.s32 t, t, %1; mov.b32 %0, t; }" : "=r"(q) : "r"(w + 1)); count[i] = q;
  }
}

KERNEL do_while_loop(ARGUMENTS) {
  int i = ME;
#pragma ccc for
  for (;;) {
    if (i >= n) break;
    unsigned w = hash32(a[i]);
    int j = i; i += ALL;
#pragma ccc if
    if ((w & 7) < 3) out[j] = work(w, i);
  }
}

KERNEL big_context(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    long long L[24];
#pragma unroll
    for (int k = 0; k < 24; k++) L[k] = (long long)a[(i + k * 7) % (n + 1)] * hash32(k + i);
    long long s = 0;
#pragma unroll
    for (int k = 0; k < 24; k++) s ^= L[k];
    count[i] = (int)s;
#pragma ccc if
    if ((hash32(a[i]) & 7) < 3) { long long r = 0; for (int q = 0; q < (a[i] & 7); q++) {
#pragma unroll
    for (int k = 0; k < 24; k++) r = r * 3 + L[k]; } out[i] = (int)(r >> 3); }
  }
}


KERNEL recursive(ARGUMENTS) { count[ME] = rec(n, a, out, 3); }

KERNEL scope_branch(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    int w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 3) { int r; asm volatile("{ .reg .pred p; setp.gt.s32 p, %1, 5; mov.b32 %0, 3; @p bra L; mov.b32 %0, 7; L: }" : "=&r"(r) : "r"(w)); out[i] = r; }
  }
}

__device__ __forceinline__ int counted(int x) {
  asm volatile("{ .reg .pred p; AGAIN: setp.gt.s32 p, %0, 7; @p bra DONE; add.s32 %0, %0, 1; bra AGAIN; DONE: }" : "+r"(x));
  return x;
}

KERNEL scope_beside(ARGUMENTS) {
  int before = counted(n & 15);
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
#pragma ccc for variable
    for (unsigned k = 0; k < (w & 7); ++k) out[i] = work(w + k, i) + before;
  }
  out[n + 64 * blockIdx.x + threadIdx.x] = counted(a[0] & 15);
}

KERNEL tail_two_paths(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]); int r = 5, q = 6;
#pragma ccc if
    if ((w & 7) < 3) r = work(w, i);
#pragma ccc if
    if ((w & 70) == 64) q = work(w, i + 3);
    atomicAdd(&out[i], r + q * 7);
  }
}

KERNEL tail_then_carry(ARGUMENTS) {
  int c = 0;
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]); int r = 5;
#pragma ccc if
    if ((w & 7) < 3) r = work(w, i);
    c += r;
  }
  count[ME] = c;
}

KERNEL if_then_break(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    int w = hash32(a[i]);
    if (w & 7) { out[i] = 4; continue; }
#pragma ccc if
    { int r = 0; for (int k = 0; k < (w >> 8 & 15); k++) r += hash32(r + i); out[i] = r; }
    break;
  }
}

KERNEL sin_both(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    float f = sinf(a[i] * 100.f);
#pragma ccc if
    if ((hash32(a[i]) & 7) < 3) out[i] = __float_as_int(sinf(f * 5e5f));
  }
}
