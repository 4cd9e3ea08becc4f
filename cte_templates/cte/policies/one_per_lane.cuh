// Each lane runs its own task in a loop (1-D decomposition).
#pragma once

#include <cte/tasks.cuh>

namespace cte {

/// A policy: each lane runs its own task, one fine task after another.
///
/// Use it if all tasks have only a few fine tasks, or all have the same number. It is the loop that a kernel without CTE has, and the
/// baseline for the other policies.
///
/// @code
/// const auto value = [=](int i) { return values[i]; };
/// const float sum = cte::for_each_index<256, cte::scanned, cte::one_per_lane>(begin, end, value, cte::plus{}, 0.0f);
/// if (row < rows) out[row] = sum;
/// @endcode
///
/// Any lanes may call: the warp need not be complete. The policy keeps the contract of cte/policy.cuh. In the reference kernel
/// (bench/cte_registers.py), a call uses no shared memory and 32 registers.
struct one_per_lane {
    template <int BlockDim, class T, class... Call>
    using temp = detail::nothing;
    static constexpr bool whole_block = false;

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(detail::nothing&, Index begin, Index end, Map& map, Reduce& op, T init, const D&... descriptors) {
        T result = init;
        for (Index i = begin; i < end; ++i) result = op(result, map(i, descriptors...));
        return result;
    }
};

}  // namespace cte
