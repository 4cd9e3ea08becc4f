// Kernels of which no task may move to another lane, so that lanes wait for each other instead, and kernels for which
// that is refused too. Above each kernel is its answer: `right`, or the code of the first rule that it breaks.

#define ARGUMENTS unsigned n, const unsigned* a, unsigned* out, unsigned* count
#define EACH unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x

__device__ __forceinline__ unsigned work(unsigned x) {
#pragma unroll 1
  for (int k = 0; k < 9; ++k) x = x * 1664525u + 1013904223u;
  return x;
}

__device__ __noinline__ unsigned steps(unsigned x) {
  unsigned t = 0;
  while (x > 1) x = x & 1 ? x / 3 : x / 2, ++t;
  return t;
}

__device__ __noinline__ void lock(unsigned* word) {
  while (atomicCAS(word, 0u, 1u)) {}
}

__device__ __noinline__ void show(volatile unsigned* seen, unsigned x) { *seen = x; }

__device__ __noinline__ unsigned swapped(unsigned* s, unsigned x) {
  s[threadIdx.x] = x;
  return s[threadIdx.x ^ 1];
}

__device__ __noinline__ unsigned loaded(const unsigned* s, unsigned x) { return x & 2 ? s[x & 63] : x; }

__device__ __noinline__ unsigned told(unsigned x, unsigned* count) { return atomicAdd(count, x) & 1; }

// right: a state that iterations hand on, and an array of the lane
extern "C" __global__ void __launch_bounds__(64) state(ARGUMENTS) {
  unsigned seed = threadIdx.x, seen[8] = {};
#pragma ccc for
  for (EACH) {
    unsigned m = a[i & 1023] % 23;
#pragma ccc while
    while (m) {
      seed = seed * 1664525u + 1013904223u;
      seen[seed >> 29] += m;
      m -= 1 + (seed >> 31 && m > 1);
    }
    out[i] = seed + seen[i & 7];
  }
}

// right: two loops, one after the other, which all lanes enter
extern "C" __global__ void __launch_bounds__(64) one_after_another(ARGUMENTS) {
  unsigned kept = threadIdx.x, first = blockIdx.x * blockDim.x + threadIdx.x, i = first;
#pragma ccc for
  do {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) kept = work(x + kept);
    out[i] = x + kept;
  } while ((i += gridDim.x * blockDim.x) < n);
  i = first;
#pragma ccc for
  do {
    unsigned x = a[i & 1023] >> 3;
#pragma ccc if
    if (x & 1) kept = work(x + kept);
    out[i] ^= kept;
  } while ((i += gridDim.x * blockDim.x) < n);
}

// right: the last value, three ways out of the loop, and a return
extern "C" __global__ void __launch_bounds__(64) leaves(ARGUMENTS) {
  unsigned kept = 0, at = blockIdx.x * blockDim.x + threadIdx.x;
#pragma ccc for
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) {
      kept = work(x + kept);
      if ((kept & 63) == 5) { out[i] = 7; return; }
    }
    if (kept % 41 == 3) break;
    out[i] = kept;
  }
  if (at < 1024) count[at] = kept;
}

// right: two loops, one after the other, and a path in the second
extern "C" __global__ void __launch_bounds__(64) loops(ARGUMENTS) {
  unsigned sum = 0;
#pragma ccc for
  for (EACH) {
    unsigned x = a[i & 1023], y = x >> 8;
#pragma ccc for variable
    for (unsigned k = x & 7; k; --k) sum = work(sum + k);
#pragma ccc while
    while (y) {
#pragma ccc if
      if ((y ^ sum) & 1) sum += work(y);
      y >>= 3;
    }
    out[i] = sum;
  }
}

// right: lanes vote every four inner iterations, but not in the second loop
extern "C" __global__ void __launch_bounds__(64) chunks(ARGUMENTS) {
  unsigned sum = 0;
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023], m = x % 13;
#pragma ccc for variable chunk(4)
    for (unsigned k = 0; k < m; ++k) sum = work(sum + k);
#pragma ccc while chunk(3)
    while (x > 1) {
#pragma ccc if
      if (x & 4) sum += work(x);
      x >>= 4;
    }
    out[i] = sum;
  }
}

// right: a path and a loop in another loop are so short that lanes run them in place
extern "C" __global__ void __launch_bounds__(64) short_ones(ARGUMENTS) {
  unsigned sum = 0;
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc while
    while (x > 1) {
      sum = work(sum + x);
#pragma ccc if
      if (x & 1) sum ^= x;
#pragma ccc while
      while (sum & 1) sum >>= 1;
      x >>= 2;
    }
    out[i] = sum;
  }
}

// right: so much follows the inner loop that lanes wait for others before it, and a path ends some chunks early
extern "C" __global__ void __launch_bounds__(64) much_after(ARGUMENTS) {
  unsigned sum = 0;
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023], m = x % 13;
#pragma ccc while
    while (m > 0) {
      m--;
      x = x * 3 + 1;
#pragma ccc if
      if ((x & 7) == 0) sum = work(sum + x);
      x ^= m;
    }
    sum = work(work(sum) ^ work(x)) + work(sum ^ m);
    out[i] = sum;
  }
}

