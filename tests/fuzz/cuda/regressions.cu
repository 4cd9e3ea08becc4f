// Kernels that once were rewritten wrongly, or broke the rewrite.
#include "common.h"

// The store that reads what the path writes goes to an array of the lane's own.
KERNEL local_tail(ARGUMENTS) {
  int mine[8];
#pragma unroll 1
  for (int k = 0; k < 8; k++) mine[k] = k;
#pragma ccc for
  for (STRIDE) {
    int r = a[i];
#pragma ccc if
    if ((hash32(r) & 7) < 3) r = work(hash32(r), i);
    mine[r & 7] = r;
  }
  int s = 0;
#pragma unroll 1
  for (int k = 0; k < 8; k++) s = s * 5 + mine[(s ^ k) & 7];
  out[ME] = s;
}

__device__ __noinline__ int sum(const int* p, int k) {
  int s = 0;
  for (int q = 0; q < k; q++) s += p[q & 7];
  return s;
}

// The path only hands on the array's address.
KERNEL local_by_call(ARGUMENTS) {
  int mine[8];
#pragma unroll 1
  for (int k = 0; k < 8; k++) mine[k] = k + ME;
#pragma ccc for
  for (STRIDE) {
#pragma ccc if
    if ((hash32(a[i]) & 7) < 3) out[i] = sum(mine, a[i] & 15);
  }
}

// The array lives from the outer path into the inner one, whose trips change lanes.
KERNEL local_nested(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
#pragma ccc if
    if ((hash32(a[i]) & 7) < 5) {
      int mine[8];
      for (int k = 0; k < 8; k++) mine[(k + a[i]) & 7] = k * a[i];
      int limit = a[i] & 15;
#pragma ccc for variable
      for (int k = 0; k < limit; k++) atomicAdd(&out[i], mine[(k * 3 + i) & 7] + k);
    }
  }
}

// The array lives from trip to trip.
KERNEL local_between_trips(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    int limit = a[i] & 15;
    int mine[8];
#pragma ccc for variable
    for (int k = 0; k < limit; k++) {
      mine[(k * 5 + i) & 7] = k;
      int before = k ? k - 1 : 0;
      atomicAdd(&out[i], mine[(before * 5 + i) & 7] + k);
    }
  }
}

// The legal twin: each trip fills the array.
KERNEL local_in_trip(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    int limit = a[i] & 15;
#pragma ccc for variable
    for (int k = 0; k < limit; k++) {
      int mine[8];
#pragma unroll 1
      for (int q = 0; q < 8; q++) mine[q] = (k * q) ^ i;
      atomicAdd(&out[i], mine[(k * 3 + i) & 7] + k);
    }
  }
}

// A place of the thread's own, stored ahead of the path and read in it.
KERNEL scratch_ahead(ARGUMENTS) {
  __shared__ int mine[1024];
#pragma ccc for
  for (STRIDE) {
    mine[threadIdx.x * 4 + 1] = a[i];
    unsigned w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 3) out[i] = work(w, i) + mine[threadIdx.x * 4 + 1];
  }
}

// The legal twin: the place that the path reads is stored once.
KERNEL scratch_once(ARGUMENTS) {
  __shared__ int mine[256];
  mine[threadIdx.x] = a[ME];
  __syncthreads();
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 3) out[i] = work(w, i) + mine[threadIdx.x];
  }
}

KERNEL exit_in_path(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 3) {
      out[i] = work(w, i);
      if ((w & 0x70) == 0x30) asm volatile("exit;");
      count[i] = 5;
    }
  }
}

// Nothing else in the kernel returns.
KERNEL only_return_in_path(ARGUMENTS) {
  int i = ME;
#pragma ccc for
  for (;; i += ALL) {
    unsigned w = hash32(a[i % n]) + i / n;
#pragma ccc if
    if ((w & 7) < 3) {
      atomicAdd(&out[i % n], w);
      if (i > n) return;
    }
  }
}

// A trap ends the launch, wherever it stands.
KERNEL traps(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
    if (w == 8888) __trap();
#pragma ccc if
    if ((w & 7) < 3) {
      if (w == 7777) __trap();
      out[i] = work(w, i);
    }
    if (w == 9999) __trap();
  }
}

// Two marked loops, one in the other: the inner one's votes would part.
KERNEL loop_in_path(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 3) {
#pragma ccc for
      for (int k = 0; k < (int)(w >> 5 & 7); k++) {
        unsigned z = hash32(w + k);
#pragma ccc if
        if (z & 1) atomicAdd(&out[i], work(z, k));
      }
    }
  }
}

// Sums behind each other in several paths and loops: their order is free, and none of them waits for a lock.
KERNEL sums(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 5) {
      unsigned z = work(w, i);
#pragma ccc if
      if (z & 1) atomicAdd(&out[i], work(z, i));
#pragma ccc if
      if (z & 2) atomicAdd(&out[i], work(z, i + 1));
      int limit = z & 7;
#pragma ccc for variable
      for (int k = 0; k < limit; k++) atomicAdd(&out[i], work(z, k));
      limit = w >> 4 & 7;
#pragma ccc for variable
      for (int k = 0; k < limit; k++) atomicAdd(&out[i], work(w, k));
    }
  }
}

