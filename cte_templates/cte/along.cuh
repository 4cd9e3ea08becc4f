// A whole warp runs one task.
#pragma once

#include <cte/tasks.cuh>
#include <cte/warp.cuh>

namespace cte::detail {

/// `Count` values in registers, each of which is put before it is read. They are stored as bytes, so `T` needs no default constructor.
template <class T, int Count>
struct by_turns {
    alignas(T) unsigned char bytes[Count][sizeof(T)];

    __device__ void put(int turn, const T& value) { __builtin_memcpy(bytes[turn], &value, sizeof(T)); }
    __device__ const T& operator[](int turn) const { return reinterpret_cast<const T&>(bytes[turn]); }
};

/// Reduces `Wide` values per lane at a time, as long as at least `least` are left. Lane 0 has the result. Returns the first index that
/// is left. Reducing each value across the warp costs less than it seems, as loads take longer; with a sum in each lane, ptxas would
/// be free to sink the loads to their uses, one after another.
template <int Wide, int least = Wide * lanes + 1, class T, class Index, class Run, class Reduce>
__device__ __forceinline__ Index run_wide(Index from, Index bound, Run run, partial<T>& part, Reduce& op) {
    using count = std::make_unsigned_t<Index>;
    constexpr int step = Wide * lanes;
    for (; static_cast<count>(bound) - static_cast<count>(from) >= least; from += step) {
        by_turns<T, Wide> values;
        const Index first = from + lane_number();
#pragma unroll
        for (int turn = 0; turn < Wide; ++turn) values.put(turn, run(first + turn * lanes));
        // Makes all loads issue before the first use.
        __syncwarp();
#pragma unroll
        for (int turn = 0; turn < Wide; ++turn) values.put(turn, reduce_lanes<lanes>(values[turn], lanes, op));
#pragma unroll
        for (int distance = 1; distance < Wide; distance *= 2) {
#pragma unroll
            for (int turn = 0; turn < Wide; turn += 2 * distance) {
                values.put(turn, op(values[turn], values[turn + distance]));
            }
        }
        part.append(values[0], op);
    }
    return from;
}

/// The warp calls `run(i)` for each `i` in [from, bound), with neighboring lanes on neighboring indices. Since turns are counted, unrolled
/// turns do not check for the end in between, and their loads need not wait for the turn before.
template <class Index, class Run>
__device__ __forceinline__ void run_along(Index from, Index bound, Run run) {
    using count = std::make_unsigned_t<Index>;
    const int lane = lane_number();
    count at = static_cast<count>(from) + lane;
#pragma unroll 4
    for (count turns = turns_of(size_of(from, bound), lane, lanes); turns != 0; --turns, at += lanes) run(static_cast<Index>(at));
}

/// Reduces `run` over [from, bound), in order. The whole warp calls; lane 0 has the result.
template <class T, class Index, class Run, class Reduce>
__device__ __forceinline__ partial<T> reduce_along(Index from, Index bound, Run run, const T& init, Reduce& op) {
    using count = std::make_unsigned_t<Index>;
    partial<T> sum{init};
    if constexpr (is_nothing<T>) {
        run_along(from, bound, run);
    } else if constexpr (sizeof(T) > 8) {
        // A lane reduces a run of neighbors, so that as little as possible is reduced between lanes.
        for (count left = size_of(from, bound), chunk; left != 0; left -= left < lanes * chunk ? left : lanes * chunk) {
            constexpr count most = 64;
            chunk = left < most * lanes ? (left + lanes - 1) / lanes : most;
            const count first = lane_number() * chunk;
            T value = init;  // never read in lanes past the end
            for (count i = first; i < left && i < first + chunk; ++i) {
                const T next = run(static_cast<Index>(static_cast<count>(from) + i));
                value = i == first ? next : op(value, next);
            }
            __syncwarp();
            sum.append(reduce_lanes<lanes>(value, static_cast<int>(left < lanes * chunk ? (left - 1) / chunk + 1 : lanes), op), op);
            from = static_cast<Index>(static_cast<count>(from) + lanes * chunk);
        }
    } else {
        from = run_wide<4, 4 * lanes>(from, bound, run, sum, op);
        for (count left = size_of(from, bound); left != 0; from = static_cast<Index>(static_cast<count>(from) + lanes)) {
            const int some = left < lanes ? static_cast<int>(left) : lanes;
            T value = init;  // never read in lanes past the end
            if (lane_number() < some) value = run(from + lane_number());
            __syncwarp();
            sum.append(reduce_lanes<lanes>(value, some, op), op);
            left -= some;
        }
    }
    __syncwarp();
    return sum;
}

}  // namespace cte::detail
