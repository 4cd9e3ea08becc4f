// Values of several types as one trivially copyable value: the descriptors of a task that a lane keeps while it runs it.
#pragma once

#include <cte/tasks.cuh>

namespace cte::detail {

template <class... D>
struct bundle {
    template <class F, class... Ahead>
    __device__ __forceinline__ auto apply(F f, const Ahead&... ahead) const {
        return f(ahead...);
    }
};

template <class First, class... D>
struct bundle<First, D...> {
    First first;
    bundle<D...> rest;

    __device__ __forceinline__ explicit bundle(const First& value, const D&... values) : first(value), rest(values...) {}

    /// `f(ahead..., values...)`.
    template <class F, class... Ahead>
    __device__ __forceinline__ auto apply(F f, const Ahead&... ahead) const {
        return rest.apply(f, ahead..., first);
    }
};

}  // namespace cte::detail
