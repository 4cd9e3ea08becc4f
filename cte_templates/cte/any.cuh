// `any` tells each thread whether some fine task of its coarse task has a property, and stops soon after it has found one.
#pragma once

#include <cte/expansion.cuh>
#include <cte/for_each.cuh>
#include <cte/policies/thread_warp_block.cuh>
#include <cte/policies/warp.cuh>

namespace cte {
namespace detail {

/// The lanes of a group search a task together. All of them return the answer.
template <int Width, class Index, class Predicate, class... D>
__device__ bool search_by_group(Index first, Index last, Predicate& has, const D&... descriptors) {
    const int rank = lane_number() % Width;
    const unsigned group = group_mask<Width>();
    bool found = false;
    using count = std::make_unsigned_t<Index>;
    count from = static_cast<count>(first);
    for (count left = size_of(first, last); !found && left != 0; from += Width) {
        const bool hit = left > rank && has(static_cast<Index>(from + rank), descriptors...);
        found = __any_sync(group, hit);
        left = left > Width ? left - Width : 0;
    }
    __syncwarp();
    return found;
}

/// The block searches a task. All threads return the answer.
template <int BlockDim, class Index, class Predicate, class... D>
__device__ bool search_by_block(Index first, Index last, Predicate& has, const D&... descriptors) {
    const int thread = thread_number();
    bool found = false;
    using count = std::make_unsigned_t<Index>;
    count from = static_cast<count>(first);
    for (count left = size_of(first, last); !found && left != 0; from += BlockDim) {
        const bool hit = left > thread && has(static_cast<Index>(from + thread), descriptors...);
        found = __syncthreads_or(hit);
        left = left > BlockDim ? left - BlockDim : 0;
    }
    return found;
}

/// How a policy searches.
template <class Policy>
struct search {
    template <int BlockDim, class Layout, class Index, class Predicate, class... D>
    __device__ static bool run(Index, Index, Predicate&, const D&...) {
        static_assert(no_type<Policy>, "cte::any runs with one_per_lane, sub_warp<Width>, warp, thread_warp_block or automatic");
        return false;
    }
};

template <>
struct search<one_per_lane> {
    template <int BlockDim, class Layout, class Index, class Predicate, class... D>
    __device__ static bool run(Index begin, Index end, Predicate& has, const D&... descriptors) {
        for (Index i = begin; i < end; ++i) {
            if (has(i, descriptors...)) return true;
        }
        return false;
    }
};

template <int Width>
struct search<sub_warp<Width>> {
    template <int BlockDim, class Layout, class Index, class Predicate, class... D>
    __device__ static bool run(Index begin, Index end, Predicate& has, const D&... descriptors) {
        if (!whole_warp()) return search<one_per_lane>::run<BlockDim, Layout>(begin, end, has, descriptors...);
        constexpr int groups = lanes / Width;
        const int lane = lane_number();
        bool result = false;
#pragma unroll 1
        for (int round = 0; round < Width; ++round) {
            const int owner = round * groups + lane / Width;
            const bool found = search_by_group<Width>(shuffle(begin, owner), shuffle(end, owner), has, shuffle(descriptors, owner)...);
            const unsigned all = __ballot_sync(full_warp, found);
            if (lane / groups == round) result = all >> lane % groups * Width & 1u;
        }
        return result;
    }
};

template <>
struct search<warp> {
    template <int BlockDim, class Layout, class Index, class Predicate, class... D>
    __device__ static bool run(Index begin, Index end, Predicate& has, const D&... descriptors) {
        using list = listing<Layout, Index>;
        if (!whole_warp()) return search<one_per_lane>::run<BlockDim, Layout>(begin, end, has, descriptors...);
        if (list::overflows(begin, end)) return search<sub_warp<lanes>>::template run<BlockDim, Layout>(begin, end, has, descriptors...);
        expansion<Layout, Index> tasks(begin, end);
        const int lane = lane_number();
        unsigned found = 0;  // the lanes whose tasks have a hit
        for (auto from = tasks.mine.start; from < tasks.mine.stop; from = tasks.mine.next(from, lanes)) {
            const auto member = tasks.member_at(from);
            const Index index = tasks.index_at(from + lane, member.rank);
            const int owner = tasks.owner_of(member.rank);
            bool hit = false;
            const auto run = [&](const D&... theirs) {
                if (list::between(from, tasks.mine.stop) > lane && !(found >> owner & 1u)) hit = has(index, theirs...);
            };
            run(shuffle(tasks.closed_up(descriptors), member.rank)...);
            found |= warp_or(hit ? 1u << owner : 0u);
            // Skips the rest of a task with a hit that goes on past these places.
            const bool done = found >> lane & 1u && tasks.mine.first <= from && tasks.mine.bound > from;
            const unsigned skips = __ballot_sync(full_warp, done && list::between(from, tasks.mine.bound) > 2 * lanes);
            if (skips != 0) from += shuffle(skipped(tasks.mine, from), __ffs(skips) - 1);
        }
        return found >> lane & 1u;
    }

