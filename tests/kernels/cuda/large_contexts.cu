// Kernels whose stacks do not fit into shared memory, one a form: a task takes some 80 bytes along, in blocks of 1024
// threads or of any size.

#define ARGUMENTS int n, const unsigned* __restrict__ a, unsigned* out, unsigned* count
#define EACH int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x
#define LOAD \
  unsigned v[18]; \
  _Pragma("unroll") for (int q = 0; q < 18; ++q) v[q] = a[(i * 19 + q * 53) & 1023];

__device__ __forceinline__ unsigned work(const unsigned* v) {
  unsigned x = v[0];
#pragma unroll 1
  for (int q = 0; q < 5; ++q) {
#pragma unroll
    for (int k = 0; k < 18; ++k) x = x * 1664525u + (v[k] ^ (x >> 7));
  }
  return x;
}

// split: the loop ends for all lanes at once, but for one iteration
extern "C" __global__ void __launch_bounds__(1024) even(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    LOAD;
    count[i] = v[1];
#pragma ccc if
    if (v[0] % 3 == 0) out[i] = work(v);
  }
}

// idle lanes: lanes leave in different iterations, by two exits
extern "C" __global__ void __launch_bounds__(1024) exits(ARGUMENTS) {
  int last = n - (a[threadIdx.x & 1023] & 63);
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < last; i += gridDim.x * blockDim.x) {
    LOAD;
    if (a[i & 1023] % 61 == 0) break;
#pragma ccc if
    if (v[0] % 3 == 0) out[i] = work(v);
  }
  count[blockIdx.x * blockDim.x + threadIdx.x] = last;
}

// carried: code after the path reads what the path writes
extern "C" __global__ void __launch_bounds__(1024) carried(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    LOAD;
#pragma ccc if
    if (v[0] & 1) out[i] = work(v);
    count[i] = out[i] * 3 + v[5];
    out[i] += v[6];
  }
}

// owners: tasks give their parts of a sum to their owners, in shared memory
extern "C" __global__ void __launch_bounds__(1024) owners(ARGUMENTS) {
  unsigned sum = 0;
#pragma ccc for reduce(+: sum)
  for (EACH) {
    LOAD;
#pragma ccc if
    if (v[0] % 3 == 0) {
      out[i] = work(v);
      sum += out[i] ^ v[3];
    }
  }
  count[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// inner loop: tasks are remaining inner iterations
extern "C" __global__ void __launch_bounds__(1024) inner(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    LOAD;
#pragma ccc while
    while ((v[0] >> 20) & 7) { v[0] = work(v); v[2] ^= v[0] >> 3; out[i] += v[2]; }
  }
}

// sorted: cases share a join and a stack
extern "C" __global__ void __launch_bounds__(1024) cases(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    LOAD;
#pragma ccc switch
    switch (v[0] & 7) {
      case 0: out[i] = work(v); break;
      case 1: out[i] = work(v) ^ v[3]; break;
      case 2: out[i] = work(v) + v[4] * 3; break;
      case 3: out[i] = work(v) - (v[5] | 1); break;
      case 4: out[i] = work(v) * 7; break;
    }
  }
}

__device__ __noinline__ void callee(ARGUMENTS, int first) {
#pragma ccc for
  for (int i = first; i < n; i += gridDim.x * blockDim.x) {
    LOAD;
#pragma ccc if
    if (v[0] % 3 == 0) out[i] = work(v);
  }
}

// function: it does not know the block size, and its kernels claim for each call
extern "C" __global__ void called(ARGUMENTS) {
  callee(n, a, out, count, blockIdx.x * blockDim.x + threadIdx.x);
  callee(n / 2, a + 7, count, out, blockIdx.x * blockDim.x + threadIdx.x);
}

// repeated: each warp claims and releases again and again
extern "C" __global__ void __launch_bounds__(1024) repeated(ARGUMENTS) {
  for (int round = 0; round < 4; ++round) {
#pragma ccc for
    for (EACH) {
      LOAD;
#pragma ccc if
      if ((v[0] + round) % 3 == 0) out[i] = work(v) + round;
    }
  }
}

// returns: iterations are blocks, whose lanes return where they like
#pragma ccc grid
extern "C" __global__ void __launch_bounds__(1024) blocks(ARGUMENTS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  LOAD;
  count[i] = v[2];
  if (v[1] & 1) return;
#pragma ccc if
  if (v[0] % 3 == 0) out[i] = work(v);
}
