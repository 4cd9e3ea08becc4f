// `cte::warp` whose reduction takes only the steps that the longest segment of the 32 places needs: Warp Segmentation
// (Khorasani, Gupta, Bhuyan, PACT 2015), in which each lane knows its place in its segment and the segment's length.
#pragma once

#include <cte/policies/warp.cuh>

namespace cte {

struct warp_segmented {
    template <int BlockDim, class T>
    using temp = detail::searched_tasks;
    static constexpr bool whole_block = false;

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(detail::searched_tasks& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        return detail::search_and_reduce<detail::steps_of_longest, BlockDim, Layout>(shared, begin, end, map, op, init,
                                                                                     descriptors...);
    }
};

}  // namespace cte