__device__ __forceinline__ unsigned stirred(unsigned x) {
#pragma unroll
  for (int k = 0; k < 7; ++k) x = (x * 1664525u + 1013904223u) ^ x >> 3;
  return x;
}

// right: a path of two visits' cost is run in place where it is in an inner loop, for lanes would come back to that
extern "C" __global__ void __launch_bounds__(64) paths_of_two_visits(ARGUMENTS) {
  unsigned sum = 0;
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023], m = x % 13;
#pragma ccc while
    while (m > 0) {
      m--;
#pragma ccc if
      if (x & 1) sum = stirred(sum + x);
      x = x * 3 + m;
    }
#pragma ccc if
    if (sum & 1) sum = stirred(sum ^ x);
    out[i] = sum;
  }
}

// right: so much is run before the inner loops that lanes begin their iterations together, and wait for nothing but that
extern "C" __global__ void __launch_bounds__(64) begun_together(ARGUMENTS) {
  unsigned seed = threadIdx.x;
#pragma ccc for
  for (EACH) {
    unsigned x = work(work(work(a[i & 1023])));
#pragma ccc while
    while (x & 31) {
      seed = seed * 1664525u + 1013904223u + x;
#pragma ccc while
      while (seed & 3) seed = work(seed >> 1);
      x >>= 1;
    }
    out[i] = seed;
  }
}

// right: in the second loop much is run between two votes, so that its tasks move
extern "C" __global__ void __launch_bounds__(64) then_moving(ARGUMENTS) {
  unsigned seed = threadIdx.x;
#pragma ccc for
  for (EACH) {
    unsigned m = a[i & 1023] & 7;
#pragma ccc while
    while (m--) seed = work(seed + m);
    out[i] = seed;
  }
#pragma ccc for
  for (EACH) {
    unsigned x = out[i];
#pragma ccc if
    if (x & 1) {
      for (unsigned k = 0; k < (x & 15); ++k) x = work(work(work(work(work(work(work(x)))))));
      out[i] = x;
    }
    out[i] ^= 5;
  }
}

// right: some lanes are not there from the beginning
extern "C" __global__ void __launch_bounds__(64) partial(ARGUMENTS) {
  unsigned sum = 0;
  if (threadIdx.x % 3 == 0) return;
#pragma ccc for
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += 1 + (sum & 63)) {
    unsigned x = a[i & 1023] & 15;
#pragma ccc while
    while (x) sum += work(x--);
  }
  out[threadIdx.x + blockIdx.x * blockDim.x] = sum;
}

// right: calls, an inner loop that is not marked, and inner iterations that jump about
extern "C" __global__ void __launch_bounds__(64) calls(ARGUMENTS) {
  unsigned sum = 0;
#pragma ccc for
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc for variable
    for (unsigned k = 0; k < (x & 15); ++k) {
      for (unsigned j = k; j < 5; ++j) sum ^= work(j + x);
      if (sum & 8) continue;
      sum += steps(x >> 20);
      if ((sum & 31) == 9) break;
    }
    out[i] = sum;
  }
}

// right: each iteration claims the next number
extern "C" __global__ void __launch_bounds__(64) claims(ARGUMENTS) {
  unsigned i;
#pragma ccc for
  while ((i = atomicAdd(&count[0], 1u)) < n) {
    unsigned x = a[i & 1023] & 15, sum = 0;
#pragma ccc while
    while (x) sum += work(x--);
    out[i] = sum;
  }
}

// right: a lock-free update, and a search that a count ends
extern "C" __global__ void __launch_bounds__(64) updates(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i & 1023], old = count[x & 15], expected;
#pragma ccc if
    if (x & 1) {
      do {
        expected = old;
        old = atomicCAS(&count[x & 15], expected, max(expected, work(x)));
      } while (old != expected);
    }
    for (int k = 0; k < 3; ++k)
      if (atomicMax(&count[16 + k], x) > ~0u - 2) break;
  }
}

// right: shared memory that the loop only reads
extern "C" __global__ void __launch_bounds__(64) reads(ARGUMENTS) {
  __shared__ unsigned s[64];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  unsigned sum = 0;
#pragma ccc for
  for (EACH) {
    unsigned x = s[(i + sum) & 63] & 15;
#pragma ccc while
    while (x) sum += work(x--);
    out[i] = sum;
  }
  __syncthreads();
  s[threadIdx.x] = sum;
}

// right: the user says that no lane reads what another one writes
extern "C" __global__ void __launch_bounds__(64) vouched(ARGUMENTS) {
  __shared__ unsigned s[64];
  s[threadIdx.x] = 0;
#pragma ccc for independent inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) s[threadIdx.x] += work(x);
    out[i] = s[threadIdx.x];
  }
}

// CCC038: a barrier
extern "C" __global__ void __launch_bounds__(64) barrier(ARGUMENTS) {
#pragma ccc for inlane
  for (unsigned i = 0; i < 5; ++i) {
    unsigned x = a[threadIdx.x + i];
#pragma ccc if
    if (x & 1) out[i * 64 + threadIdx.x] = work(x);
    __syncthreads();
  }
}

