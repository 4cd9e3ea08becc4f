// Long tasks spread over the grid: the rest of a long task is left, in pieces, to a second kernel.
#pragma once

#include <cte/kernel/atomics.cuh>
#include <cte/for_each.cuh>

namespace cte::kernel {

/// A piece of a long task: the fine tasks [begin, end) of `task`.
template <class Index>
struct piece {
    Index task, begin, end;
};

/// The pieces that wait for `finish`: space for `defer_long::capacity` of them. `count` points to two ints, the number of pieces and
/// a ticket of `finish`'s own. You set both to 0 before the first `reduce`; they are 0 again once `finish` has ended.
template <class Index>
struct pieces {
    piece<Index>* list;
    int* count;
};

/// A form for whole kernels: `reduce` runs tasks much as `cte::automatic` does. Once a warp finds that more than `Most` fine tasks of a
/// task are left, it leaves them to a second kernel, `finish`, which combines them with the results by atomics.
///
/// Use it if a few tasks are each as long as thousands of others together. It needs no preprocessing and no host step in between. The
/// order of a long task's values is not kept.
///
/// @code
/// using form = cte::kernel::defer_long<256>;
/// using pieces = cte::kernel::pieces<int>;
///
/// __global__ void __launch_bounds__(256) row_sums(int rows, const int* offsets, const float* values, float* sums, pieces rest) {
///     __shared__ form::temp<float> shared;
///     const int row = min(int(blockIdx.x * 256 + threadIdx.x), rows);
///     const int begin = offsets[row], end = offsets[min(row + 1, rows)];
///     const auto value = [=](int i) { return values[i]; };
///     const float sum = form::reduce<cte::scanned>(shared, row, begin, end, value, cte::plus{}, 0.0f, rest);
///     if (row < rows) sums[row] = sum;
/// }
///
/// __global__ void __launch_bounds__(256) finish_row_sums(const float* values, float* sums, pieces rest) {
///     form::finish(rest, [=](int i) { return values[i]; }, cte::plus{}, sums);
/// }
/// @endcode
///
/// @tparam BlockDim  threads of the block: a multiple of 32, up to 1024
/// @tparam Most      the largest number of fine tasks of a piece: at least 32
///
/// In the reference kernels (bench/cte_registers.py), `reduce` uses 4096 bytes of shared memory (four values per thread) and
/// 32 registers, `finish` none and 32. In global memory, `list` takes `capacity(fine tasks)` pieces.
template <int BlockDim, int Most = 1024>
struct defer_long {
    static_assert(Most >= detail::lanes, "cte::kernel::defer_long<BlockDim, Most>: Most must be at least 32");

    /// The warps' strips in shared memory. They are short: if some tasks are very long, the cache that short strips leave is worth
    /// more than longer strips.
    struct strips {
        static constexpr int per_lane = 4;
        template <int, class T, class...>
        using temp = detail::strip<T, per_lane>;
        static constexpr bool whole_block = false;
    };

    /// The shared memory of a block of `reduce`. `T` is the type of the values.
    template <class T>
    using temp = storage_for<BlockDim, strips, T>;

    /// The largest number of pieces that `fine` fine tasks can leave.
    __host__ __device__ static constexpr long long capacity(long long fine) { return fine / Most * 2 + 1; }

    /// Reduces a thread's task as `for_each_index` does, except for the pieces that it leaves to `finish`.
    ///
    /// @tparam Layout     `scanned` or `disjoint`
    /// @param shared      shared memory of the block
    /// @param task        the number of this thread's task, which `finish` passes to `out`; any number for an empty task
    /// @param begin, end  the fine tasks of this thread's task, `begin <= end`
    /// @param map         returns the value of a fine task; pass an equivalent function to `finish`
    /// @param op          `cte::plus`, `cte::minimum` or `cte::maximum`
    /// @param init        the first operand, used once
    /// @param rest        where pieces are left
    /// @return            the thread's own result so far, which the caller stores as `out[task]` before `finish` runs
    ///
    /// All lanes of a warp call together; if lanes are missing, nothing is left to `finish`.
    template <class Layout, class T, class Index, class Map, class Op>
    __device__ static T reduce(temp<T>& shared, Index task, Index begin, Index end, Map map, Op op, T init, pieces<Index> rest) {
        using namespace detail;
        check_call<BlockDim, Layout, Index>();
        check_atomic<Op, T>();
        if (!whole_warp() || automatic::has_few(begin, end)) {
            nothing none;
            return one_per_lane::reduce<BlockDim, Layout>(none, begin, end, map, op, init);
        }
        deferral<Index> defer{task, rest};
        auto& own = shared.template as<strip<T, strips::per_lane>>();
        return staged<strips::per_lane, lanes, 1>::template of_whole_warp<BlockDim, Layout>(own, begin, end, map, op, init, defer, [] {});
    }

    /// Combines the pieces with the results: `out[task] = op(out[task], map(i))` for all their fine tasks.
    ///
    /// @param rest  the pieces that `reduce` left; its kernel must have ended
    /// @param map   returns the value of a fine task, as in `reduce`
    /// @param op    as in `reduce`
    /// @param out   the results that `reduce` returned, by task: numbers of 32 or 64 bits
    ///
    /// All threads of a one-dimensional grid call, in blocks of `BlockDim` threads; the grid may have any size.
    template <class Index, class Map, class Op, class T>
    __device__ static void finish(pieces<Index> rest, Map map, Op op, T* out) {
        using namespace detail;
        check_atomic<Op, T>();
        const int count = *rest.count, warps = gridDim.x * (BlockDim / lanes);
        if (count == 0) return;
        forget(rest.count);
        for (int number = blockIdx.x * (BlockDim / lanes) + warp_number(); number < count; number += warps) {
            const piece<Index> mine = rest.list[number];
            Index i = mine.begin + lane_number();
            T sum{};
            if (i < mine.end) sum = map(i);
#pragma unroll 8
            for (i += lanes; i < mine.end; i += lanes) sum = op(sum, static_cast<T>(map(i)));
            __syncwarp();
            const Index length = mine.end - mine.begin;
            sum = reduce_lanes<lanes>(sum, length < lanes ? static_cast<int>(length) : lanes, op);
            if (lane_number() == 0) combine(op, out + mine.task, sum);
        }
    }

   private:
    /// The last block to arrive resets the counters: by then all threads of all blocks have read them.
    __device__ static void forget(int* counters) {
        __syncthreads();
        if (detail::thread_number() != 0) return;
        __threadfence();  // orders the block's reads before its ticket, and the last ticket before the zeros
        if (atomicAdd(counters + 1, 1) != static_cast<int>(gridDim.x) - 1) return;
        __threadfence();
        counters[0] = counters[1] = 0;
    }

    /// Cuts the rest of a task into pieces of `Most`. The whole warp calls.
    template <class Index>
    struct deferral {
        static constexpr int most = Most;
        Index task;
        pieces<Index> rest;

        __device__ void operator()(int owner, Index begin, Index end) const {
            using namespace detail;
            const Index whose = shuffle(task, owner), number = (end - begin + (Most - 1)) / Most;
            int slot = 0;
            if (lane_number() == 0) slot = atomicAdd(rest.count, static_cast<int>(number));
            slot = shuffle(slot, 0);
            for (Index i = lane_number(); i < number; i += lanes) {
                const Index from = begin + i * Most;
                rest.list[slot + i] = piece<Index>{whose, from, end - from < Most ? end : from + Most};
            }
        }
    };
};

}  // namespace cte::kernel
