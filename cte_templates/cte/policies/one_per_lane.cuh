// One lane runs its own task, one fine task after the other: what a loop in the kernel would do (1-D decomposition).
#pragma once

#include <cte/tasks.cuh>

namespace cte {

/// Policy. Use it if all tasks have a few fine tasks, or all the same number. Shared memory: none.
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
