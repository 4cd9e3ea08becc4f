// Shared memory of the policies: placed by the caller where several calls are to share it, or else a static one for each call.
#pragma once

#include <cte/tasks.cuh>
#include <cte/warp.cuh>

namespace cte {

namespace detail {

/// How many `temp` of a policy a block has: one a warp, or one. `temp<BlockDim, T, Layout, Index, D...>` is what a call needs,
/// `temp<BlockDim, T>` what any call with such values does.
template <int BlockDim, class Policy>
constexpr int parts_of = Policy::whole_block ? 1 : BlockDim / lanes;

/// Whether a policy looks for its warp's part itself, where it needs one: to know the warp costs warps that do not.
template <class Policy>
constexpr bool finds_part = false;

template <class Temp, class Rooms>
struct part_of_warp {
    Rooms& rooms;
    __device__ Temp& operator*() const { return rooms[std::extent_v<Rooms> == 1 ? 0 : warp_number()].template as<Temp>(); }
};

/// What a policy is handed of the rooms of a block: a reference to its part, or what finds it.
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

/// Shared memory that calls with `Policy` and values of the types `T...` (none: calls without a reduction) may use in turn.
template <int BlockDim, class Policy, class... T>
struct storage_for {
    static constexpr int threads = BlockDim;
    using policy = Policy;

    /// What the policy keeps there: a part for each warp, which waits for no other, unless the whole block calls.
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

/// One for each policy, size and alignment.
template <class Policy, class Room, int Parts>
__device__ auto& static_rooms() {
    __shared__ Room shared[Parts];
    return shared;
}

/// The static shared memory of calls that bring none. Calls with one policy that keep as much there, as aligned, share it; in large
/// blocks, where there is little, so do all with values of one type.
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
