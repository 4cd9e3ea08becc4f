// The list of all fine tasks of a warp, in the order of its lanes: where each lane's tasks are, and how their results get back to it.
#pragma once

#include <cte/tasks.cuh>
#include <cte/warp.cuh>

namespace cte::detail {

/// A lane's fine tasks are at the positions `[first, bound)` of the list, which has the positions `[start, stop)`. If tasks follow one
/// another, a position is an index; otherwise positions are counted from 0. No position after `stop` is ever computed.
template <class Layout, class Index>
struct listing {
    static constexpr bool contiguous = std::is_same_v<Layout, scanned>;
    using count = std::make_unsigned_t<Index>;
    using place = std::conditional_t<contiguous, Index, count>;
    place first, bound, start, stop;

    __device__ listing(Index begin, Index end) {
        if constexpr (contiguous) {
            first = begin;
            bound = end;
            start = shuffle(begin, 0);
        } else {
            const count size = static_cast<count>(end) - static_cast<count>(begin);
            bound = inclusive_sum(size);
            first = bound - size;
            start = 0;
        }
        stop = shuffle(bound, lanes - 1);
    }

    /// Whether the list is too long for `Index` to count its places; the same in all lanes.
    __device__ static bool overflows(Index begin, Index end) {
        if constexpr (contiguous) return false;
        constexpr count most = static_cast<count>(-1) / (2 * lanes);
        return __any_sync(full_warp, static_cast<count>(end) - static_cast<count>(begin) > most);
    }

    /// The number of places from `from` to `to`.
    __device__ static count between(place from, place to) { return static_cast<count>(to) - static_cast<count>(from); }

    /// The position `length` after `from`, or `stop` if that is nearer.
    __device__ place next(place from, count length) const {
        return between(from, stop) > length ? from + static_cast<place>(length) : stop;
    }

    /// Whether some of the lane's tasks are among the `length` positions that begin at `from`.
    __device__ bool meets(place from, count length) const {
        return first < bound && bound > from && (first < from || between(from, first) < length);
    }

    /// The first of them, relative to `from`.
    __device__ int first_in(place from) const { return first > from ? static_cast<int>(between(from, first)) : 0; }

    /// Where they end, relative to `from`.
    __device__ int bound_in(place from, count length) const {
        return between(from, bound) < length ? static_cast<int>(between(from, bound)) : static_cast<int>(length);
    }
};

/// Appends to each lane's `sum` what the lanes hold of its task. Lane k holds the reduction from the place `from + k` to the last
/// place of its task among these 32.
template <class Layout, class Index, class T, class Reduce>
__device__ void collect(const listing<Layout, Index>& mine, typename listing<Layout, Index>::place from, const T& value,
                        partial<T>& sum, Reduce& op) {
    const bool here = mine.meets(from, lanes);
    const T found = shuffle(value, here ? mine.first_in(from) : 0);
    if (here) sum.append(found, op);
}

}  // namespace cte::detail
