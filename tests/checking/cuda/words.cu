// Kernels whose annotations are true or false: lines of a conflict say so.
#define KERNEL extern "C" __global__ void __launch_bounds__(64)
#define ARGUMENTS int n, const unsigned *__restrict__ in, unsigned *__restrict__ out

// Scratch of the thread in shared memory, the slot found in data.
KERNEL scratch(ARGUMENTS) {
  __shared__ unsigned bins[4 * 64];
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += 64) {
#pragma ccc if
    if (in[i] & 1) {
      unsigned z = 0;
      for (int q = 0; q < 6; ++q)
        bins[(in[i] >> (2 * q + 4) & 3) * 64 + threadIdx.x] = q + i;  // conflict
      for (int q = 0; q < 6; ++q) z = z * 1664525u + bins[(in[i] >> (2 * q + 4) & 3) * 64 + threadIdx.x];
      out[i] = z;
    }
  }
}

// Counters of the thread.
KERNEL counters(ARGUMENTS) {
#pragma ccc for
  for (int it = 0; it < n / 64; ++it) {
#pragma ccc if
    if (in[it * 64 + threadIdx.x] & 1) out[threadIdx.x * 4 + (it & 3)]++;  // conflict
  }
}

// The same counters where a thread is the iteration.
#pragma ccc grid block(64)
KERNEL counters_of_threads(ARGUMENTS) {
  int it = 0;
#pragma ccc while
  while (it < n / 64) {
#pragma ccc if
    if (in[it * 64 + threadIdx.x] & 1) out[threadIdx.x * 4 + (it & 3)]++;
    ++it;
  }
}

// Inner iterations that hand something on through memory.
KERNEL chain(ARGUMENTS) {
#pragma ccc for
  for (int i = threadIdx.x; i < n / 8; i += 64) {
    int last = 8 * i + (in[i] & 7);
#pragma ccc for variable
    for (int k = 8 * i; k < last; ++k) {
      unsigned before = out[k];     // conflict
      out[k + 1] = before + in[k];  // conflict
    }
  }
}

// The same in a loop that keeps its order.
KERNEL chain_in_order(ARGUMENTS) {
#pragma ccc for
  for (int i = threadIdx.x; i < n / 8; i += 64) {
    int k = 8 * i, last = k + (in[i] & 7);
#pragma ccc while
    while (k < last) {
      out[k + 1] = out[k] + in[k];
      ++k;
    }
  }
}

// An array of the thread that lives on, and one that does not.
KERNEL histogram(ARGUMENTS) {
  unsigned bins[4] = {0, 0, 0, 0};
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += 64) {
#pragma ccc if
    if (in[i] & 1) bins[in[i] >> 4 & 3] += i;  // conflict
  }
  out[threadIdx.x] = bins[0] + 3 * bins[in[0] & 3];
}

KERNEL digits(ARGUMENTS) {
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += 64) {
#pragma ccc if
    if (in[i] & 1) {
      unsigned bins[4] = {0, 0, 0, 0};
      for (int q = 0; q < 6; ++q) bins[in[i] >> (2 * q + 4) & 3] += q;
      out[i] = bins[0] + 3 * bins[in[i] >> 7 & 3];
    }
  }
}

// Atomics: the line is that of the call, not of the toolkit's header.
KERNEL tickets(ARGUMENTS) {
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += 64) {
#pragma ccc if
    if (in[i] & 1) {
      unsigned before = *(unsigned *)&out[0];  // conflict
      out[i + 1] = before;
      atomicAdd(&out[0], 1);  // conflict
    }
  }
}

KERNEL sums(ARGUMENTS) {
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += 64) {
#pragma ccc if
    if (in[i] & 1) atomicAdd(&out[in[i] >> 4 & 3], i);
  }
}

// A way out of the loop past its end, in a function that is inlined.
__device__ __forceinline__ unsigned first_large(int n, const unsigned *__restrict__ in, unsigned *__restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += 64) {
    if (in[i] > 0xf0000000u) return in[i];
#pragma ccc if
    if (in[i] & 1) out[64 + i] = in[i];
  }
  return 0;
}

KERNEL ends_early(ARGUMENTS) {
  unsigned found = first_large(n, in, out);
  out[threadIdx.x & 7] = found;
}
