// Chooses for each warp, from the sizes of its tasks, how it runs them.
#pragma once

#include <cte/policies/warp_staged.cuh>

namespace cte {

struct automatic {
    template <int BlockDim, class T>
    using temp = warp_staged::temp<BlockDim, T>;
    static constexpr bool whole_block = false;

    /// Up to so many fine tasks in each lane cost less in a loop of its own: consecutive lanes share the lines that they read.
    static constexpr int few = 5;

    /// Whether every lane of the warp has few fine tasks; the same in all lanes.
    template <class Index>
    __device__ static bool has_few(Index begin, Index end) {
        return !__any_sync(detail::full_warp, end - begin > few);
    }

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(temp<BlockDim, T>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        using namespace detail;
        nothing none;
        // Without a reduction and without descriptors nothing is cheaper than to go along the list.
        constexpr bool plain = is_nothing<T> && std::is_same_v<Layout, scanned> && sizeof...(D) == 0;
        if (!whole_warp() || (!plain && has_few(begin, end))) {
            return one_per_lane::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
        }
        return warp_staged::reduce<BlockDim, Layout>(shared, begin, end, map, op, init, descriptors...);
    }
};

}  // namespace cte
