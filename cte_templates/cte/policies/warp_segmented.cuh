// `cte::warp` whose reduction takes only the steps that the longest segment of the 32 places needs: Warp Segmentation
// (Khorasani, Gupta, Bhuyan, PACT 2015), in which each lane knows its place in its segment and the segment's length.
#pragma once

#include <cte/policies/warp.cuh>

namespace cte {

/// Policy. Use it as `warp`, if most tasks are short. Shared memory: 2048 bytes for `float` and 32-bit indices in blocks of 256.
struct warp_segmented : detail::searching<detail::steps_of_longest> {};

}  // namespace cte
