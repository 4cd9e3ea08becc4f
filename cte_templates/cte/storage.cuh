// Shared memory of the policies: placed by the caller where several calls are to share it, or else a static one for each call.
#pragma once

#include <cte/tasks.cuh>
#include <cte/warp.cuh>

namespace cte {

/// Shared memory that calls with `Policy` and values of the types `T...` (none: calls without a reduction) may use in turn.
template <int BlockDim, class Policy, class... T>
struct storage_for {
    static constexpr int threads = BlockDim;
    using policy = Policy;

    /// The memory as what the policy keeps there.
    template <class Temp>
    __device__ Temp& as() {
        static_assert(sizeof(Temp) <= size && alignof(Temp) <= alignment,
                      "this cte::storage is too small for the call: name the type of its values (cte::storage<BlockDim, T...>)");
        if constexpr (Policy::whole_block || std::is_empty_v<Temp>) {
            return *reinterpret_cast<Temp*>(bytes);
        } else {
            // No warp waits for others, who may be at calls with other types: each has a part of its own, whatever the type.
            static_assert((size - sizeof(Temp)) % warps == 0 && (size - sizeof(Temp)) / warps % alignof(Temp) == 0);
            return *reinterpret_cast<Temp*>(bytes + detail::warp_number() * static_cast<int>((size - sizeof(Temp)) / warps));
        }
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

    static constexpr int warps = BlockDim / detail::lanes;
    static constexpr int alignment = largest(alignof(temp<detail::nothing>), alignof(temp<T>)...);
    static constexpr int part = (largest(sizeof(temp<detail::nothing>), sizeof(temp<T>)...) + warps * alignment - 1) / (warps * alignment);
    static constexpr int size = part * warps * alignment;
    alignas(alignment) unsigned char bytes[size];
};

namespace detail {

template <class>
constexpr bool is_storage = false;
template <int BlockDim, class Policy, class... T>
constexpr bool is_storage<storage_for<BlockDim, Policy, T...>> = true;

/// The static shared memory of calls that bring none. Calls of one policy with one type share it.
template <class Temp>
__device__ Temp& own_storage() {
    if constexpr (is_nothing<Temp>) {
        static Temp none;
        return none;
    } else {
        __shared__ Temp shared;
        return shared;
    }
}

}  // namespace detail
}  // namespace cte
