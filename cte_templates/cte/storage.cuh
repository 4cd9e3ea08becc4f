// The policies' shared memory. The caller places it if several calls are to share it; otherwise, there is one static array for
// each policy, size and alignment.
#pragma once

#include <cte/tasks.cuh>
#include <cte/warp.cuh>

namespace cte {

namespace detail {

/// How many `temp` of a policy a block has: one, or one for each warp. `temp<BlockDim, T, Layout, Index, D...>` is what a call needs;
/// `temp<BlockDim, T>` is what any call with values of that type needs.
template <int BlockDim, class Policy>
constexpr int parts_of = Policy::whole_block ? 1 : BlockDim / lanes;

/// Whether a policy locates its warp's part itself, once it needs one. Computing the warp's number would be wasted in warps that need no
/// part.
template <class Policy>
constexpr bool finds_part = false;

template <class Temp, class Rooms>
struct part_of_warp {
    Rooms& rooms;
    __device__ Temp& operator*() const { return rooms[std::extent_v<Rooms> == 1 ? 0 : warp_number()].template as<Temp>(); }
};

/// A policy's part of a block's shared memory: a reference to it, or an object that finds it.
template <class Policy, class Temp, class Rooms>
__device__ decltype(auto) part_in(Rooms& rooms) {
    const part_of_warp<Temp, Rooms> part{rooms};
    if constexpr (finds_part<Policy>) {
        return part;
    } else {
        return *part;
    }
}

}  // namespace detail

/// Shared memory that calls with `Policy` use in turn.
///
/// Use it if calls whose values differ in size are to share memory (otherwise each size has its own), or to place it in
/// a larger union of your own. `cte::storage` is the same for `automatic`.
///
/// @code
/// __shared__ cte::storage_for<256, cte::warp_staged, float, int> shared;
/// const auto value = [=](int i) { return values[i]; };
/// const float sum = cte::for_each_index<256, cte::scanned, cte::warp_staged>(shared, begin, end, value, cte::plus{}, 0.0f);
/// const auto column = [=](int i) { return columns[i]; };
/// const int last = cte::for_each_index<256, cte::scanned, cte::warp_staged>(shared, begin, end, column, cte::maximum{}, -1);
/// if (row < rows) out[row] = last < 0 ? 0 : sum / last;
/// @endcode
///
/// @tparam BlockDim  threads of the block
/// @tparam Policy    the policy that the calls name
/// @tparam T         the types of the calls' values; none for calls without a reduction
///
/// It uses as much shared memory as the largest of the calls, with space for 64-bit indices, and no registers. It is declared `__shared__`,
/// needs no initialization, and holds nothing between calls.
template <int BlockDim, class Policy, class... T>
struct storage_for {
    static constexpr int threads = BlockDim;
    using policy = Policy;

    /// The memory as a `Temp`, for the calls: a warp's own part, as warps do not wait for one another, or all of it if the block calls.
    template <class Temp, class Caller = Policy>
    __device__ decltype(auto) as() {
        return detail::part_in<Caller, Temp>(memory);
    }

   private:
    template <class U>
    using temp = typename Policy::template temp<BlockDim, U>;

    detail::one_of<temp<detail::nothing>, temp<T>...> memory[detail::parts_of<BlockDim, Policy>];
};

namespace detail {

template <class>
constexpr bool is_storage = false;
template <int BlockDim, class Policy, class... T>
constexpr bool is_storage<storage_for<BlockDim, Policy, T...>> = true;

/// Static shared memory: one array for each policy, size and alignment.
template <class Policy, class Room, int Parts>
__device__ auto& static_rooms() {
    __shared__ Room shared[Parts];
    return shared;
}

/// The static shared memory of calls that bring none. Calls with the same policy share it if they keep the same amount there, with
/// the same alignment. In large blocks, where memory is scarce, all calls with values of one type share it.
template <int BlockDim, class Policy, class T, class... Call>
__device__ decltype(auto) own_storage() {
    using temp = typename Policy::template temp<BlockDim, T, Call...>;
    using any = typename Policy::template temp<BlockDim, T>;
    if constexpr (std::is_empty_v<temp>) {
        static temp none;
        return (none);
    } else {
        using kept = std::conditional_t<(BlockDim > 512), any, temp>;
        return part_in<Policy, temp>(static_rooms<Policy, one_of<kept>, parts_of<BlockDim, Policy>>());
    }
}

}  // namespace detail
}  // namespace cte
