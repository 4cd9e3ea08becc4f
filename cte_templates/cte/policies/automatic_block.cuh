// `cte::automatic` for calls of the whole block: the block runs the longest tasks together, its warps the others.
#pragma once

#include <cte/policies/automatic.cuh>
#include <cte/policies/thread_warp_block.cuh>

namespace cte {

/// A policy: the block runs the longest tasks together, and each warp runs the others as `automatic` does.
///
/// Use it if the whole block calls, and some tasks have more than a thousand fine tasks.
///
/// @code
/// __shared__ cte::storage_for<256, cte::automatic_block, float, int> shared;
/// using policy = cte::automatic_block;
/// const auto value = [=](int i) { return values[i]; };
/// const float sum = cte::for_each_index<256, cte::scanned, policy>(shared, begin, end, value, cte::plus{}, 0.0f);
/// const auto column = [=](int i) { return columns[i]; };
/// const int last = cte::for_each_index<256, cte::scanned, policy>(shared, begin, end, column, cte::maximum{}, -1);
/// if (row < rows) out[row] = sum / (last + 1);
/// @endcode
///
/// All threads of the block call together: the policy contains barriers. It keeps the contract of cte/policy.cuh. In the reference
/// kernel (bench/cte_registers.py), a call uses 8192 bytes of shared memory and 40 registers. Descriptors take shared memory of
/// their own: one of each type.
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
        // A warp alone would take as long for one of these as for all its other tasks.
        constexpr int least = 4 * BlockDim;
        partial<T> sum{init};
        const bool some = thread_warp_block::run_long<BlockDim>(shared.block, begin, end, least, map, op, sum, descriptors...);
        __syncthreads();
        auto* const own = shared.warps + warp_number();
        if (!some) return automatic::by_itself<BlockDim, Layout>(own, begin, end, map, op, init, descriptors...);
        // Tasks that are done leave gaps in the list.
        const bool done = begin < end && static_cast<std::make_unsigned_t<Index>>(end - begin) >= least;
        const T rest = automatic::by_itself<BlockDim, disjoint>(own, begin, done ? begin : end, map, op, init, descriptors...);
        return done ? sum.after(init, op) : rest;
    }
};

}  // namespace cte
