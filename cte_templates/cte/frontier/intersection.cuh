// What pairs of sorted lists have in common, counted by all lanes.
#pragma once

#include <cte/block.cuh>
#include <cte/for_each.cuh>

namespace cte {
namespace detail {

/// Two sorted lists and how their intersection is cut into fine tasks: pieces of a merge, or elements of the shorter list, each of which
/// is searched for in the longer one.
template <class Index>
struct list_pair {
    static constexpr int piece = 32;  // elements that a fine task merges

    Index a, a_size, b, b_size;  // a is the shorter list
    bool merges;

    __device__ static list_pair of(Index a, Index a_size, Index b, Index b_size) {
        const bool swaps = b_size < a_size;
        const Index size = swaps ? b_size : a_size, other = swaps ? a_size : b_size;
        // A search takes a step for each bit of the longer list's size. Such a step costs more than one of a merge, and lanes that
        // search wait for those that merge: lists are merged if that takes up to four times as many.
        using wide = unsigned long long;
        const wide search = 64 - __clzll(static_cast<long long>(other));
        const bool merges = static_cast<wide>(size) + other <= 4 * search * size;
        return {swaps ? b : a, size, swaps ? a : b, other, merges};
    }

    /// The number of fine tasks.
    __device__ Index pieces() const {
        if (a_size == 0) return 0;
        return merges ? (a_size + b_size - 1) / piece + 1 : a_size;
    }
};

/// The number of elements of a piece of the merge that are in both lists. If elements are equal, that of `a` is first.
template <class Index, class T>
__device__ unsigned matches_of_merge(const T* list, const list_pair<Index>& pair, Index number) {
    const Index first = number * pair.piece, all = pair.a_size + pair.b_size;
    const Index bound = all - first < pair.piece ? all : first + pair.piece;
    const Index low = first > pair.b_size ? first - pair.b_size : 0, high = first < pair.a_size ? first : pair.a_size;
    Index i = partition_point(low, high, [&](Index k) { return !(list[pair.b + (first - 1 - k)] < list[pair.a + k]); });
    Index j = first - i;
    unsigned found = 0;
    // Equal elements are taken together, even if a piece ends between them: the next one begins after that of `a`.
    while (i + j < bound && i < pair.a_size && j < pair.b_size) {
        const T ours = list[pair.a + i], theirs = list[pair.b + j];
        found += ours == theirs;
        i += !(theirs < ours);
        j += !(ours < theirs);
    }
    return found;
}

template <class Index, class T>
__device__ unsigned matches_of_search(const T* list, const list_pair<Index>& pair, Index number) {
    const T wanted = list[pair.a + number];
    const Index bound = pair.b + pair.b_size;
    const Index place = partition_point(pair.b, bound, [&](Index k) { return list[k] < wanted; });
    return place < bound && !(wanted < list[place]);
}

}  // namespace detail

/// Counts, for each thread, the elements that its two sorted lists have in common.
///
/// Use it to count triangles: the neighbors that the ends of an edge share. The lanes share the work of all their pairs. Lists of
/// similar sizes are merged in pieces; if one is much shorter, its elements are searched for in the other.
///
/// @code
/// // For each row of a sparse matrix with sorted columns, the columns that it shares with the row after it.
/// const int row = min(int(blockIdx.x * 256 + threadIdx.x), rows - 1);
/// const int begin = offsets[row], middle = offsets[row + 1], end = offsets[min(row + 2, rows)];
/// const auto shared = cte::intersection_size<256>(columns, begin, middle, middle, end);
/// out[row] = shared;
/// @endcode
///
/// @tparam BlockDim          threads of the block: a multiple of 32, up to 1024
/// @tparam Policy            one of cte/policies/*.cuh, or your own (cte/policy.cuh)
/// @param list               the memory that holds both lists; the same in all threads of the block
/// @param a_begin, a_end     one list: indices of 32 or 64 bits, `a_begin <= a_end`
/// @param b_begin, b_end     the other one
/// @return                   the thread's own count
///
/// **Required.** Each list is sorted and has no duplicates. The sum of the sizes of two lists fits in `Index`. All lanes of a warp call
/// together, or all threads of the block for a policy with `whole_block`, as in `for_each_index`; those without lists pass empty ones.
///
/// **Shared memory and registers** are those of `for_each_index` with the policy and a descriptor of 20 bytes (40 with 64-bit indices).
template <int BlockDim, class Policy = automatic, class T, class Index>
__device__ __forceinline__ unsigned long long intersection_size(const T* list, Index a_begin, Index a_end, Index b_begin, Index b_end) {
    using pair = detail::list_pair<Index>;
    const pair mine = pair::of(a_begin, a_end - a_begin, b_begin, b_end - b_begin);
    const auto count = uniform([list](Index number, const pair& lists) {
        return static_cast<unsigned long long>(lists.merges ? detail::matches_of_merge(list, lists, number)
                                                            : detail::matches_of_search(list, lists, number));
    });
    return for_each_index<BlockDim, disjoint, Policy>(Index{0}, mine.pieces(), count, plus{}, 0ull, mine);
}

}  // namespace cte
