// Shared memory of the policies: placed by the caller where several calls are to share it, or else a static one for each call.
#pragma once

#include <cte/tasks.cuh>

namespace cte {

/// Shared memory that calls with `Policy` and values of the types `T...` (none: calls without a reduction) may use in turn.
template <int BlockDim, class Policy, class... T>
struct storage_for {
    static constexpr int threads = BlockDim;

    /// The memory as what a policy keeps there.
    template <class Temp>
    __device__ Temp& as() {
        static_assert(sizeof(Temp) <= size && alignof(Temp) <= alignment,
                      "this cte::storage is too small for the call: name the type of its values, and its policy (cte::storage_for)");
        return *reinterpret_cast<Temp*>(bytes);
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

    static constexpr int size = largest(sizeof(temp<detail::nothing>), sizeof(temp<T>)...);
    static constexpr int alignment = largest(alignof(temp<detail::nothing>), alignof(temp<T>)...);
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
