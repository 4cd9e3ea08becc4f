// Chooses for each warp, from the sizes of its tasks, how it runs them.
#pragma once

#include <cte/policies/warp.cuh>
#include <cte/policies/warp_chunked.cuh>
#include <cte/policies/warp_staged.cuh>

namespace cte {

struct automatic {
    /// A warp's part; warps that go different ways at the same time have parts of their own.
    template <int BlockDim, class T>
    struct temp {
        union {
            typename warp_staged::temp<BlockDim, T> staged;
            typename warp::temp<BlockDim, T> searched;
            typename warp_chunked::temp<BlockDim, T> chunked;
        };
    };
    static constexpr bool whole_block = false;

    enum class way { staged, searched, chunked };

    /// What is known when the kernel is compiled. Small values of neighbouring indices that nobody need know the owner of are staged:
    /// what is read comes in whole lines. Large descriptors lead to more that is read for each task: lanes that search the owners read
    /// it once for all lanes of a task. Otherwise reductions between lanes are what costs, and chunks have the fewest.
    template <class Layout, class T, class... D>
    static constexpr way way_for =
        detail::is_nothing<T> || (std::is_same_v<Layout, scanned> && sizeof...(D) == 0 && sizeof(T) <= 8) ? way::staged
        : (0 + ... + sizeof(D)) > 16                                                                       ? way::searched
                                                                                                           : way::chunked;

    /// Up to so many fine tasks in each lane cost less in a loop of its own: consecutive lanes share the lines that they read.
    static constexpr int few = 5;

    /// From more than so many on a task keeps the lanes busy alone.
    static constexpr int giant = 128;

    /// Whether every lane of the warp has few fine tasks; the same in all lanes.
    template <class Index>
    __device__ static bool has_few(Index begin, Index end) {
        return !__any_sync(detail::full_warp, end - begin > few);
    }

    /// Whether tasks that follow one another fill one strip of `warp_staged` to three quarters or more, which then costs less than a
    /// loop; the same in all lanes.
    template <class T, class Index>
    __device__ static bool fills_strip(Index begin, Index end) {
        using namespace detail;
        constexpr int length = staged_per_lane<T> * lanes;
        const Index total = shuffle(end, lanes - 1) - shuffle(begin, 0);
        return total <= length && total >= length / 4 * 3;
    }

    /// Whether sharing would cost more than it saves: by how much the largest task exceeds the mean. The same in all lanes.
    template <class Layout, class T, class Index>
    __device__ static bool is_even(Index begin, Index end) {
        using namespace detail;
        using count = std::make_unsigned_t<Index>;
        const count size = static_cast<count>(end - begin), largest = warp_maximum(size);
        if (largest <= few) return true;
        if (largest > static_cast<count>(-1) / (16 * lanes)) return false;
        // A loop of a lane's own reads one place for all neighbours with the same tasks, and keeps a large value in registers.
        const int excess = std::is_same_v<Layout, disjoint> && some_alike(begin) ? 8 : sizeof(T) > 8 ? 3 : 2;
        return largest * lanes <= excess * warp_sum(size);
    }

    /// Whether a good part of the lanes have tasks that begin where those of the lane below do.
    template <class Index>
    __device__ static bool some_alike(Index begin) {
        using namespace detail;
        return __popc(__ballot_sync(full_warp, begin == shuffle_up(begin, 1))) > lanes / 4;
    }

    /// Whether each lane runs its own tasks quickest in a loop of its own; the same in all lanes.
    template <way chosen, class Layout, class T, class... D, class Index>
    __device__ static bool does_best_alone(Index begin, Index end) {
        constexpr bool listed = std::is_same_v<Layout, scanned> && sizeof...(D) == 0;
        if constexpr (chosen == way::chunked) {
            return is_even<Layout, T>(begin, end);
        } else if constexpr (listed && detail::is_nothing<T>) {
            return false;  // nothing is cheaper than to go along the list
        } else if constexpr (listed && chosen == way::staged) {
            return has_few(begin, end) && !fills_strip<T>(begin, end);
        } else {
            return has_few(begin, end);
        }
    }

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(temp<BlockDim, T>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        using namespace detail;
        constexpr way chosen = way_for<Layout, T, D...>;
        if (!whole_warp() || does_best_alone<chosen, Layout, T, D...>(begin, end)) {
            nothing none;
            return one_per_lane::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
        }
        if constexpr (chosen == way::searched) {
            return warp::reduce<BlockDim, Layout>(shared.searched, begin, end, map, op, init, descriptors...);
        } else if constexpr (chosen == way::chunked) {
            if (sizeof(T) <= 8 && __any_sync(full_warp, end - begin > giant)) {
                // Along a giant's small values neighbouring lanes go together.
                nothing none;
                return sub_warp<lanes>::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
            }
            return warp_chunked::of_whole_warp<BlockDim, Layout>(shared.chunked, begin, end, map, op, init, descriptors...);
        } else {
            nothing here;
            return warp_staged::strategy<T>::template of_whole_warp<BlockDim, Layout>(shared.staged, begin, end, map, op, init, here,
                                                                                     descriptors...);
        }
    }
};

}  // namespace cte