   private:
    /// The number of places, in whole rounds, between the round at `from` and the one before the task's last.
    template <class Layout, class Index>
    __device__ static auto skipped(const listing<Layout, Index>& mine, typename listing<Layout, Index>::place from) {
        const auto more = listing<Layout, Index>::between(from, mine.bound);
        return static_cast<typename listing<Layout, Index>::place>((more - 1) / lanes * lanes - lanes);
    }
};

template <>
struct search<thread_warp_block> {
    template <int BlockDim, class Layout, class Index, class Predicate, class... D>
    __device__ static bool run(Index begin, Index end, Predicate& has, const D&... descriptors) {
        __shared__ turn_memory turn;
        enter_block<BlockDim>();
        const auto size = size_of(begin, end);
        bool result = false;
        const auto search_one = [&](Index first, Index last, bool mine, auto& columns) {
            const auto search_it = [&](const auto&... theirs) { return search_by_block<BlockDim>(first, last, has, theirs...); };
            const bool found = columns.run(0, search_it);
            if (mine) result = found;
        };
        take_turns(turn, size >= BlockDim, begin, end, search_one, descriptors...);
        one_by_one(size >= lanes && size < BlockDim, [&](int owner) {
            const bool found = search_by_group<lanes>(shuffle(begin, owner), shuffle(end, owner), has, shuffle(descriptors, owner)...);
            if (lane_number() == owner) result = found;
        });
        if (size >= lanes) return result;
        return search<one_per_lane>::run<BlockDim, Layout>(begin, end, has, descriptors...);
    }
};

template <>
struct search<automatic> {
    template <int BlockDim, class Layout, class Index, class Predicate, class... D>
    __device__ static bool run(Index begin, Index end, Predicate& has, const D&... descriptors) {
        if (whole_warp() && !automatic::has_few(begin, end)) return search<warp>::run<BlockDim, Layout>(begin, end, has, descriptors...);
        return search<one_per_lane>::run<BlockDim, Layout>(begin, end, has, descriptors...);
    }
};

}  // namespace detail

/// Returns whether `has(i, descriptors...)` holds for some `i` in [begin, end).
///
/// Use it in place of a loop that breaks at the first hit. Once a thread's hit is found, most of its other indices are skipped.
///
/// @code
/// // Which rows of a sparse matrix have a negative entry.
/// const int row = min(int(blockIdx.x * 256 + threadIdx.x), rows);
/// const int begin = offsets[row], end = offsets[min(row + 1, rows)];
/// const bool negative = cte::any<256, cte::scanned>(begin, end, [=](int i) { return values[i] < 0; });
/// if (row < rows) out[row] = negative;
/// @endcode
///
/// @tparam BlockDim    threads of the block: a multiple of 32, up to 1024
/// @tparam Layout      `scanned` if a lane's `end` is the next lane's `begin`, else `disjoint`
/// @tparam Policy      one of `automatic`, `one_per_lane`, `sub_warp<W>`, `warp` and `thread_warp_block`
/// @param begin, end   the fine tasks of this thread's coarse task: indices of 32 or 64 bits, `begin <= end`
/// @param has          returns a `bool`. It has no side effects: for which indices it is called depends on when a hit is found
/// @param descriptors  what `has` needs to know about this thread's coarse task
/// @return             the thread's own result; false for an empty task
///
/// The requirements and the undefined cases are those of `for_each_index`. In the reference kernel (bench/cte_registers.py), a call uses
/// up to 26 registers and no shared memory; with `thread_warp_block` 24 bytes.
template <int BlockDim, class Layout, class Policy = automatic, class Index, class Predicate, class... D>
__device__ __forceinline__ bool any(Index begin, Index end, Predicate has, D... descriptors) {
    detail::check_call<BlockDim, Layout, Index>();
    return detail::search<Policy>::template run<BlockDim, Layout>(begin, end, has, descriptors...);
}

}  // namespace cte
