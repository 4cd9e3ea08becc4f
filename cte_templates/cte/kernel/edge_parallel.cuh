// All fine tasks of a grid in equal pieces, whosever they are; results by atomics. The order of a task's values is not kept.
#pragma once

#include <cte/kernel/atomics.cuh>

namespace cte::kernel {

template <int BlockDim>
struct edge_parallel {
    static_assert(BlockDim % cte::detail::lanes == 0 && BlockDim >= cte::detail::lanes && BlockDim <= 1024,
                  "BlockDim is the number of threads of the block: a multiple of 32, up to 1024");

    /// Fine tasks that a lane takes in a row of the warp's pieces.
    static constexpr int per_lane = 8;

    /// How many blocks give each lane `per_lane` fine tasks; fewer do, too.
    __host__ __device__ static constexpr long long blocks(long long fine) {
        return fine <= BlockDim * per_lane ? 1 : (fine - 1) / (BlockDim * per_lane) + 1;
    }

    /// `out[owner_of(i)] = op(out[owner_of(i)], map(i))` for i in [0, fine); `op` is cte::plus, cte::minimum or cte::maximum. Neighbours
    /// with one owner run faster, but need not occur. Called by all threads of a grid of one dimension.
    template <class Index, class OwnerOf, class Map, class Op, class T>
    __device__ static void reduce(Index fine, OwnerOf owner_of, Map map, Op op, T* out) {
        using namespace detail;
        check_atomic<Op, T>();
        using owner_type = std::decay_t<decltype(owner_of(fine))>;
        constexpr int piece = per_lane * lanes;
        const int lane = lane_number();
        const long long stride = static_cast<long long>(gridDim.x) * BlockDim * per_lane;
        long long from = (static_cast<long long>(blockIdx.x) * (BlockDim / lanes) + warp_number()) * piece;
        for (; from < fine; from += stride) {
            const int length = fine - from < piece ? static_cast<int>(fine - from) : piece;
            owner_type owners[per_lane];
            T values[per_lane];
#pragma unroll
            for (int turn = 0; turn < per_lane; ++turn) {
                const int place = turn * lanes + lane;
                owners[turn] = {};
                values[turn] = {};
                if (place < length) {
                    owners[turn] = owner_of(static_cast<Index>(from + place));
                    values[turn] = map(static_cast<Index>(from + place));
                }
            }
            open_run<owner_type, T> run;
#pragma unroll
            for (int turn = 0; turn < per_lane; ++turn) {
                const int left = length - turn * lanes;
                if (left > 0) run.add(owners[turn], values[turn], left < lanes ? left : lanes, op, out);
            }
            run.close(op, out);
        }
    }
};

}  // namespace cte::kernel
