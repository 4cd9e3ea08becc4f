// Groups of `Width` lanes run one task after the other (virtual warps; Hong et al., PPoPP 2011; Khorasani 2016, 4.2.1).
#pragma once

#include <cte/policies/one_per_lane.cuh>
#include <cte/warp.cuh>

namespace cte {

template <int Width>
struct sub_warp {
    static_assert(Width == 2 || Width == 4 || Width == 8 || Width == 16 || Width == 32,
                  "cte::sub_warp<Width>: a sub-warp has 2, 4, 8, 16 or 32 lanes");

    template <int BlockDim, class T>
    using temp = detail::nothing;
    static constexpr bool whole_block = false;

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(detail::nothing& none, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        using namespace detail;
        if (!whole_warp()) {
            return one_per_lane::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
        }
        constexpr int groups = lanes / Width;
        const int lane = lane_number();
        T result = init;
        // Neighbouring groups have neighbouring tasks at the same time, so that the warp reads neighbouring addresses.
#pragma unroll 1
        for (int round = 0; round < Width; ++round) {
            const int owner = round * groups + lane / Width;
            const Index first = shuffle(begin, owner), last = shuffle(end, owner);
            const partial<T> mine = of_group(first, last, map, op, init, shuffle(descriptors, owner)...);
            if constexpr (!is_nothing<T>) {
                const T value = shuffle(mine.value, lane % groups * Width);
                if (lane / groups == round && begin < end) result = op(init, value);
            }
        }
        return result;
    }

   private:
    /// The reduction of a group's task in its first lane, without `init`.
    template <class T, class Index, class Map, class Reduce, class... D>
    __device__ static detail::partial<T> of_group(Index first, Index last, Map& map, Reduce& op, const T& init,
                                               const D&... descriptors) {
        using namespace detail;
        const int rank = lane_number() % Width;
        const unsigned group = group_mask<Width>();
        partial<T> sum{init};
        if constexpr (is_nothing<T>) {
            for (Index i = first + rank; i < last; i += Width) map(i, descriptors...);
        } else if constexpr (is_commutative<Reduce>) {
            Index i = first + rank;
            if (i < last) {
                sum.append(map(i, descriptors...), op);
                while ((i += Width) < last) sum.value = op(sum.value, map(i, descriptors...));
            }
            __syncwarp();
            const int count = last - first < Width ? static_cast<int>(last - first) : Width;
            sum.value = reduce_lanes<Width>(sum.value, count, op);
        } else {
            for (Index from = first; from < last; from += Width) {
                const int count = last - from < Width ? static_cast<int>(last - from) : Width;
                T value = init;  // of lanes behind the end, for nobody
                if (rank < count) value = map(from + rank, descriptors...);
                __syncwarp(group);
                sum.append(reduce_lanes<Width>(value, count, op, group), op);
            }
            __syncwarp();
        }
        return sum;
    }
};

}  // namespace cte
