// Results to which several threads contribute: `cte::plus`, `cte::minimum` and `cte::maximum` by atomics in global memory.
#pragma once

#include <cte/block.cuh>

namespace cte::kernel::detail {

using namespace cte::detail;

/// Checks the operator and the type of value of the forms with atomics.
template <class Op, class T>
__device__ constexpr void check_atomic() {
    static_assert(std::is_same_v<Op, plus> || std::is_same_v<Op, minimum> || std::is_same_v<Op, maximum>,
                  "forms with atomics reduce with cte::plus, cte::minimum or cte::maximum");
    static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                  "forms with atomics reduce integers or floating-point numbers of 32 or 64 bits");
}

/// `*place = op(*place, value)`. Minimum and maximum ignore NaN, and order -0 before 0.
template <class Op, class T>
__device__ __forceinline__ void combine(Op, T* place, T value) {
    using std::is_same_v;
    using bits = std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>;
    using integer = std::conditional_t<sizeof(T) == 4, int, long long>;
    constexpr bool least = is_same_v<Op, minimum>;
    if constexpr (is_same_v<Op, plus>) {
        if constexpr (std::is_floating_point_v<T>) {
            atomicAdd(place, value);
        } else {
            atomicAdd(reinterpret_cast<bits*>(place), static_cast<bits>(value));
        }
    } else if constexpr (std::is_floating_point_v<T>) {
        // As signed integers, the bits of numbers whose sign bit is 0 are ordered as the numbers are, and above all others. As unsigned
        // integers, the bits of negative numbers are ordered in reverse, and above all others.
        if (value != value) return;
        integer signed_bits;
        __builtin_memcpy(&signed_bits, &value, sizeof(T));
        if (signed_bits >= 0) {
            combine(Op{}, reinterpret_cast<integer*>(place), signed_bits);
        } else {
            combine(std::conditional_t<least, maximum, minimum>{}, reinterpret_cast<bits*>(place), static_cast<bits>(signed_bits));
        }
    } else {
        auto* const at = reinterpret_cast<std::conditional_t<std::is_signed_v<T>, integer, bits>*>(place);
        if constexpr (least) {
            atomicMin(at, value);
        } else {
            atomicMax(at, value);
        }
    }
}

/// Lanes 0 to `count - 1` of the warp each hold a value and its owner. Neighbors with the same owner are reduced first. The
/// reduction of the last owner is not written yet but kept for the warp's next values.
template <class Index, class T>
struct open_run {
    Index owner;
    T value;
    bool some = false;

    template <class Op>
    __device__ void add(Index to, T next, int count, Op op, T* out) {
        const int lane = lane_number();
        const Index before = shuffle_up(to, 1);
        const bool begins = lane == 0 || before != to;
        const int reach = same_segment_below(__ballot_sync(full_warp, begins));
        if (some && lane == 0) {
            if (owner == to) {
                next = op(value, next);
            } else {
                combine(op, out + owner, value);
            }
        }
#pragma unroll
        for (int distance = 1; distance < lanes; distance *= 2) {
            const T left = shuffle_up(next, distance);
            if (distance <= reach) next = op(left, next);
        }
        const Index following = shuffle_down(to, 1);
        if (lane < count - 1 && following != to) combine(op, out + to, next);
        owner = shuffle(to, count - 1);
        value = shuffle(next, count - 1);
        some = true;
    }

    template <class Op>
    __device__ void close(Op op, T* out) {
        if (some && lane_number() == 0) combine(op, out + owner, value);
        some = false;
    }
};

}  // namespace cte::kernel::detail
