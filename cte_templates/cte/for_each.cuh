// `for_each_index` maps and reduces the fine tasks of each thread's coarse task; `for_each` runs a function on them.
#pragma once

#include <cte/check.cuh>
#include <cte/policies/automatic.cuh>
#include <cte/policy.cuh>
#include <cte/storage.cuh>

namespace cte {

/// Shared memory that calls with the policy `automatic` use in turn (see `storage_for`).
///
/// @code
/// __shared__ cte::storage<256, float> shared;
/// const auto square = [=](int i) { return values[i] * values[i]; };
/// const auto entry = [=](int i) { return values[i]; };
/// const float squares = cte::for_each_index<256, cte::scanned>(shared, begin, end, square, cte::plus{}, 0.0f);
/// const float sum = cte::for_each_index<256, cte::scanned>(shared, begin, end, entry, cte::plus{}, 0.0f);
/// if (row < rows) out[row] = squares - sum * sum;
/// @endcode
///
/// @tparam BlockDim  threads of the block
/// @tparam T         the types of the calls' values; none for calls without a reduction
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
    constexpr bool runs =
        has_reduce<void, Policy, BlockDim, Layout, T, Temp&, Index&, Index&, Map&, Reduce&, const T&, const D&...>;
    static_assert(runs, "a CTE policy must have a member `template <int BlockDim, class Layout, ...> static T reduce(temp&, Index begin, "
                        "Index end, Map&, Reduce&, T init, const D&... descriptors)` (see cte/policy.cuh)");
    if constexpr (runs) {
        return Policy::template reduce<BlockDim, Layout>(shared, begin, end, map, op, init, descriptors...);
    } else {
        return init;
    }
}

}  // namespace detail

/// Reduces the fine tasks of each thread's coarse task: `init`, `map(begin)`, ..., `map(end - 1)`, in this order.
///
/// Each thread gets its own result, although other lanes run most of its fine tasks. Use it in place of a loop whose number of
/// iterations differs between threads.
///
/// @code
/// // The sums of the rows of a sparse matrix. Threads past the last row hold an empty task at the end.
/// const int row = min(int(blockIdx.x * 256 + threadIdx.x), rows);
/// const int begin = offsets[row], end = offsets[min(row + 1, rows)];
/// const auto value = [=](int i) { return values[i]; };
/// const float sum = cte::for_each_index<256, cte::scanned>(begin, end, value, cte::plus{}, 0.0f);
/// if (row < rows) out[row] = sum;
/// @endcode
///
/// @tparam BlockDim    threads of the block (x * y * z): a multiple of 32, up to 1024
/// @tparam Layout      `scanned` if a lane's `end` is the next lane's `begin`; `disjoint` if tasks may be anywhere and may overlap
/// @tparam Policy      which threads run what: one of cte/policies/*.cuh, or your own (cte/policy.cuh)
/// @param begin, end   the fine tasks of this thread's coarse task: indices of 32 or 64 bits, `begin <= end`
/// @param map          returns the value of the fine task `i`: called as `map(i, descriptors...)` once for each, by any lane and in
///                     any order. It contains no barrier and no warp-wide instruction
/// @param reduce       an associative operator; it need not commute
/// @param init         the first operand, used once; it need not be the identity of `reduce`
/// @param descriptors  what `map` needs to know about this thread's coarse task: passed to the lane that runs a fine task of it
/// @return             the thread's own result; `init` for an empty task
///
/// **Required.** All lanes of a warp call together; those without a task pass `begin == end`. If lanes are missing, the others run their
/// own tasks alone: correctly, but no faster than a plain loop. For a policy with `whole_block`, all threads of the block call together.
/// `T` and the descriptors are trivially copyable and can be assigned.
///
/// **Undefined.** The result is undefined in each of these cases:
/// - `map` or `reduce` captures what differs between lanes of a warp, or threads of the block if the policy has `whole_block`;
/// - `begin > end`;
/// - tasks are not `scanned` although `Layout` says so;
/// - `BlockDim` is not the size of the block.
///
/// **Shared memory and registers** depend on the policy, whose header has figures. The shared memory is static; calls with the same
/// needs share it. In the reference kernel, a call uses 32 registers with most policies (`python bench/cte_registers.py`).
template <int BlockDim, class Layout, class Policy = automatic, class Index, class Map, class Reduce, class T, class... D,
          std::enable_if_t<!detail::is_storage<Index>, int> = 0>
__device__ __forceinline__ T for_each_index(Index begin, Index end, Map map, Reduce reduce, T init, D... descriptors) {
    if constexpr (detail::declares_members<Policy, BlockDim, T, Layout, Index, D...>()) {
        auto&& shared = detail::own_storage<BlockDim, Policy, T, Layout, Index, D...>();
        return detail::call<BlockDim, Layout, Policy>(shared, begin, end, map, reduce, init, descriptors...);
    } else {
        return init;
    }
}

