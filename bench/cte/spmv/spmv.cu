// y = A x, A in CSR: a coarse task is a row, a fine task one of its entries. F. Khorasani's thesis, figures 4.16 and 4.20.
//
// ../spmv_double/spmv_double.cu is this file with SPMV_DOUBLE. The kernels end in what the value type is called.
#include <cte.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

#ifdef SPMV_DOUBLE
using Value = double;
#define SPMV_KERNEL(form) spmv_double##form
#else
using Value = float;
#define SPMV_KERNEL(form) spmv_float##form
#endif

constexpr int BLOCK = 256;

__device__ auto product_of(const int* columns, const Value* values, const Value* x) {
  return [=](int i) { return values[i] * __ldg(x + columns[i]); };
}

// A thread past the last row holds an empty task at the end of it, so that the last warp stays whole and scanned.
extern "C" __global__ void __launch_bounds__(BLOCK)
SPMV_KERNEL()(int rows, const int* __restrict__ offsets, const int* __restrict__ columns, const Value* __restrict__ values,
              const Value* __restrict__ x, Value* __restrict__ y) {
  const int row = min(int(blockIdx.x * BLOCK + threadIdx.x), rows);
  const int begin = offsets[row], end = offsets[min(row + 1, rows)];
  const auto product = product_of(columns, values, x);
  const Value dot = cte::for_each_index<BLOCK, cte::scanned, CTE_POLICY>(begin, end, product, cte::plus{}, Value(0));
  if (row < rows) y[row] = dot;
}

// The other forms, a build each. Those with atomics add to y, which has to be 0.
extern "C" __global__ void __launch_bounds__(BLOCK) SPMV_KERNEL(_zero)(int rows, Value* __restrict__ y) {
  const int row = blockIdx.x * BLOCK + threadIdx.x;
  if (row < rows) y[row] = 0;
}

#if defined(CTE_FORM_MERGE_PATH) || defined(CTE_FORM_DEFER_LONG)
// These kernels read an entry once, in whole lines: it need not stay in a cache, where x is read again and again.
__device__ auto streamed_product_of(const int* columns, const Value* values, const Value* x) {
  return [=](int i) { return __ldcs(values + i) * __ldg(x + __ldcs(columns + i)); };
}
#endif

#if defined(CTE_FORM_MERGE_PATH)
#include <cte/kernel/merge_path.cuh>

using MergePath = cte::kernel::merge_path<BLOCK, 5>;
using Carry = cte::kernel::carry<Value, int>;

extern "C" __global__ void __launch_bounds__(BLOCK)
SPMV_KERNEL(_merge_path)(int rows, const int* __restrict__ offsets, const int* __restrict__ columns,
                         const Value* __restrict__ values, const Value* __restrict__ x, Value* __restrict__ y, Carry* carries,
                         const int* __restrict__ partition) {
  __shared__ MergePath::temp<Value> shared;
  const auto put = [=](int row, Value dot) { y[row] = dot; };
  const auto product = streamed_product_of(columns, values, x);
  MergePath::reduce(shared, rows, offsets, product, cte::plus{}, Value(0), put, carries, partition);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 4)
SPMV_KERNEL(_fix_up)(int blocks, const int* __restrict__ offsets, Value* __restrict__ y, const Carry* __restrict__ carries) {
  __shared__ MergePath::fix_up_temp<Value> shared;
  const auto put = [=](int row, Value dot) { y[row] = dot; };
  MergePath::fix_up(shared, blocks, offsets, cte::plus{}, Value(0), put, carries);
}
#elif defined(CTE_FORM_DEFER_LONG)
#include <cte/kernel/defer_long.cuh>

using DeferLong = cte::kernel::defer_long<BLOCK, 512>;
using Piece = cte::kernel::piece<int>;

extern "C" __global__ void __launch_bounds__(BLOCK)
SPMV_KERNEL(_defer_long)(int rows, const int* __restrict__ offsets, const int* __restrict__ columns,
                         const Value* __restrict__ values, const Value* __restrict__ x, Value* __restrict__ y, Piece* pieces,
                         int* counters) {
  __shared__ DeferLong::temp<Value> shared;
  const int row = min(int(blockIdx.x * BLOCK + threadIdx.x), rows);
  // Like entries, offsets and sums only pass through.
  const int begin = __ldcs(offsets + row), end = __ldcs(offsets + min(row + 1, rows));
  const auto product = streamed_product_of(columns, values, x);
  const cte::kernel::pieces<int> rest{pieces, counters};
  const Value dot = DeferLong::reduce<cte::scanned>(shared, row, begin, end, product, cte::plus{}, Value(0), rest);
  if (row < rows) __stcs(y + row, dot);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
SPMV_KERNEL(_finish)(const int* __restrict__ columns, const Value* __restrict__ values, const Value* __restrict__ x,
                     Value* __restrict__ y, Piece* pieces, int* counters) {
  const auto product = streamed_product_of(columns, values, x);
  DeferLong::finish(cte::kernel::pieces<int>{pieces, counters}, product, cte::plus{}, y);
}
#elif defined(CTE_FORM_EDGE_PARALLEL)
#include <cte/kernel/edge_parallel.cuh>

extern "C" __global__ void __launch_bounds__(BLOCK)
SPMV_KERNEL(_edge_parallel)(int entries, const int* __restrict__ owners, const int* __restrict__ columns,
                            const Value* __restrict__ values, const Value* __restrict__ x, Value* __restrict__ y) {
  const auto row_of = [=](int i) { return owners[i]; };
  cte::kernel::edge_parallel<BLOCK>::reduce(entries, row_of, product_of(columns, values, x), cte::plus{}, y);
}

#elif defined(CTE_FORM_VIRTUAL_SPLIT) || defined(CTE_FORM_VIRTUAL_SPLIT_STRIDED)
#include <cte/kernel/virtual_split.cuh>

#ifdef CTE_FORM_VIRTUAL_SPLIT
using Assignment = cte::contiguous;
#else
using Assignment = cte::strided;
#endif

extern "C" __global__ void __launch_bounds__(BLOCK)
SPMV_KERNEL(_virtual_split)(int rows, const int* __restrict__ offsets, const int* __restrict__ first,
                            const int* __restrict__ columns, const Value* __restrict__ values, const Value* __restrict__ x,
                            Value* __restrict__ y) {
  const auto product = product_of(columns, values, x);
  cte::kernel::virtual_split<8>::reduce<Assignment>(rows, offsets, first, product, cte::plus{}, y);
}
#endif
