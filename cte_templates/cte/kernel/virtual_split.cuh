// Tasks that are split beforehand into virtual ones of at most K fine tasks, with a thread for each. Results by atomics (Tigr: Nodehi
// Sabet, Qiu, Zhao, ASPLOS 2018).
#pragma once

#include <cte/kernel/atomics.cuh>

namespace cte {

/// An assignment for `virtual_split`: a virtual task has neighboring fine tasks.
struct contiguous {};

/// An assignment for `virtual_split`: the virtual tasks of a task take its fine tasks in turn, so that neighboring lanes have
/// neighboring fine tasks.
struct strided {};

namespace kernel {

/// A form for whole kernels: each thread runs one virtual task, at most `K` fine tasks of a task, and combines its result with the task's
/// by an atomic.
///
/// Use it for a graph that many launches traverse, as the table of virtual tasks is built only once. The order of a task's values is not
/// kept: floating-point sums may differ in their last bits from run to run.
///
/// @code
/// using form = cte::kernel::virtual_split<8>;
///
/// // `first` is computed beforehand: the exclusive sum of form::pieces(size of the task), with the total at its end. `sums` holds zeros.
/// __global__ void row_sums(int rows, const int* offsets, const int* first, const float* values, float* sums) {
///     form::reduce<cte::strided>(rows, offsets, first, [=](int i) { return values[i]; }, cte::plus{}, sums);
/// }
/// @endcode
///
/// @tparam K  the largest number of fine tasks of a virtual task
///
/// In the reference kernel (bench/cte_registers.py), `reduce` uses no shared memory and 32 registers.
template <int K>
struct virtual_split {
    static_assert(K >= 1, "cte::kernel::virtual_split<K>: K must be at least 1");

    /// The number of virtual tasks of a task with `size` fine tasks.
    template <class Index>
    __host__ __device__ static constexpr Index pieces(Index size) {
        return size / K + (size % K != 0);
    }

    /// `out[task] = op(out[task], map(i))` for each `i` in [offsets[task], offsets[task + 1]), for all tasks.
    ///
    /// @tparam Assignment  which fine tasks a virtual task has: `cte::contiguous` or `cte::strided`
    /// @param tasks        the number of tasks
    /// @param offsets      where the tasks begin, and where the last one ends: `tasks + 1` numbers
    /// @param first        the first virtual task of each task, and their number at the end: the exclusive sum of `pieces(size)`
    /// @param map          returns the value of a fine task, once for each
    /// @param op           `cte::plus`, `cte::minimum` or `cte::maximum`
    /// @param out          the results by task, with their initial values: numbers of 32 or 64 bits
    ///
    /// All threads of a one-dimensional grid call, in blocks of whole warps. `first[tasks]` threads take one virtual task each;
    /// fewer threads take several.
    template <class Assignment, class Index, class Map, class Op, class T>
    __device__ static void reduce(Index tasks, const Index* __restrict__ offsets, const Index* __restrict__ first, Map map, Op op,
                                  T* out) {
        using namespace detail;
        check_atomic<Op, T>();
        static_assert(std::is_same_v<Assignment, contiguous> || std::is_same_v<Assignment, strided>,
                      "cte::kernel::virtual_split: the assignment must be cte::contiguous or cte::strided");
        const Index total = first[tasks];
        const long long threads = blockDim.x * blockDim.y * blockDim.z;
        const long long stride = gridDim.x * threads;
        for (long long base = blockIdx.x * threads + warp_number() * lanes; base < total; base += stride) {
            const int count = total - base < lanes ? static_cast<int>(total - base) : lanes;
            const int lane = lane_number() < count ? lane_number() : count - 1;
            const Index piece = static_cast<Index>(base + lane);
            const Index task = task_of(piece, static_cast<Index>(base), tasks, first);
            const Index begin = offsets[task], end = offsets[task + 1], part = piece - first[task];
            T sum{};
            if (lane_number() < count) {
                if constexpr (std::is_same_v<Assignment, contiguous>) {
                    const Index from = begin + part * K;
                    sum = of_piece(map, op, from, end - from, Index{1}, sum);
                } else {
                    sum = of_piece(map, op, begin + part, end - begin - part, pieces(end - begin), sum);
                }
            }
            __syncwarp();
            open_run<Index, T> run;
            run.add(task, sum, count, op, out);
            run.close(op, out);
        }
    }

   private:
    /// The task that a virtual task belongs to. The warp searches for that of its first one; each lane gallops on from there.
    template <class Index>
    __device__ static Index task_of(Index piece, Index base, Index tasks, const Index* first) {
        using namespace detail;
        Index low = warp_partition_point(Index{0}, tasks, [=](Index task) { return first[task + 1] <= base; });
        Index high = low;
        for (Index step = 1; high < tasks && first[high + 1] <= piece; step *= 2) {
            low = high + 1;
            high = tasks - high <= step ? tasks : high + step;
        }
        return partition_point(low, high, [=](Index task) { return first[task + 1] <= piece; });
    }

    /// Runs a virtual task: at most K of the indices first, first + stride, ... below first + range. There is at least one.
    template <class Map, class Op, class Index, class T>
    __device__ static T of_piece(Map& map, Op op, Index first, Index range, Index stride, T sum) {
        sum = map(first);
#pragma unroll 4
        for (int k = 1; k < K; ++k) {
            if (k * stride < range) sum = op(sum, static_cast<T>(map(first + k * stride)));
        }
        return sum;
    }
};

}  // namespace kernel
}  // namespace cte
