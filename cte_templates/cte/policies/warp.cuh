// Collaborative Task Engagement as in Khorasani 2016, section 4.2.2, figure 4.19: 32 fine tasks of a warp at a time.
#pragma once

#include <cte/listing.cuh>
#include <cte/policies/sub_warp.cuh>

namespace cte {

namespace detail {

/// Where a warp's tasks end in its list, and the offset that turns a place in the list into an index.
template <class Index>
struct searched_tasks {
    Index bound[lanes], shift[lanes];
};

/// The steps of a warp's segmented reduction: all five, or as many as the longest segment needs.
struct all_steps {
    __device__ static bool more(int, int) { return true; }
};
struct steps_of_longest {
    __device__ static bool more(int distance, int length) { return __any_sync(full_warp, distance < length); }
};

/// Searches for the owner, maps, reduces by segment, and gives each owner its part.
template <class Steps>
struct searching {
    template <int BlockDim, class T, class... Call>
    using temp = searched_tasks<index_of<Call...>>;
    static constexpr bool whole_block = false;

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(searched_tasks<Index>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        using list = listing<Layout, Index>;
        using place = typename list::place;
        nothing none;
        if (!whole_warp()) {
            return one_per_lane::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
        }
        if (list::overflows(begin, end)) {
            return sub_warp<lanes>::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
        }
        const int lane = lane_number();
        const list mine(begin, end);
        place* const bound = reinterpret_cast<place*>(shared.bound);
        Index* const shift = shared.shift;
        bound[lane] = mine.bound;
        if constexpr (!list::contiguous) shift[lane] = static_cast<Index>(static_cast<place>(begin) - mine.first);
        __syncwarp();
        partial<T> sum{init};
        for (place from = mine.start; from < mine.stop; from = mine.next(from, lanes)) {
            const bool busy = list::between(from, mine.stop) > lane;
            const place at = busy ? from + lane : from;
            int owner = 0;  // the first task that ends after the place
#pragma unroll
            for (int half = lanes / 2; half > 0; half /= 2) {
                if (bound[owner + half - 1] <= at) owner += half;
            }
            T value = init;  // never read in lanes past the end
            const auto run = [&](const D&... theirs) {
                if (!busy) return;
                Index index = static_cast<Index>(at);
                if constexpr (!list::contiguous) index += shift[owner];
                value = map(index, theirs...);
            };
            run(shuffle(descriptors, owner)...);
            if constexpr (!is_nothing<T>) {
                // The length of the segment from this lane onwards.
                const int length = busy ? static_cast<int>(min(list::between(at, bound[owner]), typename list::count{lanes} - lane)) : 0;
                __syncwarp();
#pragma unroll
                for (int distance = 1; distance < lanes; distance *= 2) {
                    if (!Steps::more(distance, length)) break;
                    const T above = shuffle_down(value, distance);
                    if (distance < length) value = op(value, above);
                }
                collect(mine, from, value, sum, op);
            }
        }
        __syncwarp();
        return sum.after(init, op);
    }
};

}  // namespace detail

/// A policy: a warp runs the fine tasks of its 32 coarse tasks 32 at a time, each lane searching for the owner of its own.
///
/// Use it if sizes differ, no task is very long, and much data is read for each task (descriptors).
///
/// @code
/// // What differs between rows is a descriptor: the lanes that run a row's entries get a copy.
/// const float4 weights = row < rows ? reinterpret_cast<const float4*>(out)[row] : float4{};
/// const auto weighted = [=](int i, float4 w) { return values[i] * (columns[i] & 1 ? w.x + w.y : w.z + w.w); };
/// const float sum = cte::for_each_index<256, cte::scanned, cte::warp>(begin, end, weighted, cte::plus{}, 0.0f, weights);
/// if (row < rows) out[row] = sum;
/// @endcode
///
/// The policy keeps the contract of cte/policy.cuh. In the reference kernel (bench/cte_registers.py), a call uses 2048 bytes of
/// shared memory (8 bytes per lane; 16 with 64-bit indices) and 32 registers.
struct warp : detail::searching<detail::all_steps> {};

}  // namespace cte
