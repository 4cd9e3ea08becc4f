// Groups of lanes run one task after another (virtual warps: Hong et al., PPoPP 2011; Khorasani 2016, 4.2.1).
#pragma once

#include <cte/policies/one_per_lane.cuh>
#include <cte/warp.cuh>

namespace cte {

/// A policy: groups of `Width` lanes run their tasks one after another, in `Width` rounds.
///
/// Use it if all tasks have the same size, between 8 and about 32, and much data is read for each. Choose `Width` near that size.
///
/// @code
/// // The operator is known to commute, so each lane reduces the values that it meets.
/// const auto larger = cte::commutative([](float a, float b) { return fmaxf(fabsf(a), fabsf(b)); });
/// const auto value = [=](int i) { return values[i]; };
/// const float peak = cte::for_each_index<256, cte::scanned, cte::sub_warp<8>>(begin, end, value, larger, 0.0f);
/// if (row < rows) out[row] = peak;
/// @endcode
///
/// @tparam Width  lanes of a group: 2, 4, 8, 16 or 32
///
/// If the operator is not known to commute, the lanes of a group reduce each strip of `Width` values in order, which costs
/// log2(Width) steps per strip. The policy keeps the contract of cte/policy.cuh. In the reference kernel (bench/cte_registers.py), a
/// call uses no shared memory and 32 registers.
template <int Width>
struct sub_warp {
    static_assert(Width == 2 || Width == 4 || Width == 8 || Width == 16 || Width == 32,
                  "cte::sub_warp<Width>: a sub-warp has 2, 4, 8, 16 or 32 lanes");

    template <int BlockDim, class T, class... Call>
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
        // Neighboring groups run neighboring tasks at the same time, so that the warp reads neighboring addresses.
#pragma unroll 1
        for (int round = 0; round < Width; ++round) {
            const int owner = round * groups + lane / Width;
            const Index first = shuffle(begin, owner), last = shuffle(end, owner);
            const T mine = of_group(first, last, map, op, init, shuffle(descriptors, owner)...);
            if constexpr (!is_nothing<T>) {
                const T value = shuffle(mine, lane % groups * Width);
                if (lane / groups == round && begin < end) result = op(init, value);
            }
        }
        return result;
    }

   private:
    /// The reduction of a group's task without `init`, in the group's first lane.
    template <class T, class Index, class Map, class Reduce, class... D>
    __device__ static T of_group(Index first, Index last, Map& map, Reduce& op, const T& init, const D&... descriptors) {
        using namespace detail;
        using count = std::make_unsigned_t<Index>;
        const int rank = lane_number() % Width;
        const unsigned group = group_mask<Width>();
        const count size = size_of(first, last);
        partial<T> sum{init};
        if constexpr (is_nothing<T> || is_commutative<Reduce>) {
            count turns = turns_of(size, rank, Width);
            Index i = static_cast<Index>(static_cast<count>(first) + rank);
            if (turns != 0) sum.value = map(i, descriptors...);
#pragma unroll 4
            for (; turns > 1; --turns) {
                i += Width;
                sum.value = op(sum.value, map(i, descriptors...));
            }
            if constexpr (is_nothing<T>) return sum.value;
            __syncwarp();
            sum.value = reduce_lanes<Width>(sum.value, size < Width ? static_cast<int>(size) : Width, op);
        } else {
            count from = static_cast<count>(first);
            for (count left = size; left != 0; from += Width) {
                const int some = left < Width ? static_cast<int>(left) : Width;
                T value = init;  // never read in lanes past the end
                if (rank < some) value = map(static_cast<Index>(from + rank), descriptors...);
                __syncwarp(group);
                sum.append(reduce_lanes<Width>(value, some, op, group), op);
                left -= some;
            }
            __syncwarp();
        }
        return sum.value;
    }
};

}  // namespace cte
