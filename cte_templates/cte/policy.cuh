// What a policy is: the contract between a call and the policy that runs it, its checks, and the tools to write one with.
#pragma once

#include <cte/tasks.cuh>
#include <cte/warp.cuh>

#include <utility>

namespace cte {

/// A policy decides which threads run which fine tasks of a call. It is a class that is never constructed, with three members.
/// Those in cte/policies/*.cuh are examples; docs/cte.md has a complete one, which works on whole warps.
///
/// @code
/// struct backwards {  // a lane runs its own task, from the last fine task to the first
///     static constexpr bool whole_block = false;
///
///     template <int BlockDim, class T, class... Call>
///     struct temp {};
///
///     template <int BlockDim, class Layout, class Temp, class T, class Index, class Map, class Reduce, class... D>
///     __device__ static T reduce(Temp&, Index begin, Index end, Map& map, Reduce& op, T init, const D&... descriptors) {
///         if (begin == end) return init;
///         T sum = map(--end, descriptors...);
///         while (begin != end) sum = op(map(--end, descriptors...), sum);
///         return op(init, sum);
///     }
/// };
///
/// __global__ void row_sums(const int* offsets, const float* values, float* sums) {
///     const int row = blockIdx.x * 256 + threadIdx.x;
///     const auto value = [=](int i) { return values[i]; };
///     sums[row] = cte::for_each_index<256, cte::scanned, backwards>(offsets[row], offsets[row + 1], value, cte::plus{}, 0.0f);
/// }
/// @endcode
///
/// **The members.**
/// - `static constexpr bool whole_block`: whether the policy needs all threads of the block, or works for any lanes of a warp.
/// - `temp<BlockDim, T, Call...>`: the shared memory of a block if `whole_block`, else of each warp. `Call` is the layout, the
///   type of the indices and those of the descriptors, or nothing. Without them (a `cte::storage`), `temp` has at least
///   the size and the alignment that any call with values of type `T` needs. An empty class means no shared memory.
/// - `reduce<BlockDim, Layout>(temp, begin, end, map, op, init, descriptors...)`: runs the tasks and returns the thread's result.
///
/// **What `reduce` must do.**
/// - Call `map(i, descriptors...)` exactly once for each `i` in [begin, end) of each calling thread, with that thread's
///   descriptors. Any of the calling threads may do so, in any order.
/// - Return, in the thread that passed `begin` and `end`, `init` and the values combined by `op`. `op` is associative: group the values as
///   you like, but keep their order, with `init` as the first operand, once. They may be reordered only if `tools::is_commutative<Reduce>`.
///   For an empty task, the result is `init`.
/// - Leave the shared memory free for the next call, which begins as soon as the first thread returns. A policy of a warp ends
///   with `__syncwarp()` if lanes read what others wrote. A policy of the block begins or ends with `__syncthreads()`.
///
/// **What `reduce` can rely on.**
/// - `BlockDim` is the number of threads of the block, a multiple of 32 up to 1024. The block may have one to three dimensions.
/// - `Layout` is `scanned` (a lane's `end` is the next lane's `begin`; across the block if `whole_block`) or `disjoint`. `Index`
///   is an integer of 32 or 64 bits, with `begin <= end`. `end` may be the largest value of its type: count what is left instead
///   of stepping past it.
/// - `T` and the descriptors are trivially copyable and can be assigned, but may lack a default constructor. `for_each` passes an
///   empty class as `T`: storing or moving it is wasted work, but harmless.
/// - `map` and `op` are the thread's own. They mean the same in all lanes of the warp, and in all threads of the block if
///   `whole_block`.
/// - The shared memory is the block's or the warp's own until `reduce` returns. Nothing has constructed it, and it holds what the
///   previous call left.
///
/// **Which threads are present, and barriers.**
/// - If `whole_block`, all threads of the block call together, and `__syncthreads()` is allowed.
/// - Otherwise, any lanes of a warp may call, at any time. No block-wide barrier is allowed, and nothing may depend on another
///   warp's call. If `tools::whole_warp()`, all 32 lanes are present, and shuffles, votes and `__syncwarp()` are allowed. If not,
///   each lane runs its own task, for instance with `one_per_lane::reduce`.
/// - `map` and `op` may leave the lanes diverged, so call `__syncwarp()` before lanes read what others wrote.
///
/// A policy of your own works with `for_each_index`, `for_each` and `storage_for`. `exclusive_scan` and `any` take the policies
/// that they name. If the compiler can see that the contract is broken, it reports an error that says so.
namespace tools {

using detail::is_commutative;
using detail::lane_number;
using detail::reduce_lanes;
using detail::shuffle;
using detail::thread_number;
using detail::warp_number;
using detail::whole_warp;

}  // namespace tools

namespace detail {

template <class Policy, class = void>
constexpr bool says_who_calls = false;
template <class Policy>
constexpr bool says_who_calls<Policy, std::enable_if_t<std::is_same_v<decltype(Policy::whole_block), const bool>>> = true;

template <class Void, class Policy, int BlockDim, class... T>
constexpr bool has_temp = false;
template <class Policy, int BlockDim, class... T>
constexpr bool has_temp<std::void_t<typename Policy::template temp<BlockDim, T...>>, Policy, BlockDim, T...> = true;

template <class Temp>
constexpr bool is_plain_memory = std::is_trivially_default_constructible_v<Temp> && std::is_trivially_destructible_v<Temp>;

template <class Temp, class Any>
constexpr bool fits_in = sizeof(Temp) <= sizeof(Any) && alignof(Temp) <= alignof(Any);

/// Whether a policy declares what a call needs to know before it runs. Says what is missing.
template <class Policy, int BlockDim, class T, class... Call>
__host__ __device__ constexpr bool declares_members() {
    constexpr bool who = says_who_calls<Policy>, memory = has_temp<void, Policy, BlockDim, T> && has_temp<void, Policy, BlockDim, T, Call...>;
    static_assert(who, "a CTE policy must have a member static constexpr bool whole_block (see cte/policy.cuh)");
    static_assert(memory, "a CTE policy must have a member template temp<int BlockDim, class T, class... Call> (see cte/policy.cuh)");
    if constexpr (who && memory) {
        using temp = typename Policy::template temp<BlockDim, T, Call...>;
        using any = typename Policy::template temp<BlockDim, T>;
        static_assert(is_plain_memory<temp> && is_plain_memory<any>,
                      "nothing constructs or destroys the temp of a CTE policy: it must not have a constructor or destructor of its own "
                      "(see cte/policy.cuh)");
        static_assert(fits_in<temp, any>,
                      "temp<BlockDim, T> of a CTE policy must have at least the size and the alignment of that of any "
                      "call with values of type T (see cte/policy.cuh)");
        return is_plain_memory<temp> && is_plain_memory<any> && fits_in<temp, any>;
    } else {
        return false;
    }
}

template <class Void, class Policy, int BlockDim, class Layout, class T, class... Argument>
constexpr bool has_reduce = false;
template <class Policy, int BlockDim, class Layout, class T, class... Argument>
constexpr bool has_reduce<
    std::enable_if_t<std::is_same_v<decltype(Policy::template reduce<BlockDim, Layout>(std::declval<Argument>()...)), T>>, Policy,
    BlockDim, Layout, T, Argument...> = true;

}  // namespace detail
}  // namespace cte