// CCC040: the lanes that are there
extern "C" __global__ void __launch_bounds__(64) active(ARGUMENTS) {
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) out[i] = work(x);
    count[i & 1023] = __popc(__activemask());
  }
}

// CCC040: the time
extern "C" __global__ void __launch_bounds__(64) clocks(ARGUMENTS) {
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
    long long begun = clock64();
#pragma ccc if
    if (x & 1) out[i] = work(x);
    count[i & 1023] = clock64() - begun;
  }
}

// CCC041: an unseen callee
extern "C" __global__ void __launch_bounds__(64) unseen(ARGUMENTS, unsigned (*f)(unsigned)) {
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) out[i] = f(x);
  }
}

// CCC039: a lock
extern "C" __global__ void __launch_bounds__(64) locked(ARGUMENTS) {
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) {
      while (atomicCAS(&count[0], 0u, 1u)) {}
      out[0] += x;
      atomicExch(&count[0], 0u);
    }
  }
}

// CCC039: a lock that is asked for by a flag
extern "C" __global__ void __launch_bounds__(64) asked(ARGUMENTS) {
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) {
      bool done = false;
      while (!done) {
        if (atomicExch(&count[0], 1u) == 0) {
          out[0] += x;
          __threadfence();
          atomicExch(&count[0], 0u);
          done = true;
        }
        if (x == 3) out[1] = done;
      }
    }
  }
}

// CCC039: another thread sets a flag
extern "C" __global__ void __launch_bounds__(64) polls(ARGUMENTS) {
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) out[i] = work(x);
    while (*(volatile unsigned*)&count[i & 7] == 5) {}
  }
}

// CCC039: another thread sets a flag, which is asked for past the nearest cache
extern "C" __global__ void __launch_bounds__(64) past_cache(ARGUMENTS) {
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) out[i] = work(x);
    while (__ldcg(&count[(i + x) & 7]) == 5) ++x;
  }
}

// CCC039: another thread sets a flag, which is loaded each time
extern "C" __global__ void __launch_bounds__(64) loads(ARGUMENTS) {
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023], flag = 5;
#pragma ccc if
    if (x & 1) out[i] = work(x);
    while (flag == 5) asm volatile("ld.global.u32 %0, [%1];" : "=r"(flag) : "l"(&count[i & 7]));
  }
}

// CCC039: the marked loop itself goes on until others have counted
extern "C" __global__ void __launch_bounds__(64) worklist(ARGUMENTS) {
#pragma ccc for inlane
  for (; atomicAdd(&count[0], 0u) < n;) {
    unsigned i = atomicAdd(&count[1], 1u);
    if (i >= n) continue;
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) out[i] = work(x);
    atomicAdd(&count[0], 1u);
  }
}

// CCC039: a callee tells when it ends
extern "C" __global__ void __launch_bounds__(64) asks(ARGUMENTS) {
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc while
    while (told(x, count)) out[i] += 1;
  }
}

// CCC039: a lock that a callee waits for
extern "C" __global__ void __launch_bounds__(64) locked_by_callee(ARGUMENTS) {
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
    lock(&count[0]);
#pragma ccc if
    if (x & 1) out[0] += work(x);
    out[1] += x;
    __threadfence();
    atomicExch(&count[0], 0u);
  }
}

// CCC039: what another thread counts backwards
extern "C" __global__ void __launch_bounds__(64) returned(ARGUMENTS) {
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) out[i] = work(x);
    while (atomicAdd(&count[0], 1u) >= n) {}
  }
}

// CCC109: what a lane beside this one has written
extern "C" __global__ void __launch_bounds__(64) beside(ARGUMENTS) {
  __shared__ unsigned s[64];
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) s[threadIdx.x] = work(x);
    out[i] = s[threadIdx.x ^ 1];
  }
}

// CCC109: volatile memory
extern "C" __global__ void __launch_bounds__(64) shown(ARGUMENTS) {
  volatile unsigned* seen = count;
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) seen[threadIdx.x] = work(x);
    out[i] = seen[threadIdx.x ^ 1];
  }
}

// CCC109: volatile memory that a callee stores to
extern "C" __global__ void __launch_bounds__(64) shown_by_callee(ARGUMENTS) {
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) x = work(x);
    show(&count[threadIdx.x], x);
    out[i] = count[threadIdx.x ^ 1];
  }
}

// CCC109: a callee stores to shared memory
extern "C" __global__ void __launch_bounds__(64) swapped_by_callee(ARGUMENTS) {
  __shared__ unsigned s[64];
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) x = work(x);
    out[i] = swapped(s, x);
  }
}

// CCC109: a callee loads what a lane beside this one has written to shared memory
extern "C" __global__ void __launch_bounds__(64) beside_by_callee(ARGUMENTS) {
  __shared__ unsigned s[64];
#pragma ccc for inlane
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 1) x = work(x);
    s[threadIdx.x] = x;
    out[i] = loaded(s, x);
  }
}
