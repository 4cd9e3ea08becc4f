// The calls: `for_each_index` maps and reduces the fine tasks of a thread's coarse task, `for_each` runs a function on them.
#pragma once

#include <cte/check.cuh>
#include <cte/policies/automatic.cuh>
#include <cte/storage.cuh>

namespace cte {

/// Shared memory for calls with the policy `automatic`.
template <int BlockDim, class... T>
using storage = storage_for<BlockDim, automatic, T...>;

namespace detail {

template <int BlockDim, class Layout, class Index>
__device__ void check_call() {
    static_assert(is_layout<Layout>, "the layout of the tasks is cte::scanned or cte::disjoint");
    static_assert(BlockDim % lanes == 0 && BlockDim >= lanes && BlockDim <= 1024,
                  "BlockDim is the number of threads of the block: a multiple of 32, up to 1024");
    static_assert(std::is_integral_v<Index> && (sizeof(Index) == 4 || sizeof(Index) == 8),
                  "begin and end are indices of 32 or 64 bits, of one type");
    CTE_CHECK(blockDim.x * blockDim.y * blockDim.z == BlockDim);
}

template <int BlockDim, class Policy, class Storage>
__device__ void check_storage() {
    static_assert(Storage::threads == BlockDim, "the cte::storage is for blocks of another size");
    static_assert(std::is_same_v<typename Storage::policy, Policy>,
                  "the cte::storage is for another policy: cte::storage_for<BlockDim, Policy, T...> is for calls with Policy");
}

template <int BlockDim, class Layout, class Policy, class Temp, class Index, class Map, class Reduce, class T, class... D>
__device__ __forceinline__ T call(Temp& shared, Index begin, Index end, Map& map, Reduce& op, const T& init, const D&... descriptors) {
    check_call<BlockDim, Layout, Index>();
    return Policy::template reduce<BlockDim, Layout>(shared, begin, end, map, op, init, descriptors...);
}

}  // namespace detail

/// What `reduce` makes of `init` and of `map(i, descriptors...)` for i in [begin, end), in this order: each thread's own result,
/// although other lanes run most of its fine tasks.
///
/// All lanes of a warp call together, those without a task with `begin == end` (lanes that are missing make the others run their
/// own tasks alone). `reduce` is associative; it need not be commutative, and `init` need not be its identity. `descriptors` are
/// copied to the lane that runs a fine task. Values travel word by word: `T` and the descriptors are trivially copyable, and can be
/// assigned.
template <int BlockDim, class Layout, class Policy = automatic, class Index, class Map, class Reduce, class T, class... D,
          std::enable_if_t<!detail::is_storage<Index>, int> = 0>
__device__ __forceinline__ T for_each_index(Index begin, Index end, Map map, Reduce reduce, T init, D... descriptors) {
    auto&& shared = detail::own_storage<BlockDim, Policy, T, Layout, Index, D...>();
    return detail::call<BlockDim, Layout, Policy>(shared, begin, end, map, reduce, init, descriptors...);
}

/// The same with shared memory of the caller's.
template <int BlockDim, class Layout, class Policy = automatic, class Storage, class Index, class Map, class Reduce, class T,
          class... D, std::enable_if_t<detail::is_storage<Storage>, int> = 0>
__device__ __forceinline__ T for_each_index(Storage& storage, Index begin, Index end, Map map, Reduce reduce, T init, D... descriptors) {
    detail::check_storage<BlockDim, Policy, Storage>();
    auto&& shared = storage.template as<typename Policy::template temp<BlockDim, T, Layout, Index, D...>, Policy>();
    return detail::call<BlockDim, Layout, Policy>(shared, begin, end, map, reduce, init, descriptors...);
}

/// Runs `f(i, descriptors...)` for i in [begin, end). See `for_each_index`.
template <int BlockDim, class Layout, class Policy = automatic, class Index, class F, class... D,
          std::enable_if_t<!detail::is_storage<Index>, int> = 0>
__device__ __forceinline__ void for_each(Index begin, Index end, F f, D... descriptors) {
    auto&& shared = detail::own_storage<BlockDim, Policy, detail::nothing, Layout, Index, D...>();
    detail::without_value<F> map{f};
    detail::drop op;
    detail::call<BlockDim, Layout, Policy>(shared, begin, end, map, op, detail::nothing{}, descriptors...);
}

/// The same with shared memory of the caller's.
template <int BlockDim, class Layout, class Policy = automatic, class Storage, class Index, class F, class... D,
          std::enable_if_t<detail::is_storage<Storage>, int> = 0>
__device__ __forceinline__ void for_each(Storage& storage, Index begin, Index end, F f, D... descriptors) {
    detail::check_storage<BlockDim, Policy, Storage>();
    auto&& shared = storage.template as<typename Policy::template temp<BlockDim, detail::nothing, Layout, Index, D...>, Policy>();
    detail::without_value<F> map{f};
    detail::drop op;
    detail::call<BlockDim, Layout, Policy>(shared, begin, end, map, op, detail::nothing{}, descriptors...);
}

}  // namespace cte