// A sum and a largest: their order counts.
KERNEL sum_and_largest(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 5) atomicAdd(&out[i], work(w, i));
    atomicMax(&out[i], a[i]);
  }
}

// So it does where one asks what was there.
KERNEL asked(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]);
    int before = atomicAdd(&out[0], 1);
#pragma ccc if
    if ((w & 7) < 5) count[i] = before + work(w, i) + atomicAdd(&out[i], 3);
    atomicAdd(&out[i], a[i]);
  }
}

// The compiler unrolls the marked loop: what stands behind the path in its text is the next iteration.
KERNEL unrolled(ARGUMENTS) {
#pragma ccc for
#pragma unroll 3
  for (STRIDE) {
    unsigned w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 5) out[i] = work(w, i);
  }
}

// Here it is not.
KERNEL unrolled_and_read(ARGUMENTS) {
#pragma ccc for
#pragma unroll 3
  for (STRIDE) {
    unsigned w = hash32(a[i]);
#pragma ccc if
    if ((w & 7) < 5) out[i] = work(w, i);
    count[i] = out[i + 1];
  }
}

// What the second path could rebuild its address from is computed in the first one alone.
KERNEL behind_a_path(ARGUMENTS) {
#pragma ccc for
  for (unsigned i = ME; i < (unsigned)n; i += ALL) {
    unsigned w = hash32(a[i]);
#pragma ccc if independent
    {
      out[i * 3u] = work(w, i);
      atomicAdd(&count[w & 63], w);
    }
    out[i * 3u + 1u] = w;
#pragma ccc if independent
    if ((i & 5) == 1) out[i * 3u + 2u] = 7;
  }
}

// The path's call is nothing that a lane may repeat.
__device__ __noinline__ unsigned far(unsigned x, unsigned y) {
  unsigned r = y;
  for (unsigned q = 0; q < (x & 7u); q++) r = hash32(r) + q;
  return r;
}
KERNEL result_behind(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]), r = 7;
#pragma ccc if
    if ((w & 7) < 5) r = far(w, i);
    out[i] = r;
  }
}

// Nor may its argument leave for the task alone.
KERNEL argument_behind(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned w = hash32(a[i]), r = 7;
#pragma ccc if
    if ((w & 7) < 5) r = work(w, i);
    out[i] = far(r, 3);
  }
}

// nvcc computes the counter of 32 bits in the trips, and the lane needs it to go on.
KERNEL handed_on(ARGUMENTS) {
#pragma ccc for
  for (STRIDE) {
    unsigned x = a[i];
#pragma ccc while chunk(1)
    do {
      x = (x ^ x >> 16) * 0x7feb352dU + i;
      x = (x ^ x >> 15) * 0x846ca68bU;
    } while (x >> 20 & 7);
    out[i] = x;
  }
}

// Lanes that have left the loop wait in it, and what they will need after it must last: nvcc keeps whether they broke out.
KERNEL waits_after_break(ARGUMENTS) {
  int trips = n / ALL;
#pragma ccc for
  for (int k = 0; k < trips; k++) {
    int i = ME + k * ALL;
    unsigned w = hash32(a[i]);
    if (w % 101 == 3) break;
    if (w % 101 == 5) return;
#pragma ccc if
    if ((w & 15) < 11) out[i] = work(w, i);
  }
  for (int k = 0; k < trips; k++) {
    int i = ME + k * ALL;
    unsigned w = hash32(a[i] + 1);
    if ((w & 31) < 7) atomicSub(&count[w & 15], i);
  }
}

// Lanes leave the inner loop one by one, and what follows divides by a value that all lanes share: ptxas kept that in one
// register for the warp and let the lanes that were ahead overwrite it, where votes named all lanes by the constant -1.
KERNEL left_one_by_one(ARGUMENTS) {
  unsigned all = ALL, me = ME;
  short k = 1;
  if (k * all + me < n)
#pragma ccc for
  do {
    unsigned at = me + (k - 1) * all;
    k++;
    unsigned first = a[at % (unsigned)n], v = (first | at) & 49;
#pragma unroll 1
    for (unsigned q = 0; q < ((k - at) & 7u); q++) v = k;
    if ((a[(unsigned)k % (unsigned)n] + first) % 37u == 3u) continue;
    unsigned x = hash32(v & 4u ? v + 5u : k) + first;
#pragma unroll 1
    for (unsigned q = 0; q < (x & 15u); q++) {
      unsigned w = v ^ 78u;
#pragma ccc if
      if (((x >> 3) & 3u) == 2u) w = hash32(w + q) * n;
      out[at] += w;
    }
  } while (k * all + me < n);
}
