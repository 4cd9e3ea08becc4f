// What lanes of a warp need: their numbers, shuffles of any trivially copyable type, sums and masks.
#pragma once

#include <cte/version.cuh>

#include <type_traits>

namespace cte::detail {

constexpr int lanes = 32;
constexpr unsigned full_warp = 0xffffffffu;

__device__ __forceinline__ int lane_number() {
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return static_cast<int>(lane);
}

/// The thread's number in its block, which may have one to three dimensions.
__device__ __forceinline__ int thread_number() {
    return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

__device__ __forceinline__ int warp_number() { return static_cast<unsigned>(thread_number()) / lanes; }

/// Whether all 32 lanes make this call together. Lanes that call together get the same answer.
__device__ __forceinline__ bool whole_warp() { return __activemask() == full_warp; }

__device__ __forceinline__ unsigned lanes_below(int lane) { return (1u << lane) - 1u; }

/// `value` with each of its 32-bit words replaced by `word_of(word)`.
template <class T, class F>
__device__ __forceinline__ T by_words(const T& value, F word_of) {
    static_assert(std::is_trivially_copyable_v<T>, "CTE moves values between lanes word by word: make the type trivially copyable");
    constexpr int count = (sizeof(T) + 3) / 4;
    unsigned words[count] = {};
    __builtin_memcpy(words, &value, sizeof(T));
#pragma unroll
    for (int i = 0; i < count; ++i) words[i] = word_of(words[i]);
    T result = value;
    __builtin_memcpy(&result, words, sizeof(T));
    return result;
}

/// The value of the lane `from`. The lanes in `mask` call together.
template <class T>
__device__ __forceinline__ T shuffle(const T& value, int from, unsigned mask = full_warp) {
    return by_words(value, [=](unsigned word) { return __shfl_sync(mask, word, from); });
}

/// The value of the lane `distance` above in the same group of `width` lanes; the lane's own if there is none.
template <int width = lanes, class T>
__device__ __forceinline__ T shuffle_down(const T& value, int distance, unsigned mask = full_warp) {
    return by_words(value, [=](unsigned word) { return __shfl_down_sync(mask, word, distance, width); });
}

/// The value of the lane `distance` below in the same group of `width` lanes; the lane's own if there is none.
template <int width = lanes, class T>
__device__ __forceinline__ T shuffle_up(const T& value, int distance, unsigned mask = full_warp) {
    return by_words(value, [=](unsigned word) { return __shfl_up_sync(mask, word, distance, width); });
}

template <class T>
__device__ __forceinline__ T inclusive_sum(T value) {
    const int lane = lane_number();
#pragma unroll
    for (int distance = 1; distance < lanes; distance *= 2) {
        const T below = __shfl_up_sync(full_warp, value, distance);
        if (lane >= distance) value += below;
    }
    return value;
}

#if __CUDA_ARCH__ >= 800
template <class T>
constexpr bool reduced_at_once = std::is_integral_v<T> && sizeof(T) == 4;
#else
template <class T>
constexpr bool reduced_at_once = false;
#endif

/// The largest value of the warp, in all lanes.
template <class T>
__device__ __forceinline__ T warp_maximum(T value) {
    if constexpr (reduced_at_once<T>) {
        return __reduce_max_sync(full_warp, value);
    } else {
#pragma unroll
        for (int distance = lanes / 2; distance > 0; distance /= 2) {
            const T other = __shfl_xor_sync(full_warp, value, distance);
            value = other > value ? other : value;
        }
        return value;
    }
}

/// The sum of the warp's values, in all lanes.
template <class T>
__device__ __forceinline__ T warp_sum(T value) {
    if constexpr (reduced_at_once<T>) {
        return __reduce_add_sync(full_warp, value);
    } else {
#pragma unroll
        for (int distance = lanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(full_warp, value, distance);
        return value;
    }
}

/// The bitwise or of the warp's values, in all lanes.
__device__ __forceinline__ unsigned warp_or(unsigned bits) {
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(full_warp, bits);
#else
#pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2) bits |= __shfl_xor_sync(full_warp, bits, distance);
    return bits;
#endif
}

/// The place of the set bit of `bits` that has `rank` set bits below it; 32 if there is none.
__device__ __forceinline__ int nth_set_bit(unsigned bits, int rank) {
    if (rank >= __popc(bits)) return lanes;
    int place = 0;
#pragma unroll
    for (int half = lanes / 2; half > 0; half /= 2) {
        const int below = __popc(bits >> place & ((1u << half) - 1u));
        if (rank >= below) {
            rank -= below;
            place += half;
        }
    }
    return place;
}

/// Calls `run(lane)` for each lane that `asks` for it, one after another. All lanes call this function, and all of them call `run`.
template <class Run>
__device__ __forceinline__ void one_by_one(bool asks, Run run) {
    for (unsigned asking = __ballot_sync(full_warp, asks); asking != 0; asking &= asking - 1) run(__ffs(asking) - 1);
}

/// The mask of this lane's group of `width` lanes.
template <int width>
__device__ __forceinline__ unsigned group_mask() {
    if constexpr (width == lanes) {
        return full_warp;
    } else {
        return ((1u << width) - 1u) << (lane_number() / width * width);
    }
}

/// Reduces the values of the first `count` lanes of each group of `width`, in order; the group's first lane has the result. `count` is
/// 1 to `width`, and the same in all lanes of the group.
template <int width, class T, class Reduce>
__device__ __forceinline__ T reduce_lanes(T value, int count, Reduce& op, unsigned mask = full_warp) {
    const int rank = lane_number() % width;
#pragma unroll
    for (int distance = 1; distance < width; distance *= 2) {
        const T above = shuffle_down<width>(value, distance, mask);
        // The results of lanes whose rank is not a multiple of 2 * distance are never read.
        if (rank + distance < count) value = op(value, above);
    }
    return value;
}

}  // namespace cte::detail
