// Shared memory of the policies: placed by the caller where several calls are to share it, or else a static one for each call.
#pragma once

#include <cte/tasks.cuh>
#include <cte/warp.cuh>

namespace cte {

namespace detail {

/// How many `temp` of a policy a block has: one a warp, or one.
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
        static_assert(sizeof(Temp) <= size && alignof(Temp) <= alignment,
                      "this cte::storage is too small for the call: name the type of its values (cte::storage<BlockDim, T...>)");
        return *reinterpret_cast<Temp*>(bytes[parts == 1 ? 0 : detail::warp_number()]);
    }

   private:
    template <class U>
    using temp = typename Policy::template temp<BlockDim, U>;

    template <class... U>
    static constexpr int largest(U... values) {
        int most = 1;
        ((most = static_cast<int>(values) > most ? static_cast<int>(values) : most), ...);
        return most;
    }

    static constexpr int parts = detail::parts_of<BlockDim, Policy>;
    static constexpr int alignment = largest(alignof(temp<detail::nothing>), alignof(temp<T>)...);
    static constexpr int size = (largest(sizeof(temp<detail::nothing>), sizeof(temp<T>)...) + alignment - 1) / alignment * alignment;
    alignas(alignment) unsigned char bytes[parts][size];
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
