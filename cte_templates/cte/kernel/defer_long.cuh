// Long tasks spread over the grid: `reduce` runs tasks as `cte::automatic` does, but of one that is longer than `Most` it leaves the
// rest, cut into pieces, to a second kernel, `finish`, which adds them up by atomics. No preprocessing, no host step in between.
#pragma once

#include <cte/kernel/atomics.cuh>
#include <cte/for_each.cuh>

namespace cte::kernel {

/// A piece of a long task.
template <class Index>
struct piece {
    Index task, begin, end;
};

/// Pieces that wait for `finish`: room for `defer_long::capacity` of them. `count` points to two ints, their number and a ticket of
/// `finish`'s own. Both are 0 before the first `reduce`, and again once `finish` has ended.
template <class Index>
struct pieces {
    piece<Index>* list;
    int* count;
};

template <int BlockDim, int Most = 1024>
struct defer_long {
    static_assert(Most >= detail::lanes, "cte::kernel::defer_long: a long task has more than 32 fine tasks");

    /// The strips of warps. What they leave of an SM's cache is worth more here than longer ones would be: the tasks have hubs.
    struct strips {
        static constexpr int per_lane = 4;
        template <int, class T, class...>
        using temp = detail::strip<T, per_lane>;
        static constexpr bool whole_block = false;
    };

    /// The shared memory of a block of `reduce`.
    template <class T>
    using temp = storage_for<BlockDim, strips, T>;

    /// How many pieces `fine` fine tasks can leave at most.
    __host__ __device__ static constexpr long long capacity(long long fine) { return fine / Most * 2 + 1; }

    /// A thread's own result, without what `finish` adds to it, for the task `task` with the indices [begin, end). Called as
    /// `for_each_index` is; the order of a long task's values is not kept.
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

    /// `out[task] = op(out[task], ...)` for all pieces, which a `reduce` that has ended left; `op` is cte::plus, cte::minimum or
    /// cte::maximum. Called by all threads of a grid of one dimension, of any size, in blocks of `BlockDim` threads.
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
    /// The last block that comes here sets the counters back to zero: all threads of all blocks have read them by then.
    __device__ static void forget(int* counters) {
        __syncthreads();
        if (detail::thread_number() != 0) return;
        __threadfence();  // no ticket before the block's reads, no zero before the last ticket
        if (atomicAdd(counters + 1, 1) != static_cast<int>(gridDim.x) - 1) return;
        __threadfence();
        counters[0] = counters[1] = 0;
    }

    /// Cuts what is left of a task into pieces of `Most`, by the whole warp.
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
