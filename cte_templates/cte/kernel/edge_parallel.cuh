// All fine tasks of a grid in equal pieces, whichever tasks they belong to. Results by atomics.
#pragma once

#include <cte/kernel/atomics.cuh>

namespace cte::kernel {

/// A form for whole kernels: each warp takes equal pieces of the list of all fine tasks, and combines the results by atomics.
///
/// Use it if the owner of each fine task is stored anyway, as in an edge list or a matrix in COO format. The sizes of tasks do not matter.
/// The order of a task's values is not kept: floating-point sums may differ in their last bits from run to run.
///
/// @code
/// using form = cte::kernel::edge_parallel<256>;
///
/// // `sums` holds zeros beforehand. The grid has form::blocks(entries) blocks.
/// __global__ void __launch_bounds__(256) row_sums(int entries, const int* rows, const float* values, float* sums) {
///     const auto row_of = [=](int i) { return rows[i]; };
///     form::reduce(entries, row_of, [=](int i) { return values[i]; }, cte::plus{}, sums);
/// }
/// @endcode
///
/// @tparam BlockDim  threads of the block: a multiple of 32, up to 1024
///
/// In the reference kernel (bench/cte_registers.py), `reduce` uses no shared memory and 32 registers.
template <int BlockDim>
struct edge_parallel {
    static_assert(BlockDim % cte::detail::lanes == 0 && BlockDim >= cte::detail::lanes && BlockDim <= 1024,
                  "BlockDim is the number of threads of the block: a multiple of 32, up to 1024");

    /// The number of fine tasks that a lane takes from each of the warp's pieces.
    static constexpr int per_lane = 8;

    /// The number of blocks at which each warp takes one piece. With fewer blocks, each warp takes several.
    __host__ __device__ static constexpr long long blocks(long long fine) {
        return fine <= BlockDim * per_lane ? 1 : (fine - 1) / (BlockDim * per_lane) + 1;
    }

    /// `out[owner_of(i)] = op(out[owner_of(i)], map(i))` for each `i` in [0, fine).
    ///
    /// @param fine      the number of fine tasks
    /// @param owner_of  returns the owner of a fine task: an integer. Runs of neighbors with one owner cost one atomic
    /// @param map       returns the value of a fine task, once for each
    /// @param op        `cte::plus`, `cte::minimum` or `cte::maximum`
    /// @param out       the results by owner, with their initial values: numbers of 32 or 64 bits
    ///
    /// All threads of a one-dimensional grid call, in blocks of `BlockDim` threads.
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
