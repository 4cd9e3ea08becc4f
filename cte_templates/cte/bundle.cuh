// Values of several types as one trivially copyable value: the descriptors of the task that a lane runs.
#pragma once

#include <cte/tasks.cuh>

namespace cte::detail {

template <class... D>
struct bundle {
    template <class F, class... Leading>
    __device__ __forceinline__ auto apply(F f, const Leading&... leading) const {
        return f(leading...);
    }
};

template <class First, class... D>
struct bundle<First, D...> {
    First first;
    bundle<D...> rest;

    __device__ __forceinline__ explicit bundle(const First& value, const D&... values) : first(value), rest(values...) {}

    /// Calls `f(leading..., values...)`.
    template <class F, class... Leading>
    __device__ __forceinline__ auto apply(F f, const Leading&... leading) const {
        return rest.apply(f, leading..., first);
    }
};

}  // namespace cte::detail
