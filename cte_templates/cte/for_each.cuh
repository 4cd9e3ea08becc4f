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
/// @code
/// // The sums of the rows of a sparse matrix; threads without a row hold an empty task at the end.
/// const int row = min(int(blockIdx.x * 256 + threadIdx.x), rows);
/// const int begin = offsets[row], end = offsets[min(row + 1, rows)];
/// const auto value = [=](int i) { return values[i]; };
/// const float sum = cte::for_each_index<256, cte::scanned>(begin, end, value, cte::plus{}, 0.0f);
/// if (row < rows) out[row] = sum;
/// @endcode
///
/// @tparam BlockDim  threads of the block: a multiple of 32, up to 1024
/// @tparam Layout    `scanned` if a lane's `end` is the next lane's `begin`, `disjoint` if tasks may be anywhere
/// @tparam Policy    which lanes run what (cte/policies/*.cuh); it decides how much shared memory a call takes
/// @param begin, end   the fine tasks of this thread's coarse task: indices of 32 or 64 bits
/// @param map          gives the value of a fine task. Any lane may call it, in any order: it depends on no thread, and what it
///                     captures is the same in all lanes
/// @param reduce       associative; it need not be commutative
/// @param init         what the values are added to, once; it need not be the identity of `reduce`
/// @param descriptors  what `map` needs of this thread's coarse task: copied to the lane that runs a fine task of it
/// @return             the thread's own result; `init` for an empty task
///
/// All lanes of a warp call together, those without a task with `begin == end` (lanes that are missing make the others run their
/// own tasks alone), and all threads of the block for policies with `whole_block`. Values travel word by word: `T` and the
/// descriptors are trivially copyable, and can be assigned.
template <int BlockDim, class Layout, class Policy = automatic, class Index, class Map, class Reduce, class T, class... D,
          std::enable_if_t<!detail::is_storage<Index>, int> = 0>
__device__ __forceinline__ T for_each_index(Index begin, Index end, Map map, Reduce reduce, T init, D... descriptors) {
    auto&& shared = detail::own_storage<BlockDim, Policy, T, Layout, Index, D...>();
    return detail::call<BlockDim, Layout, Policy>(shared, begin, end, map, reduce, init, descriptors...);
}

/// The same with shared memory of the caller's, which calls one after the other may share.
///
/// @code
/// __shared__ cte::storage<256, float, int> shared;
/// const int begin = offsets[blockIdx.x * 256 + threadIdx.x], end = offsets[blockIdx.x * 256 + threadIdx.x + 1];
/// const auto square = [=](int i) { return values[i] * values[i]; };
/// const float norm = cte::for_each_index<256, cte::scanned>(shared, begin, end, square, cte::plus{}, 0.0f);
/// const auto column = [=](int i) { return columns[i]; };
/// const int last = cte::for_each_index<256, cte::scanned>(shared, begin, end, column, cte::maximum{}, -1);
/// out[blockIdx.x * 256 + threadIdx.x] = norm + last;
/// @endcode
template <int BlockDim, class Layout, class Policy = automatic, class Storage, class Index, class Map, class Reduce, class T,
          class... D, std::enable_if_t<detail::is_storage<Storage>, int> = 0>
__device__ __forceinline__ T for_each_index(Storage& storage, Index begin, Index end, Map map, Reduce reduce, T init, D... descriptors) {
    detail::check_storage<BlockDim, Policy, Storage>();
    auto&& shared = storage.template as<typename Policy::template temp<BlockDim, T, Layout, Index, D...>, Policy>();
    return detail::call<BlockDim, Layout, Policy>(shared, begin, end, map, reduce, init, descriptors...);
}

/// Runs `f(i, descriptors...)` for i in [begin, end), in no order. See `for_each_index` for the parameters.
///
/// @code
/// // The neighbours of the vertices in a work list, which are anywhere.
/// const int t = blockIdx.x * 256 + threadIdx.x;
/// const int vertex = t < rows ? columns[t] : 0, distance = t < rows ? columns[vertex] : 0;
/// const int begin = t < rows ? offsets[vertex] : 0, end = t < rows ? offsets[vertex + 1] : 0;
/// const auto relax = [=](int i, int reached) { atomicMin(levels + columns[i], reached + 1); };
/// cte::for_each<256, cte::disjoint>(begin, end, relax, distance);
/// @endcode
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
