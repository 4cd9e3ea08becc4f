// Chooses for each warp, from the sizes of its tasks, how it runs them.
#pragma once

#include <cte/policies/warp_chunked.cuh>
#include <cte/policies/warp_staged.cuh>

namespace cte {

struct automatic {
    /// Where neighbouring places are neighbouring indices that nobody need know the owner of, and values are small, it pays to map
    /// in the order of the indices: what is read comes in whole lines.
    template <class Layout, class T, class... D>
    static constexpr bool by_lines = std::is_same_v<Layout, scanned> && sizeof...(D) == 0 && sizeof(T) <= 8;

    template <int BlockDim, class T>
    union temp {
        typename warp_staged::temp<BlockDim, T> staged;
        typename warp_chunked::temp<BlockDim, T> chunked;
    };
    static constexpr bool whole_block = false;

    /// Up to so many fine tasks in each lane cost less in a loop of its own: consecutive lanes share the lines that they read.
    static constexpr int few = 5;

    /// Whether every lane of the warp has few fine tasks; the same in all lanes.
    template <class Index>
    __device__ static bool has_few(Index begin, Index end) {
        return !__any_sync(detail::full_warp, end - begin > few);
    }

    /// Whether the largest task is not much above the mean, so that sharing would cost more than it saves; the same in all lanes.
    template <class Index>
    __device__ static bool is_even(Index begin, Index end) {
        using namespace detail;
        using count = std::make_unsigned_t<Index>;
        const count size = static_cast<count>(end - begin), largest = warp_maximum(size);
        if (largest > static_cast<count>(-1) / (4 * lanes)) return false;
        return largest * lanes <= warp_sum(size) / 4 * 7 + 4 * lanes;
    }

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(temp<BlockDim, T>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        using namespace detail;
        constexpr bool lines = by_lines<Layout, T, D...>;
        // Without a reduction nothing is cheaper than to go along the list.
        if (!whole_warp() || (lines ? !is_nothing<T> && has_few(begin, end) : is_even(begin, end))) {
            nothing none;
            return one_per_lane::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
        }
        if constexpr (lines || is_nothing<T>) {
            nothing here;
            return warp_staged::strategy<T>::template of_whole_warp<BlockDim, Layout>(shared.staged, begin, end, map, op, init, here,
                                                                                     descriptors...);
        } else {
            return warp_chunked::of_whole_warp<BlockDim, Layout>(shared.chunked, begin, end, map, op, init, descriptors...);
        }
    }
};

}  // namespace cte
