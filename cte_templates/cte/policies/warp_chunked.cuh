// Each lane runs an equal chunk of the warp's fine tasks, one after the other, and hands on what it has of a task that goes on in the
// next lane: nothing is moved or reduced between lanes but once in a call. Merge path (Merrill, Garland, SC 2016) within a warp.
#pragma once

#include <cte/bundle.cuh>
#include <cte/listing.cuh>
#include <cte/policies/sub_warp.cuh>

namespace cte {

namespace detail {

/// Where a warp's tasks end in the list, what takes a place in the list to an index, and the tasks' results.
template <class T>
struct chunks {
    unsigned long long behind[lanes], shift[lanes];
    alignas(T) unsigned char bytes[lanes * sizeof(T)];

    __device__ T* results() { return reinterpret_cast<T*>(bytes); }
};

/// What the lanes below hold of the task that a lane's chunk begins with. `closes`: a task ends in the lane's chunk; `open`: what it
/// has of the one behind its last end.
template <class T, class Reduce>
__device__ partial<T> carried(partial<T> open, bool closes, Reduce& op) {
    const int lane = lane_number();
    const unsigned ends = __ballot_sync(full_warp, closes);
    // The lane whose chunk the task that is open behind this lane's began in, or was open in from the start.
    const unsigned upto = ends & (2u << lane) - 1u;
    const int head = upto == 0 ? 0 : 31 - __clz(upto);
#pragma unroll
    for (int distance = 1; distance < lanes; distance *= 2) {
        const partial<T> below = shuffle_up(open, distance);
        if (lane - distance >= head) open = joined(below, open, op);
    }
    partial<T> ahead = shuffle_up(open, 1);
    if (lane == 0) ahead.some = false;
    return ahead;
}

}  // namespace detail

struct warp_chunked {
    template <int BlockDim, class T>
    using temp = detail::chunks<T>;
    static constexpr bool whole_block = false;

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(detail::chunks<T>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        using namespace detail;
        if (whole_warp()) return of_whole_warp<BlockDim, Layout>(shared, begin, end, map, op, init, descriptors...);
        nothing none;
        return one_per_lane::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
    }

    /// The same where all lanes are known to be here.
    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T of_whole_warp(detail::chunks<T>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
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
        place* const behind = reinterpret_cast<place*>(shared.behind);
        Index* const shift = reinterpret_cast<Index*>(shared.shift);
        behind[lane] = mine.behind;
        if constexpr (!list::contiguous) shift[lane] = static_cast<Index>(static_cast<place>(begin) - mine.first);
        __syncwarp();

        const auto total = list::between(mine.start, mine.stop), chunk = total / lanes + (total % lanes != 0);
        const auto from = chunk * lane < total ? chunk * lane : total;
        const auto length = total - from < chunk ? total - from : chunk;
        place at = mine.start + static_cast<place>(from);
        int owner = 0;  // the first task that ends behind the place
#pragma unroll
        for (int half = lanes / 2; half > 0; half /= 2) {
            if (behind[owner + half - 1] <= at) owner += half;
        }
        partial<T> open{init}, lead{init};
        int led = -1;  // the task that `lead` belongs to, the first that ends in the chunk
        place ends = behind[owner];
        Index shifted = 0;
        if constexpr (!list::contiguous) shifted = shift[owner];
        bundle<D...> own(descriptors...), theirs = own;
        bool moved = true;
        for (std::remove_const_t<decltype(chunk)> step = 0; step < chunk; ++step) {
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
                            shared.results()[owner] = open.value;
                        }
                        open.some = false;
                    }
                    moved = true;
                    while (owner < lanes - 1 && ends == at) ends = behind[++owner];  // past empty ones
                    if constexpr (!list::contiguous) shifted = shift[owner];
                }
            }
            if constexpr (sizeof...(D) > 0) __syncwarp();
        }
        T result = init;
        if constexpr (!is_nothing<T>) {
            __syncwarp();
            const partial<T> ahead = carried(open, led >= 0, op);
            if (led >= 0) shared.results()[led] = joined(ahead, lead, op).value;
            __syncwarp();
            if (begin < end) result = op(init, shared.results()[lane]);
        }
        __syncwarp();
        return result;
    }
};

}  // namespace cte
