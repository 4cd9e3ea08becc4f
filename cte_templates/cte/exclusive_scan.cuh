// `exclusive_scan` passes to each fine task the reduction of the fine tasks before it in its coarse task.
#pragma once

#include <cte/expansion.cuh>
#include <cte/for_each.cuh>
#include <cte/policies/thread_warp_block.cuh>
#include <cte/policies/warp.cuh>

namespace cte {
namespace detail {

/// An inclusive scan in each group of `width` lanes: the reduction of the lanes `head` to `rank`, in order.
template <int width, class T, class Op>
__device__ T scan_lanes(T value, int rank, int head, Op& op, unsigned mask = full_warp) {
#pragma unroll
    for (int distance = 1; distance < width; distance *= 2) {
        const T below = shuffle_up<width>(value, distance, mask);
        if (rank - distance >= head) value = op(below, value);
    }
    return value;
}

/// The lanes of a group scan a task together. All of them return its reduction.
template <int Width, class T, class Index, class Map, class Op, class Write, class... D>
__device__ T scan_by_group(Index first, Index last, Map& map, Op& op, T total, Write& write, const D&... descriptors) {
    const int rank = lane_number() % Width;
    const unsigned group = group_mask<Width>();
    using count = std::make_unsigned_t<Index>;
    count from = static_cast<count>(first);
    for (count left = size_of(first, last); left != 0; from += Width) {
        const bool busy = left > rank;
        const Index index = static_cast<Index>(from + rank);
        T value = total;  // never read in lanes past the end
        if (busy) value = map(index, descriptors...);
        __syncwarp(group);
        value = scan_lanes<Width>(value, rank, 0, op, group);
        const T preceding = shuffle_up<Width>(value, 1, group);
        if (busy) write(index, rank == 0 ? total : op(total, preceding), descriptors...);
        __syncwarp(group);
        const int some = left < Width ? static_cast<int>(left) : Width;
        total = op(total, shuffle(value, lane_number() - rank + some - 1, group));
        left -= some;
    }
    __syncwarp();
    return total;
}

/// The block scans a task; `sums` is memory for a value of each warp. All threads return its reduction.
template <int BlockDim, class T, class Index, class Map, class Op, class Write, class... D>
__device__ T scan_by_block(values_of<T, BlockDim / lanes>& sums, Index first, Index last, Map& map, Op& op, T total, Write& write,
                           const D&... descriptors) {
    const int thread = thread_number(), lane = lane_number(), warp = warp_number();
    using count = std::make_unsigned_t<Index>;
    count from = static_cast<count>(first);
    for (count left = size_of(first, last); left != 0; from += BlockDim) {
        const int some = left < BlockDim ? static_cast<int>(left) : BlockDim;
        const bool busy = thread < some;
        const Index index = static_cast<Index>(from + thread);
        T value = total;  // never read in threads past the end
        if (busy) value = map(index, descriptors...);
        __syncwarp();
        value = scan_lanes<lanes>(value, lane, 0, op);
        const T below = shuffle_up(value, 1);
        if (busy && (lane == lanes - 1 || thread == some - 1)) sums[warp] = value;
        __syncthreads();
        T preceding = total;  // before this warp
        for (int other = 0; other * lanes < some; ++other) {
            if (other == warp) preceding = total;
            total = op(total, sums[other]);
        }
        if (busy) write(index, lane == 0 ? preceding : op(preceding, below), descriptors...);
        __syncthreads();
        left -= some;
    }
    return total;
}

/// How a policy scans.
template <class Policy>
struct scan {
    template <int BlockDim, class Layout, class T, class Index, class Map, class Op, class Write, class... D>
    __device__ static T run(Index, Index, Map&, Op&, const T& init, Write&, const D&...) {
        static_assert(no_type<Policy>, "cte::exclusive_scan runs with one_per_lane, sub_warp<Width>, warp, thread_warp_block or automatic");
        return init;
    }
};

template <>
struct scan<one_per_lane> {
    template <int BlockDim, class Layout, class T, class Index, class Map, class Op, class Write, class... D>
    __device__ static T run(Index begin, Index end, Map& map, Op& op, T total, Write& write, const D&... descriptors) {
        for (Index i = begin; i < end; ++i) {
            const T value = map(i, descriptors...);
            write(i, total, descriptors...);
            total = op(total, value);
        }
        return total;
    }
};

template <int Width>
struct scan<sub_warp<Width>> {
    template <int BlockDim, class Layout, class T, class Index, class Map, class Op, class Write, class... D>
    __device__ static T run(Index begin, Index end, Map& map, Op& op, T init, Write& write, const D&... descriptors) {
        if (!whole_warp()) return scan<one_per_lane>::run<BlockDim, Layout>(begin, end, map, op, init, write, descriptors...);
        constexpr int groups = lanes / Width;
        const int lane = lane_number();
        T result = init;
#pragma unroll 1
        for (int round = 0; round < Width; ++round) {
            const int owner = round * groups + lane / Width;
            const T total = scan_by_group<Width>(shuffle(begin, owner), shuffle(end, owner), map, op, shuffle(init, owner), write,
                                     shuffle(descriptors, owner)...);
            const T found = shuffle(total, lane % groups * Width);
            if (lane / groups == round) result = found;
        }
        return result;
    }
};

template <>
struct scan<warp> {
    template <int BlockDim, class Layout, class T, class Index, class Map, class Op, class Write, class... D>
    __device__ static T run(Index begin, Index end, Map& map, Op& op, T total, Write& write, const D&... descriptors) {
        using list = listing<Layout, Index>;
        if (!whole_warp()) return scan<one_per_lane>::run<BlockDim, Layout>(begin, end, map, op, total, write, descriptors...);
        if (list::overflows(begin, end)) {
            return scan<sub_warp<lanes>>::template run<BlockDim, Layout>(begin, end, map, op, total, write, descriptors...);
        }
        expansion<Layout, Index> tasks(begin, end);
        const int lane = lane_number();
        for (auto from = tasks.mine.start; from < tasks.mine.stop; from = tasks.mine.next(from, lanes)) {
            const auto member = tasks.member_at(from);
            const Index index = tasks.index_at(from + lane, member.rank);
            const bool busy = list::between(from, tasks.mine.stop) > lane;
            const T carried = shuffle(total, tasks.owner_of(member.rank));
            T value = carried;  // never read in lanes past the end
            const auto run = [&](const D&... theirs) {
                if (busy) value = map(index, theirs...);
                __syncwarp();
                value = scan_lanes<lanes>(value, lane, member.head, op);
                const T preceding = shuffle_up(value, 1);
                if (busy) write(index, lane == member.head ? carried : op(carried, preceding), theirs...);
            };
            run(shuffle(tasks.closed_up(descriptors), member.rank)...);
            __syncwarp();
            const bool here = tasks.mine.meets(from, lanes);
            const T part = shuffle(value, here ? tasks.mine.bound_in(from, lanes) - 1 : 0);
            if (here) total = op(total, part);
        }
        return total;
    }
};

template <int BlockDim, class T>
struct block_scan_memory {
    turn_memory turn;
    values_of<T, BlockDim / lanes> sums;
};

template <>
struct scan<thread_warp_block> {
    template <int BlockDim, class Layout, class T, class Index, class Map, class Op, class Write, class... D>
    __device__ static T run(Index begin, Index end, Map& map, Op& op, T init, Write& write, const D&... descriptors) {
        __shared__ block_scan_memory<BlockDim, T> shared;
        enter_block<BlockDim>();
        const auto size = size_of(begin, end);
        T result = init;
        const auto scan_one = [&](Index first, Index last, bool mine, auto& columns) {
            const auto scan_it = [&](const T& from, const auto&... theirs) {
                return scan_by_block<BlockDim>(shared.sums, first, last, map, op, from, write, theirs...);
            };
            const T total = columns.run(0, scan_it);
            if (mine) result = total;
        };
        take_turns(shared.turn, size >= BlockDim, begin, end, scan_one, init, descriptors...);
        one_by_one(size >= lanes && size < BlockDim, [&](int owner) {
            const T total = scan_by_group<lanes>(shuffle(begin, owner), shuffle(end, owner), map, op, shuffle(init, owner), write,
                                                 shuffle(descriptors, owner)...);
            if (lane_number() == owner) result = total;
        });
        if (size >= lanes) return result;
        return scan<one_per_lane>::run<BlockDim, Layout>(begin, end, map, op, init, write, descriptors...);
    }
};

template <>
struct scan<automatic> {
    template <int BlockDim, class Layout, class T, class Index, class Map, class Op, class Write, class... D>
    __device__ static T run(Index begin, Index end, Map& map, Op& op, const T& init, Write& write, const D&... descriptors) {
        if (whole_warp() && !automatic::has_few(begin, end)) {
            return scan<warp>::run<BlockDim, Layout>(begin, end, map, op, init, write, descriptors...);
        }
        return scan<one_per_lane>::run<BlockDim, Layout>(begin, end, map, op, init, write, descriptors...);
    }
};

}  // namespace detail

/// Calls `write(i, prefix, descriptors...)` for each `i` in [begin, end). `prefix` is the reduction of `init` and of
/// `map(j, descriptors...)` for all `j` in [begin, i), in this order.
///
/// Use it if the place or the value of a fine task's result depends on those before it, as in a compaction.
///
/// @code
/// // The sums of the entries before each entry in its row.
/// const int row = min(int(blockIdx.x * 256 + threadIdx.x), rows);
/// const int begin = offsets[row], end = offsets[min(row + 1, rows)];
/// const auto value = [=](int i) { return values[i]; };
/// const auto put = [=](int i, float before) { out[i] = before; };
/// cte::exclusive_scan<256, cte::scanned>(begin, end, value, cte::plus{}, 0.0f, put);
/// @endcode
///
/// @tparam BlockDim    threads of the block: a multiple of 32, up to 1024
/// @tparam Layout      `scanned` if a lane's `end` is the next lane's `begin`, else `disjoint`
/// @tparam Policy      one of `automatic`, `one_per_lane`, `sub_warp<W>`, `warp` and `thread_warp_block`
/// @param begin, end   the fine tasks of this thread's coarse task: indices of 32 or 64 bits, `begin <= end`
/// @param map          returns the value of a fine task, once for each
/// @param op           an associative operator; it need not commute
/// @param init         the first operand of every prefix
/// @param write        called once for each index. `map(i)` may be called before `write` for lower indices, so `write` must
///                     not change anything that `map` reads for other indices
/// @param descriptors  what `map` and `write` need to know about this thread's coarse task
/// @return             the reduction of `init` and then all the thread's values; `init` for an empty task
///
/// The requirements and the undefined cases are those of `for_each_index`. In the reference kernel (bench/cte_registers.py), a call uses
/// up to 32 registers and no shared memory; with `thread_warp_block` 64 bytes.
template <int BlockDim, class Layout, class Policy = automatic, class Index, class Map, class Op, class T, class Write, class... D>
__device__ __forceinline__ T exclusive_scan(Index begin, Index end, Map map, Op op, T init, Write write, D... descriptors) {
    detail::check_call<BlockDim, Layout, Index>();
    return detail::scan<Policy>::template run<BlockDim, Layout>(begin, end, map, op, init, write, descriptors...);
}

}  // namespace cte
