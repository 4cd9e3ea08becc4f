// Control flow: jump tables, nested loops, early exits, gotos, loop pragmas, uniform and divergent branches.
__global__ void __launch_bounds__(256, 2) table(int n, const int* op, int* out) {
  int acc = threadIdx.x;
  for (int pc = 0; pc < n; ++pc) {
    switch (op[pc]) {
      case 0: acc += op[pc + 1]; ++pc; break;
      case 1: acc *= 3; break;
      case 2: acc = -acc; break;
      case 3: if (acc > 0) pc = op[pc + 1]; break;
      case 4: out[acc & 63] = acc; break;
      case 5: acc ^= acc >> 3; break;
      case 6: acc = out[acc & 31]; break;
      case 7: acc = __popc(acc); break;
      case 8: return;
      case 9: __threadfence(); break;
      default: acc -= 1;
    }
  }
  out[threadIdx.x] = acc;
}

__global__ void collatz(int n, const unsigned* in, unsigned* out) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = in[i], steps = 0;
    while (x > 1 && steps < 1000) {
      if (x & 1) {
        x = 3 * x + 1;
        if (x > 1u << 30) break;
        if (x % 5 == 0) continue;
      } else {
        x /= 2;
      }
      ++steps;
    }
    out[i] = steps;
  }
}

__global__ void __maxnreg__(64) unrolled(int n, const float* a, float* out) {
  float s[4] = {};
#pragma unroll 4
  for (int i = 0; i < n; ++i) s[i & 3] += a[i];
#pragma unroll 1
  for (int i = 0; i < n; ++i)
    for (int j = i; j < n; j += 2) {
      if (a[i] * a[j] > 3.0f) goto found;
      s[1] += a[j];
    }
  s[2] = -1.0f;
found:
#pragma unroll
  for (int i = 0; i < 8; ++i) s[3] = s[3] * a[i] + s[2];
  out[threadIdx.x] = s[0] + s[1] + s[3];
}

#if __CUDA_ARCH__ >= 900
#define CLUSTER __cluster_dims__(2, 1, 1)
#else
#define CLUSTER
#endif
__global__ void CLUSTER __launch_bounds__(128) early(int n, int* out) {
  if (threadIdx.x >= n) return;
  if (n == 77) __trap();
  if (out[threadIdx.x] == 3) asm volatile("exit;");
  do {
    __nanosleep(100);
  } while (atomicAdd(out, 0) < n);
  __builtin_assume(n > 0);
  out[1] = __builtin_expect(n, 2) ? clock() : (int)clock64();
}

// Bubble sort and a state machine: blocks with several predecessors.
__global__ void sorted(int* a, int n) {
  bool again = true;
  while (again) {
    again = false;
    for (int i = 1; i < n; ++i) {
      if (a[i - 1] <= a[i]) continue;
      int t = a[i];
      a[i] = a[i - 1];
      a[i - 1] = t;
      again = true;
    }
  }
  int state = 0;
  for (int i = 0; i < n; ++i) {
    bool big = a[i] > 10;
    if (state == 0) state = big ? 1 : 2;
    else if (state == 1) state = big ? 1 : a[i] < 0 ? 3 : 0;
    else if (state == 2 && (big || a[i] == 5)) state = 3;
    else if (state == 3) a[i] = 0;
  }
  a[0] = state;
}
