// Kernels whose paths cannot be deferred alone, and what becomes of them in the carried form: `right`, or the code that
// it is refused with.

#define ARGUMENTS int n, const unsigned* __restrict__ a, unsigned* out, unsigned* count
#define EACH int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x

__device__ __forceinline__ unsigned work(unsigned x) {
#pragma unroll 1
  for (int q = 0; q < 9; ++q) x = x * 1664525u + (x >> 7);
  return x;
}
__device__ __noinline__ unsigned distinct(unsigned x) { return work(x) ^ x; }

// right: code after the path reads and writes what the path writes
extern "C" __global__ void __launch_bounds__(64) memory(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) out[i] = work(x);
    count[i] = out[i] * 3 + 1;
    out[i] += x;
  }
}

// right: branches, a loop and a call read what the path computes
extern "C" __global__ void __launch_bounds__(64) branches(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], y = x;
#pragma ccc if
    if (x & 1) y = work(x);
    if (y & 2) {
      for (unsigned k = 0; k < (y & 7); ++k) out[16 * i + k] = y + k;
    } else {
      count[i] = distinct(y);
    }
  }
}

// right: a loop of tasks with branches after it
extern "C" __global__ void __launch_bounds__(64) after_while(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i]; int s = 0;
#pragma ccc while
    while ((x >> 20) & 15) { x = work(x); ++s; }
    if (s & 1) out[i] = x; else count[i] = x + s;
  }
}

// right: the same, with votes after every fourth inner iteration
extern "C" __global__ void __launch_bounds__(64) chunks(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i]; int s = 0;
#pragma ccc while chunk(4)
    while ((x >> 20) & 15) { x = work(x); ++s; }
    if (s & 1) out[i] = x; else count[i] = x + s;
  }
}

// right: a path in such a loop, and code after both
extern "C" __global__ void __launch_bounds__(64) path_in_chunks(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i]; int s = 0;
#pragma ccc while chunk(3)
    while ((x >> 20) & 15) {
#pragma ccc if
      if (x & 4) x = work(x) | 1u;
      x = x * 1664525u + 1013904223u;
      if (++s > 40) break;
    }
    if (s & 1) out[i] = x; else count[i] = x + s;
  }
}

// right: so many points that they share the code that pushes tokens
extern "C" __global__ void __launch_bounds__(64) many_points(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 4) { x = work(x); out[i] = x; }
#pragma ccc if
    if (x & 8) { x = work(x + out[i]); out[i] += x; }
#pragma ccc if
    if (x & 16) { x = work(x + out[i]); out[i] ^= x; }
#pragma ccc while
    while ((x >> 20) & 7) {
      x = work(x);
#pragma ccc if
      if (x & 3) out[i] += work(x);
    }
    count[i] = out[i] + x;
  }
}

// right: a loop of tasks that is left in three places, one of them a `return`
#pragma ccc grid
extern "C" __global__ void __launch_bounds__(64) exits(ARGUMENTS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = a[i], s = x & 63;
#pragma ccc while
  while (true) {
    unsigned t = a[s & 255];
    if ((t & 31) == (x & 31)) { out[i] = s; break; }
    if ((t & 15) == 3) return;
    if (s > x % 97 + 64) break;
    ++s;
  }
  count[i] = s;
}

// right: the state of a generator goes from path to path inside the iteration
extern "C" __global__ void __launch_bounds__(64) generator(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned state = a[i], sum = 0;
    for (int k = 0; k < 6; ++k) {
      state = state * 747796405u + 2891336453u;
#pragma ccc if
      if (state >> 30 == 0) { state = work(state); sum += state; }
      sum ^= state;
    }
    out[i] = sum;
  }
}

// right: a path in a loop of tasks shares memory with the other inner iterations
extern "C" __global__ void __launch_bounds__(64) path_in_while(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc while
    while ((x >> 20) & 7) {
      x = work(x);
#pragma ccc if
      if (x & 0x100) out[i] = work(out[i] + x);
      count[i] += out[i] & 7;
    }
    out[i] ^= x;
  }
}

// right: three points in a row, the thread's index read after the last
extern "C" __global__ void __launch_bounds__(64) three(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) out[i] = work(x);
    unsigned y = out[i];
#pragma ccc if
    if (y & 6) count[i] = work(y);
    unsigned z = count[i];
#pragma ccc if
    if (z & 8) out[i] ^= work(z);
    count[i] += out[i] * 64 + threadIdx.x;
  }
}

// right: any lane keeps its share of a sum that the path and the rest update
extern "C" __global__ void __launch_bounds__(64) any_lane(ARGUMENTS) {
  unsigned sum = 0;
#pragma ccc for reduce(+: sum)
  for (EACH) {
    unsigned x = a[i];
    sum += x & 3;
#pragma ccc if
    if (x & 1) { out[i] = work(x); sum += x >> 5; }
    if (out[i] & 2) sum += out[i];
  }
  atomicAdd(&count[0], sum);
}

