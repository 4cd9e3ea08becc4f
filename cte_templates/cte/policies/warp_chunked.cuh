// Merge path (Merrill, Garland, SC 2016) in a warp: each lane runs a chunk of the warp's list, one fine task after another, and passes on
// its part of a task that continues in the next lane. Lanes reduce together only once, after all chunks.
#pragma once

#include <cte/bundle.cuh>
#include <cte/listing.cuh>
#include <cte/policies/sub_warp.cuh>

namespace cte {

namespace detail {

/// Where a warp's tasks end in its list, the offset that turns a place in the list into an index, and the tasks' results.
template <class T, class Index>
struct chunks {
    Index bound[lanes], shift[lanes];
    alignas(T) unsigned char bytes[lanes * sizeof(T)];

    __device__ T* results() { return reinterpret_cast<T*>(bytes); }
};

/// Returns what is open before each lane's chunk. `open` is the reduction of the lane's values after the last end in its chunk, `closes`
/// whether there is an end. `before` is what was open before the first chunk, and becomes what is open after the last one.
template <class T, class Reduce>
__device__ partial<T> hand_on(partial<T> open, bool closes, partial<T>& before, Reduce& op) {
    const int lane = lane_number();
    const unsigned ends = __ballot_sync(full_warp, closes), upto = ends & (2u << lane) - 1u;
    const int head = upto == 0 ? 0 : 31 - __clz(upto);  // the lane where what is open after this one began
#pragma unroll
    for (int distance = 1; distance < lanes; distance *= 2) {
        const partial<T> below = shuffle_up(open, distance);
        if (lane - distance >= head) open = joined(below, open, op);
    }
    if (upto == 0) open = joined(before, open, op);
    partial<T> preceding = shuffle_up(open, 1);
    if (lane == 0) preceding = before;
    before = shuffle(open, lanes - 1);
    return preceding;
}

}  // namespace detail

/// A policy: each lane runs a chunk of neighboring fine tasks of the warp's list; lanes reduce together once, after all chunks.
///
/// Use it if sizes differ, and the reduction is costly or values are large.
///
/// @code
/// struct moments {
///     double sum, squares, cubes;
/// };
/// const auto moments_of = [=](int i) {
///     const double value = values[i];
///     return moments{value, value * value, value * value * value};
/// };
/// const auto add = [](const moments& a, const moments& b) {
///     return moments{a.sum + b.sum, a.squares + b.squares, a.cubes + b.cubes};
/// };
/// const moments all = cte::for_each_index<256, cte::scanned, cte::warp_chunked>(begin, end, moments_of, add, moments{});
/// if (row < rows) out[row] = all.cubes - all.squares * all.sum;
/// @endcode
///
/// The policy keeps the contract of cte/policy.cuh. In the reference kernel (bench/cte_registers.py), a call uses 3072 bytes of
/// shared memory (a value and two indices per lane) and 32 registers.
struct warp_chunked {
    template <int BlockDim, class T, class... Call>
    using temp = detail::chunks<T, detail::index_of<Call...>>;
    static constexpr bool whole_block = false;

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(detail::chunks<T, Index>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        using namespace detail;
        if (whole_warp()) return of_whole_warp<BlockDim, Layout>(shared, begin, end, map, op, init, descriptors...);
        nothing none;
        return one_per_lane::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
    }

    /// The same if all 32 lanes are known to call.
    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T of_whole_warp(detail::chunks<T, Index>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                                      const D&... descriptors) {
        using namespace detail;
        using list = listing<Layout, Index>;
        using place = typename list::place;
        if (list::overflows(begin, end)) {
            nothing none;
            return sub_warp<lanes>::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
        }
        const int lane = lane_number();
        const list mine(begin, end);
        if (mine.start == mine.stop) return init;
        place* const bound = reinterpret_cast<place*>(shared.bound);
        Index* const shift = shared.shift;
        bound[lane] = mine.bound;
        if constexpr (!list::contiguous) shift[lane] = static_cast<Index>(static_cast<place>(begin) - mine.first);
        __syncwarp();

        T* const results = shared.results();
        partial<T> before{init};
        bundle<D...> own(descriptors...), theirs = own;
        for (place from = mine.start; from < mine.stop; from = mine.next(from, most<T> * lanes)) {
            const auto left = list::between(from, mine.stop);
            const int chunk = left < most<T> * lanes ? (static_cast<int>(left) + lanes - 1) / lanes : most<T>;
            const int skipped = lane * chunk;
            const int length = left <= skipped ? 0 : left - skipped < chunk ? static_cast<int>(left) - skipped : chunk;
            place at = length > 0 ? from + skipped : mine.stop;
            int owner = 0;  // the first task that ends after the place
#pragma unroll
            for (int half = lanes / 2; half > 0; half /= 2) {
                if (bound[owner + half - 1] <= at) owner += half;
            }
            place ends = bound[owner];
            Index shifted = 0;
            if constexpr (!list::contiguous) shifted = shift[owner];
            partial<T> open{init}, lead{init};
            int led = -1;  // the task that `lead` belongs to: the first that ends in the chunk
            bool moved = true;
            // The lanes go in step: each then reads lines that another lane, a chunk ahead, has read shortly before.
            for (int step = 0; step < chunk; ++step) {
                if constexpr (sizeof...(D) > 0) {
                    if (__any_sync(full_warp, moved)) theirs = shuffle(own, owner);
                    moved = false;
                }
                if (step < length) {
                    const Index index = static_cast<Index>(at) + shifted;
                    open.append(theirs.apply([&](const D&... values) { return map(index, values...); }), op);
                    ++at;
                    if (at == ends) {
                        if constexpr (!is_nothing<T>) {
                            if (led < 0) {
                                lead = open;
                                led = owner;
                            } else {
                                results[owner] = open.value;
                            }
                            open.some = false;
                        }
                        moved = true;
                        while (owner < lanes - 1 && ends == at) ends = bound[++owner];  // past empty ones
                        if constexpr (!list::contiguous) shifted = shift[owner];
                    }
                }
                if constexpr (sizeof...(D) > 0) __syncwarp();
            }
            __syncwarp();
            if constexpr (!is_nothing<T>) {
                const partial<T> preceding = hand_on(open, led >= 0, before, op);
                if (led >= 0) results[led] = joined(preceding, lead, op).value;
            }
        }
        T result = init;
        if constexpr (!is_nothing<T>) {
            __syncwarp();
            if (begin < end) result = op(init, results[lane]);
        }
        __syncwarp();
        return result;
    }

   private:
    /// The largest chunk of a lane. Longer chunks pay off if passing results on is expensive, but the lines that a warp reads have to stay
    /// in its cache.
    template <class T>
    static constexpr int most = sizeof(T) > 8 ? 64 : 32;
};

}  // namespace cte