/// The same with shared memory that the caller places, and that successive calls may share.
///
/// @code
/// __shared__ cte::storage<256, float, int> shared;
/// const auto square = [=](int i) { return values[i] * values[i]; };
/// const float norm = cte::for_each_index<256, cte::scanned>(shared, begin, end, square, cte::plus{}, 0.0f);
/// const auto column = [=](int i) { return columns[i]; };
/// const int last = cte::for_each_index<256, cte::scanned>(shared, begin, end, column, cte::maximum{}, -1);
/// if (row < rows) out[row] = norm + last;
/// @endcode
///
/// @param storage  a `storage` or `storage_for` of `BlockDim`, `Policy` and the types of all values, in shared memory; free again
///                 once the call has returned
///
/// See `for_each_index` above for everything else.
template <int BlockDim, class Layout, class Policy = automatic, class Storage, class Index, class Map, class Reduce, class T,
          class... D, std::enable_if_t<detail::is_storage<Storage>, int> = 0>
__device__ __forceinline__ T for_each_index(Storage& storage, Index begin, Index end, Map map, Reduce reduce, T init, D... descriptors) {
    detail::check_storage<BlockDim, Policy, Storage>();
    if constexpr (detail::declares_members<Policy, BlockDim, T, Layout, Index, D...>()) {
        auto&& shared = storage.template as<typename Policy::template temp<BlockDim, T, Layout, Index, D...>, Policy>();
        return detail::call<BlockDim, Layout, Policy>(shared, begin, end, map, reduce, init, descriptors...);
    } else {
        return init;
    }
}

/// Runs `f(i, descriptors...)` for each `i` in [begin, end), in any order.
///
/// Use it if the fine tasks return nothing to their coarse task, for instance if they write to memory.
///
/// @code
/// // One step of a breadth-first search. The neighbors of the vertices in a work list are anywhere.
/// const int t = blockIdx.x * 256 + threadIdx.x;
/// const int vertex = t < rows ? columns[t] : 0, distance = t < rows ? levels[vertex] : 0;
/// const int begin = t < rows ? offsets[vertex] : 0, end = t < rows ? offsets[vertex + 1] : 0;
/// const auto relax = [=](int i, int reached) { atomicMin(levels + columns[i], reached + 1); };
/// cte::for_each<256, cte::disjoint>(begin, end, relax, distance);
/// @endcode
///
/// @param f  called once for each index, by any lane: fine tasks of one thread may run at the same time. `automatic` shares long
///           tasks with other warps only if `f` is `uniform`
///
/// See `for_each_index` for everything else.
template <int BlockDim, class Layout, class Policy = automatic, class Index, class F, class... D,
          std::enable_if_t<!detail::is_storage<Index>, int> = 0>
__device__ __forceinline__ void for_each(Index begin, Index end, F f, D... descriptors) {
    if constexpr (detail::declares_members<Policy, BlockDim, detail::nothing, Layout, Index, D...>()) {
        auto&& shared = detail::own_storage<BlockDim, Policy, detail::nothing, Layout, Index, D...>();
        detail::without_value<F> map{f};
        detail::drop op;
        detail::call<BlockDim, Layout, Policy>(shared, begin, end, map, op, detail::nothing{}, descriptors...);
    }
}

/// The same with shared memory that the caller places.
///
/// @code
/// __shared__ cte::storage_for<256, cte::warp> shared;
/// const auto count = [=](int i) { atomicAdd(levels + columns[i], 1); };
/// cte::for_each<256, cte::scanned, cte::warp>(shared, begin, end, count);
/// @endcode
///
/// @param storage  as in `for_each_index`
/// @param f        called once for each index, by any lane
///
/// See `for_each_index` for everything else.
template <int BlockDim, class Layout, class Policy = automatic, class Storage, class Index, class F, class... D,
          std::enable_if_t<detail::is_storage<Storage>, int> = 0>
__device__ __forceinline__ void for_each(Storage& storage, Index begin, Index end, F f, D... descriptors) {
    detail::check_storage<BlockDim, Policy, Storage>();
    if constexpr (detail::declares_members<Policy, BlockDim, detail::nothing, Layout, Index, D...>()) {
        auto&& shared = storage.template as<typename Policy::template temp<BlockDim, detail::nothing, Layout, Index, D...>, Policy>();
        detail::without_value<F> map{f};
        detail::drop op;
        detail::call<BlockDim, Layout, Policy>(shared, begin, end, map, op, detail::nothing{}, descriptors...);
    }
}

}  // namespace cte
