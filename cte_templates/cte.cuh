/// @file
/// Collaborative Task Engagement: you write a kernel as if each thread ran a task of its own, and all lanes share the work.
///
/// A *coarse task* is what a thread owns, such as a row of a matrix; a *fine task* is one of its iterations, such as an entry.
/// This header has the calls and all policies. Use it if the number of iterations of an inner loop differs between threads. The
/// forms for whole kernels, for tasks that are too long for a warp, have headers of their own: cte/kernel/*.cuh.
///
///     call                  does                                                             described in
///     for_each_index        maps the fine tasks of each thread, reduces the values in order  cte/for_each.cuh
///     for_each              runs a function on them                                          cte/for_each.cuh
///     exclusive_scan        passes to each fine task the reduction of those before it        cte/exclusive_scan.cuh
///     any                   tells whether some fine task has a property                      cte/any.cuh
///     storage, storage_for  shared memory that several calls use in turn                     cte/for_each.cuh, cte/storage.cuh
///
/// @code
/// #include <cte.cuh>
///
/// // One thread for each row of a sparse matrix. Threads past the last row hold an empty task at the end.
/// __global__ void product(int rows, const int* offsets, const int* columns, const float* values, const float* x, float* y) {
///     const int row = min(int(blockIdx.x * 256 + threadIdx.x), rows);
///     const int begin = offsets[row], end = offsets[min(row + 1, rows)];
///     const auto entry = [=](int i) { return values[i] * x[columns[i]]; };
///     const float sum = cte::for_each_index<256, cte::scanned>(begin, end, entry, cte::plus{}, 0.0f);
///     if (row < rows) y[row] = sum;
/// }
/// @endcode
///
/// In this kernel, the default policy `automatic` uses 9696 bytes of shared memory per block and 32 registers per thread
/// (bench/cte_registers.py). Which policy suits which tasks: docs/cte.md. How to write one: cte/policy.cuh.
///
/// The headers need nvcc, C++17, and sm_75 or newer. A snippet without a kernel of its own is the body of a kernel like this one:
/// blocks have 256 threads, `row`, `begin` and `end` are as above, and `levels` and `out` are arrays of `int` and `float`.
#pragma once

#include <cte/any.cuh>
#include <cte/exclusive_scan.cuh>
#include <cte/for_each.cuh>
#include <cte/policies/automatic_block.cuh>
#include <cte/policies/block.cuh>
#include <cte/policies/merge_path.cuh>
#include <cte/policies/thread_warp_block.cuh>
#include <cte/policies/warp.cuh>
#include <cte/policies/warp_chunked.cuh>
#include <cte/policies/warp_segmented.cuh>
#include <cte/version.cuh>
