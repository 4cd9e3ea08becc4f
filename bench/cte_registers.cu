// The reference kernels of bench/cte_registers.py: rows of a matrix in CSR format, floats, 32-bit indices, blocks of 256 threads.
//
// A kernel is called as its call, two underscores and the policy; one of a form for whole kernels as the form and its function.
#include <cte.cuh>
#include <cte/kernel/defer_long.cuh>
#include <cte/kernel/edge_parallel.cuh>
#include <cte/kernel/merge_path.cuh>
#include <cte/kernel/virtual_split.cuh>

constexpr int BLOCK = 256;

struct Csr {
  int rows;
  const int* __restrict__ offsets;
  const int* __restrict__ columns;
  const float* __restrict__ values;
  const float* __restrict__ x;

  __device__ auto product() const {
    return [columns = columns, values = values, x = x](int i) { return values[i] * x[columns[i]]; };
  }
};

// A thread past the last row holds an empty task at the end.
struct Row {
  int number, begin, end;
  __device__ explicit Row(const Csr& matrix) : number(min(int(blockIdx.x * BLOCK + threadIdx.x), matrix.rows)) {
    begin = matrix.offsets[number];
    end = matrix.offsets[min(number + 1, matrix.rows)];
  }
};

#define KERNEL(NAME) extern "C" __global__ void __launch_bounds__(BLOCK) NAME

#define CALLS(NAME, ...)                                                                                             \
  KERNEL(for_each_index__##NAME)(Csr matrix, float* __restrict__ y) {                                                \
    const Row row(matrix);                                                                                           \
    const float sum = cte::for_each_index<BLOCK, cte::scanned, __VA_ARGS__>(row.begin, row.end, matrix.product(),    \
                                                                            cte::plus{}, 0.0f);                      \
    if (row.number < matrix.rows) y[row.number] = sum;                                                               \
  }                                                                                                                  \
  KERNEL(for_each__##NAME)(Csr matrix, const int* vertices, const int* weights, int* distances) {                    \
    const int vertex = vertices[blockIdx.x * BLOCK + threadIdx.x];                                                   \
    const auto relax = [=](int i, int distance) { atomicMin(distances + matrix.columns[i], distance + weights[i]); }; \
    cte::for_each<BLOCK, cte::disjoint, __VA_ARGS__>(matrix.offsets[vertex], matrix.offsets[vertex + 1], relax,      \
                                                     distances[vertex]);                                             \
  }

#define SEARCHES(NAME, ...)                                                                                        \
  KERNEL(exclusive_scan__##NAME)(Csr matrix, float* __restrict__ sums) {                                           \
    const Row row(matrix);                                                                                         \
    const auto put = [=](int i, float ahead) { sums[i] = ahead; };                                                 \
    cte::exclusive_scan<BLOCK, cte::scanned, __VA_ARGS__>(row.begin, row.end, matrix.product(), cte::plus{}, 0.0f, \
                                                          put);                                                    \
  }                                                                                                                \
  KERNEL(any__##NAME)(Csr matrix, bool* __restrict__ negative) {                                                   \
    const Row row(matrix);                                                                                         \
    const auto below_zero = [values = matrix.values](int i) { return values[i] < 0; };                             \
    const bool found = cte::any<BLOCK, cte::scanned, __VA_ARGS__>(row.begin, row.end, below_zero);                 \
    if (row.number < matrix.rows) negative[row.number] = found;                                                    \
  }

#define ALL(NAME, ...)     \
  CALLS(NAME, __VA_ARGS__) \
  SEARCHES(NAME, __VA_ARGS__)

ALL(one_per_lane, cte::one_per_lane)
ALL(sub_warp_2, cte::sub_warp<2>)
ALL(sub_warp_4, cte::sub_warp<4>)
ALL(sub_warp_8, cte::sub_warp<8>)
ALL(sub_warp_16, cte::sub_warp<16>)
ALL(sub_warp_32, cte::sub_warp<32>)
ALL(warp, cte::warp)
CALLS(warp_segmented, cte::warp_segmented)
CALLS(warp_staged, cte::warp_staged)
CALLS(warp_chunked, cte::warp_chunked)
ALL(thread_warp_block, cte::thread_warp_block)
CALLS(block, cte::block)
CALLS(merge_path, cte::merge_path)
ALL(automatic, cte::automatic)
CALLS(automatic_block, cte::automatic_block)

using MergePath = cte::kernel::merge_path<BLOCK>;
using Carry = cte::kernel::carry<float, int>;
using DeferLong = cte::kernel::defer_long<BLOCK>;
using Pieces = cte::kernel::pieces<int>;

KERNEL(merge_path_reduce)(Csr matrix, float* __restrict__ y, Carry* __restrict__ carries) {
  __shared__ MergePath::temp<float> shared;
  const auto put = [=](int row, float sum) { y[row] = sum; };
  MergePath::reduce(shared, matrix.rows, matrix.offsets, matrix.product(), cte::plus{}, 0.0f, put, carries);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 4)
merge_path_fix_up(int blocks, const int* __restrict__ offsets, float* __restrict__ y, const Carry* __restrict__ carries) {
  __shared__ MergePath::fix_up_temp<float> shared;
  const auto put = [=](int row, float sum) { y[row] = sum; };
  MergePath::fix_up(shared, blocks, offsets, cte::plus{}, 0.0f, put, carries);
}

KERNEL(merge_path_divide)(int rows, const int* __restrict__ offsets, int* __restrict__ partition) {
  MergePath::divide(rows, offsets, partition);
}

KERNEL(edge_parallel_reduce)(int entries, const int* __restrict__ rows, Csr matrix, float* __restrict__ y) {
  const auto row_of = [=](int i) { return rows[i]; };
  cte::kernel::edge_parallel<BLOCK>::reduce(entries, row_of, matrix.product(), cte::plus{}, y);
}

KERNEL(virtual_split_reduce)(Csr matrix, const int* __restrict__ first, float* __restrict__ y) {
  cte::kernel::virtual_split<8>::reduce<cte::contiguous>(matrix.rows, matrix.offsets, first, matrix.product(), cte::plus{}, y);
}

KERNEL(defer_long_reduce)(Csr matrix, float* __restrict__ y, Pieces rest) {
  __shared__ DeferLong::temp<float> shared;
  const Row row(matrix);
  const float sum = DeferLong::reduce<cte::scanned>(shared, row.number, row.begin, row.end, matrix.product(), cte::plus{}, 0.0f,
                                                    rest);
  if (row.number < matrix.rows) y[row.number] = sum;
}

KERNEL(defer_long_finish)(Csr matrix, float* __restrict__ y, Pieces rest) {
  DeferLong::finish(rest, matrix.product(), cte::plus{}, y);
}