// right: each owner gets what its tokens add
extern "C" __global__ void __launch_bounds__(64) owners(ARGUMENTS) {
  unsigned sum = 0, most = 0;
#pragma ccc for reduce(+: sum) reduce(max: most)
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) { out[i] = work(x); sum += x >> 5; }
    unsigned y = out[i];
#pragma ccc if
    if (y & 6) { out[i] = work(y); sum += y; most = max(most, y); }
  }
  count[blockIdx.x * blockDim.x + threadIdx.x] = sum ^ most;
}

// right: an array of its own in one segment
extern "C" __global__ void __launch_bounds__(64) own_array(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) {
      unsigned last[8];
      for (int k = 0; k < 8; ++k) last[k] = work(x + k);
      out[i] = last[x >> 3 & 7] + last[x >> 6 & 7];
    }
    count[i] = out[i] + 1;
  }
}

// right: the lane computes for itself where its next iteration begins, and what is read after the loop
extern "C" __global__ void __launch_bounds__(64) advance(ARGUMENTS) {
  unsigned kept = 0;
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;) {
    unsigned x = a[i], step = 1;
#pragma ccc if
    if (x & 1) { out[i] = work(x); step = 1 + (a[x & 255] & 3); kept = x; }
    count[i] = out[i];
    if (step == 4 && x & 2) break;
    i += step * gridDim.x * blockDim.x;
  }
  out[1024 + blockIdx.x * blockDim.x + threadIdx.x] = kept;
}

// right: an array that goes through a point
extern "C" __global__ void __launch_bounds__(64) array_across(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], last[8];
    for (int k = 0; k < 8; ++k) last[k] = work(x + k);
#pragma ccc if
    if (x & 1) { out[i] = work(x); last[x >> 3 & 7] = x; }
    count[i] = out[i] + last[x >> 6 & 7];
  }
}

// CCC035: where the next iteration begins depends on the path
extern "C" __global__ void __launch_bounds__(64) next(ARGUMENTS) {
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;) {
    unsigned x = a[i], step = 1;
#pragma ccc if
    if (x & 1) { out[i] = work(x); step = 1 + (out[x & 511] & 3); }
    count[i] = out[i];
    i += step * gridDim.x * blockDim.x;
  }
}

// CCC034: a value of the last iteration is read after the loop
extern "C" __global__ void __launch_bounds__(64) last(ARGUMENTS) {
  unsigned kept = 0;
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) { out[i] = work(x); kept = out[x & 511]; }
    count[i] = out[i];
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = kept;
}

// CCC032: the path may end the marked loop
extern "C" __global__ void __launch_bounds__(64) breaks(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) { out[i] = work(x); if (out[x & 511] & 64) break; }
    count[i] = out[i];
  }
}

// CCC036: lanes of the warp are asked after the point, where they have changed
extern "C" __global__ void __launch_bounds__(64) collective(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) out[i] = work(x);
    count[i] = __popc(__ballot_sync(__activemask(), out[i] & 1));
  }
}

// CCC037: scratch of the thread
extern "C" __global__ void __launch_bounds__(64) scratch(ARGUMENTS) {
  __shared__ unsigned s[64];
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) s[threadIdx.x] = work(x);
    count[i] = s[threadIdx.x];
  }
}

// CCC039: a lock is held across the path
extern "C" __global__ void __launch_bounds__(64) locked(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
    while (atomicCAS(&count[0], 0u, 1u)) {}
#pragma ccc if
    if (x & 1) out[i] = work(x);
    out[i] += 1;
    atomicExch(&count[0], 0u);
  }
}

// CCC039: the same, though the loop that takes the lock gives up after some attempts
extern "C" __global__ void __launch_bounds__(64) locked_trying(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
    bool got = false;
    for (int t = 0; t < 99 && !got; ++t) got = atomicCAS(&count[0], 0u, 1u) == 0;
#pragma ccc if
    if (x & 1) out[i] = work(x);
    if (got) atomicExch(&count[0], 0u);
  }
}

// CCC039: the same, where the result of an atomic decides by control alone how long the loop runs
extern "C" __global__ void __launch_bounds__(64) locked_counting(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], tries = 0;
    bool got = false;
    do {
      if (atomicCAS(&count[0], 0u, 1u) == 0) got = true;
      else out[i] = ++tries;
    } while (!got);
#pragma ccc if
    if (x & 1) out[i] = work(x);
    atomicExch(&count[0], 0u);
  }
}

// right: a lock that a lane takes only if it is free is released after the path
extern "C" __global__ void __launch_bounds__(64) taken_if_free(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
    if (atomicExch(&out[i], 1u) == 0) {
      unsigned y = x;
#pragma ccc if
      if (x & 1) {
        y = work(x);
        atomicAdd(&count[0], y);
      }
      atomicExch(&out[i], 0u);
    }
  }
}

