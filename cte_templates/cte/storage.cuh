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

}  // namespace detail

/// Shared memory that calls with `Policy` and values of the types `T...` (none: calls without a reduction) may use in turn.
template <int BlockDim, class Policy, class... T>
struct storage_for {
    static constexpr int threads = BlockDim;
    using policy = Policy;

    /// What the policy keeps there: a part for each warp, who waits for no other, unless the whole block calls.
    template <class Temp>
    __device__ Temp& as() {
        return memory[parts == 1 ? 0 : detail::warp_number()].template as<Temp>();
    }

   private:
    template <class U>
    using temp = typename Policy::template temp<BlockDim, U>;

    static constexpr int parts = detail::parts_of<BlockDim, Policy>;
    detail::one_of<temp<detail::nothing>, temp<T>...> memory[parts];
};

namespace detail {

template <class>
constexpr bool is_storage = false;
template <int BlockDim, class Policy, class... T>
constexpr bool is_storage<storage_for<BlockDim, Policy, T...>> = true;

/// The static shared memory of calls that bring none. Calls whose policies keep the same there share it.
template <class Temp, int Parts>
__device__ Temp& own_storage() {
    if constexpr (std::is_empty_v<Temp>) {
        static Temp none;
        return none;
    } else {
        __shared__ Temp shared[Parts];
        return shared[Parts == 1 ? 0 : warp_number()];
    }
}

}  // namespace detail
}  // namespace cte
