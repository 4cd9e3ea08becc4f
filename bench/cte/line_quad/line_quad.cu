// Two patterns of task sizes, functions of the lane: 4 * lane (LINE) and lane^2 / 8 (QUAD). Map and reduction take 20
// multiply-adds each. F. Khorasani's thesis, section 4.2.4. With LINE_QUAD_COMMUTATIVE policies know that the reduction
// commutes.
//
// The host gives the patterns as `pattern`: how many fine tasks the lanes below a lane have, 33 numbers; all warps are alike.
#include <cte.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256;
constexpr int FMAS = 20;

__device__ __forceinline__ int first_of(int task, const int* __restrict__ pattern) {
  return task / 32 * __ldg(pattern + 32) + __ldg(pattern + task % 32);
}

// A reduction of 20 multiply-adds has to be associative all the same. So this one is a + b, of whole numbers that are small
// enough (below 2^24) for every sum to be exact, and 19 further multiply-adds that change nothing. `one` and `zero` come from the
// host: no compiler knows that they are 1 and 0, and each multiply-add waits for the one before.
extern "C" __global__ void __launch_bounds__(BLOCK)
line_quad(int tasks, float one, float zero, const int* __restrict__ pattern, float* __restrict__ sums) {
  const int task = blockIdx.x * BLOCK + threadIdx.x;
  const int begin = first_of(min(task, tasks), pattern), end = first_of(min(task + 1, tasks), pattern);
  const auto map = [=](int i, float step) {
    float value = (i ^ i >> 4) & 15;  // other than that of i + 16 and i + 32: nothing is shared when policies unroll
#pragma unroll
    for (int k = 0; k < FMAS; ++k) value = fmaf(value, one, step);
    return value;
  };
  const auto in_order = [=](float a, float b) {
    float sum = fmaf(a, one, b);
#pragma unroll
    for (int k = 1; k < FMAS; ++k) sum = fmaf(sum, one, zero);
    return sum;
  };
#ifdef LINE_QUAD_COMMUTATIVE
  const auto reduce = cte::commutative(in_order);
#else
  const auto& reduce = in_order;
#endif
  const float step = task & 7;
  const float sum = cte::for_each_index<BLOCK, cte::scanned, CTE_POLICY>(begin, end, map, reduce, 0.0f, step);
  if (task < tasks) sums[task] = sum;
}