// right: the same with a bit of a word
extern "C" __global__ void __launch_bounds__(64) taken_by_bit(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
    if ((atomicOr(&out[i], 1u) & 1) == 0) {
#pragma ccc if
      if (x & 1) atomicAdd(&count[0], work(x));
      atomicAnd(&out[i], ~1u);
    }
  }
}

// CCC045: a task would hold the lock for which the other lanes wait
extern "C" __global__ void __launch_bounds__(64) locked_inside(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], tries = 0;
    bool done = false;
    while (!done) {
      if (atomicCAS(&count[0], 0u, 1u) == 0) {
#pragma ccc if
        if (x & 1) count[1] += work(x);
        atomicExch(&count[0], 0u);
        done = true;
      } else if (++tries > 9) {
        out[i] = tries;
        tries = 0;
      }
    }
  }
}

// CCC039: a lane waits for what another one stores after its path
extern "C" __global__ void __launch_bounds__(64) published(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i];
    while (x & 2 && __ldcg(&count[x & 1]) == 0) {}
#pragma ccc if
    if (x & 1) out[i] = work(x);
    count[x & 1] = 1;
  }
}

// right: a lock-free update ends by itself
extern "C" __global__ void __launch_bounds__(64) lock_free(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], seen = count[0], was;
    do {
      was = seen;
      seen = atomicCAS(&count[0], was, was + x);
    } while (seen != was);
    unsigned y = x;
#pragma ccc if
    if (x & 1) y = work(x);
    out[i] = y * 3 + x;
  }
}

// right: so does one that stops where there is nothing left to do
extern "C" __global__ void __launch_bounds__(64) least_by_swaps(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], seen = count[1], was, key = ~x;
    do {
      was = seen;
      if (was >= key) break;
      seen = atomicCAS(&count[1], was, key);
    } while (seen != was);
    unsigned y = x;
#pragma ccc if
    if (x & 1) y = work(x);
    out[i] = y * 3 + x;
  }
}

// CCC039: the loop goes on until all tasks have counted
extern "C" __global__ void __launch_bounds__(64) worklist(ARGUMENTS) {
#pragma ccc for
  for (; atomicAdd(&count[0], 0u) < n;) {
    unsigned i = atomicAdd(&count[1], 1u);
    if (i >= n) continue;
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) out[i] = work(x);
    atomicAdd(&count[0], 1u);
  }
}

// CCC036: a path ends the loop by what the loop's own test loads
extern "C" __global__ void __launch_bounds__(64) ended_by_path(ARGUMENTS) {
  int all = gridDim.x * blockDim.x;
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n && out[i] == 0; i += all) {
    unsigned x = a[i];
#pragma ccc if
    if (x & 1) out[i + all] = work(x) | 1;
    count[i] = x;
  }
}

// right: the path holds all of a chain of carries
extern "C" __global__ void __launch_bounds__(64) carries_in_path(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], sum = x, limb;
#pragma ccc if
    if (x & 1) {
      asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(sum) : "r"(x), "r"(x * 77));
      for (int k = 0; k < 5; ++k) {
        asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(limb) : "r"(sum), "r"(x ^ 0xc0000000u));
        sum = sum * 3 + limb;
      }
      out[i] = sum;
    }
    count[i] = out[i] + sum;
  }
}

// CCC122: the path reads the carry flag of an addition before it
extern "C" __global__ void __launch_bounds__(64) carry_into_path(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], low, high;
    asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(low) : "r"(x), "r"(x * 77));
#pragma ccc if
    if (x & 1) {
      asm volatile("addc.u32 %0, %1, 0;" : "=r"(high) : "r"(x * 3));
      out[i] = work(low) + high;
    }
    count[i] = out[i];
  }
}

// CCC122: an addition before the path sets the carry flag that code after it reads
extern "C" __global__ void __launch_bounds__(64) carry_across_path(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], low, high;
    asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(low) : "r"(x), "r"(x * 77));
#pragma ccc if
    if (x & 1) out[i] = work(low);
    asm volatile("addc.u32 %0, %1, 0;" : "=r"(high) : "r"(x * 3));
    count[i] = high;
  }
}

// CCC122: each inner iteration reads the carry flag of the one before
extern "C" __global__ void __launch_bounds__(64) carry_of_limbs(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], limb, limbs = 0;
    asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(limb) : "r"(x), "r"(x * 77));
#pragma ccc while
    for (unsigned k = 0; k < (x & 7); ++k) {
      asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(limb) : "r"(x + k), "r"(x ^ 0xc0000000u));
      limbs = limbs * 3 + limb;
    }
    count[i] = limbs;
  }
}
