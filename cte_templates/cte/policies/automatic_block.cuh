// `cte::automatic` for calls of the whole block: the block runs the longest tasks together, its warps the others.
#pragma once

#include <cte/policies/automatic.cuh>
#include <cte/policies/thread_warp_block.cuh>

namespace cte {

/// Policy. Use it if the whole block calls, and some tasks are longer than a thousand. Shared memory: 8192 bytes for `float` in
/// blocks of 256.
struct automatic_block {
    template <int BlockDim, class T>
    struct memory {
        union {
            typename thread_warp_block::temp<BlockDim, T> block;
            typename automatic::temp<BlockDim, T> warps[BlockDim / detail::lanes];
        };
    };
    template <int BlockDim, class T, class... Call>
    using temp = memory<BlockDim, T>;
    static constexpr bool whole_block = true;

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(temp<BlockDim, T>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        using namespace detail;
        // A warp would take as long for one of these as for all others.
        constexpr int least = 4 * BlockDim;
        partial<T> sum{init};
        const bool some = thread_warp_block::run_long<BlockDim>(shared.block, begin, end, least, map, op, sum, descriptors...);
        __syncthreads();
        auto* const own = shared.warps + warp_number();
        if (!some) return automatic::by_itself<BlockDim, Layout>(own, begin, end, map, op, init, descriptors...);
        // Those that are done leave gaps.
        const bool done = begin < end && static_cast<std::make_unsigned_t<Index>>(end - begin) >= least;
        const T rest = automatic::by_itself<BlockDim, disjoint>(own, begin, done ? begin : end, map, op, init, descriptors...);
        return done ? sum.after(init, op) : rest;
    }
};

}  // namespace cte
