// Warp Segmentation (Khorasani, Gupta, Bhuyan, PACT 2015): each lane knows its place in its segment and the segment's length, so a
// reduction takes only the steps that the longest segment of the 32 places needs.
#pragma once

#include <cte/policies/warp.cuh>

namespace cte {

/// A policy: like `warp`, but each reduction takes only as many steps as the longest segment needs.
///
/// Use it for what suits `warp`, if most tasks are short. Finding out which steps can be skipped costs one vote before each step.
///
/// @code
/// const auto column = [=](int i) { return columns[i]; };
/// const int first = cte::for_each_index<256, cte::scanned, cte::warp_segmented>(begin, end, column, cte::minimum{}, rows);
/// if (row < rows) levels[row] = first;
/// @endcode
///
/// The policy keeps the contract of cte/policy.cuh. In the reference kernel (bench/cte_registers.py), a call uses 2048 bytes of
/// shared memory (8 bytes per lane; 16 with 64-bit indices) and 32 registers.
struct warp_segmented : detail::searching<detail::steps_of_longest> {};

}  // namespace cte
