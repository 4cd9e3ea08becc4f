// `cte::warp` whose reduction takes only the steps that the longest segment of the 32 places needs: Warp Segmentation
// (Khorasani, Gupta, Bhuyan, PACT 2015), in which each lane knows its place in its segment and the segment's length.
#pragma once

#include <cte/policies/warp.cuh>

namespace cte {

struct warp_segmented : detail::searching<detail::steps_of_longest> {};

}  // namespace cte
