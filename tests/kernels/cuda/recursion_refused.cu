// Functions that call themselves in a way that no task can: the call is not the end, or not the only one.

#pragma ccc recursive
__device__ __noinline__ int sum(const int* next, int at, int depth) {
  if (depth > 20 || next[at] < 0) return at;
  return at ^ 5 * sum(next, next[at], depth + 1);
}

#pragma ccc recursive
__device__ __noinline__ int fibonacci(const int* next, int at, int depth) {
  return at < 2 || depth > 5 ? at : fibonacci(next, at - 1, depth + 1) ^ (3 * fibonacci(next, at - 2, depth + 1));
}

__device__ int odd(const int* next, int at, int depth);
#pragma ccc recursive
__device__ __noinline__ int even(const int* next, int at, int depth) {
  return depth > 20 || next[at] < 0 ? at : odd(next, next[at], depth + 1);
}
__device__ __noinline__ int odd(const int* next, int at, int depth) {
  return depth > 20 || next[at] < 0 ? -at : even(next, next[at], depth + 1);
}

// Each call knows a variable of its caller.
#pragma ccc recursive
__device__ __noinline__ int chained(const int* next, int at, int depth, int* outer = nullptr) {
  int mine = at;
  if (outer) *outer += at;
  if (depth < 20 && next[at] >= 0) return chained(next, next[at], depth + 1, &mine);
  return outer ? *outer : 0;
}

#pragma ccc recursive
__device__ __noinline__ int alone(const int* next, int at, int depth) {
  if (depth > 20 || next[at] < 0) return at;
  return alone(next, next[at], depth + 1);
}

#define FOR_EACH _Pragma("ccc for") for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x)
#define KERNEL(name, task)                                                                                  \
  extern "C" __global__ void __launch_bounds__(128) name(const int* __restrict__ next, int* out, int n) {   \
    FOR_EACH out[i] = task(next, i, 0);                                                                     \
  }
KERNEL(sums, sum)
KERNEL(fibonaccis, fibonacci)
KERNEL(evens, even)
KERNEL(chains, chained)

extern "C" __global__ void alones(const int* __restrict__ next, int* out, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) out[i] = alone(next, i, 0);
}
