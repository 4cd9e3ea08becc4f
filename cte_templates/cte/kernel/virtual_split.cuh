// Tasks split beforehand into virtual ones of at most K fine tasks, one for each thread; results by atomics (Tigr: Nodehi Sabet, Qiu,
// Zhao, ASPLOS 2018). The order of a task's values is not kept.
#pragma once

#include <cte/kernel/atomics.cuh>

namespace cte {

/// A virtual task has neighbouring fine tasks.
struct contiguous {};

/// The virtual tasks of a task take its fine tasks in turn, so that neighbouring lanes have neighbouring fine tasks.
struct strided {};

namespace kernel {

template <int K>
struct virtual_split {
    static_assert(K >= 1, "cte::kernel::virtual_split<K>: a virtual task has at least one fine task");

    /// How many virtual tasks a task of `size` fine tasks has. `first`, below, is the exclusive sum of these, with the total at its end.
    template <class Index>
    __host__ __device__ static constexpr Index pieces(Index size) {
        return size / K + (size % K != 0);
    }

    /// `out[task] = op(out[task], map(i))` for i in [offsets[task], offsets[task + 1]) for all tasks; `op` is cte::plus, cte::minimum
    /// or cte::maximum. Called by all threads of a grid of one dimension, of blocks of whole warps; one thread for each of the
    /// first[tasks] virtual tasks, or fewer.
    template <class Assignment, class Index, class Map, class Op, class T>
    __device__ static void reduce(Index tasks, const Index* __restrict__ offsets, const Index* __restrict__ first, Map map, Op op,
                                  T* out) {
        using namespace detail;
        check_atomic<Op, T>();
        static_assert(std::is_same_v<Assignment, contiguous> || std::is_same_v<Assignment, strided>,
                      "cte::kernel::virtual_split: fine tasks are assigned cte::contiguous or cte::strided");
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
    /// The task that a virtual one belongs to: the warp searches that of its first, and each lane gallops on from there.
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

    /// A virtual task: at most K of the indices first, first + stride, ..., of which the last is below first + range (at least one is).
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
