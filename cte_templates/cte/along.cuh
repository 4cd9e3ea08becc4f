// A warp runs one task.
#pragma once

#include <cte/tasks.cuh>
#include <cte/warp.cuh>

namespace cte::detail {

/// `Count` values in registers, each put before it is read. Bytes, so that `T` needs no default constructor.
template <class T, int Count>
struct by_turns {
    alignas(T) unsigned char bytes[Count][sizeof(T)];

    __device__ void put(int turn, const T& value) { __builtin_memcpy(bytes[turn], &value, sizeof(T)); }
    __device__ const T& operator[](int turn) const { return reinterpret_cast<const T&>(bytes[turn]); }
};

/// `Wide` values a lane at a time, while there are `least` and more; lane 0 has the result. Returns where it ends. That each value is
/// reduced by the warp costs less than it seems, as loads take longer: sums of the lanes' own would leave ptxas free to sink the loads
/// one after another.
template <int Wide, int least = Wide * lanes + 1, class T, class Index, class Run, class Reduce>
__device__ __forceinline__ Index run_wide(Index from, Index bound, Run run, partial<T>& part, Reduce& op) {
    using count = std::make_unsigned_t<Index>;
    constexpr int step = Wide * lanes;
    for (; static_cast<count>(bound) - static_cast<count>(from) >= least; from += step) {
        by_turns<T, Wide> values;
        const Index first = from + lane_number();
#pragma unroll
        for (int turn = 0; turn < Wide; ++turn) values.put(turn, run(first + turn * lanes));
        // All loads are issued before the first use.
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

/// The warp runs `run(i)` for each i in [from, bound), neighbouring lanes neighbours. With turns that are counted, unrolled ones do not
/// ask for the end between them, so that what they load need not wait for the turn before.
template <class Index, class Run>
__device__ __forceinline__ void run_along(Index from, Index bound, Run run) {
    using count = std::make_unsigned_t<Index>;
    const int lane = lane_number();
    count at = static_cast<count>(from) + lane;
#pragma unroll 4
    for (count turns = turns_of(size_of(from, bound), lane, lanes); turns != 0; --turns, at += lanes) run(static_cast<Index>(at));
}

/// The reduction of `run` over [from, bound) by the warp, in order; lane 0 has it.
template <class T, class Index, class Run, class Reduce>
__device__ __forceinline__ partial<T> reduce_along(Index from, Index bound, Run run, const T& init, Reduce& op) {
    using count = std::make_unsigned_t<Index>;
    partial<T> sum{init};
    if constexpr (is_nothing<T>) {
        run_along(from, bound, run);
    } else if constexpr (sizeof(T) > 8) {
        // A lane reduces neighbours, as little between lanes as can be.
        for (count left = size_of(from, bound), chunk; left != 0; left -= left < lanes * chunk ? left : lanes * chunk) {
            constexpr count most = 64;
            chunk = left < most * lanes ? (left + lanes - 1) / lanes : most;
            const count first = lane_number() * chunk;
            T value = init;  // of lanes after the end: never read
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
            T value = init;  // of lanes after the end: never read
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
