// Three classes of tasks: the block runs those of at least a block's size, one after another; then each warp runs those of its lanes
// of at least a warp's size; then each lane runs its own small one (Merrill, Garland, Grimshaw, PPoPP 2012; Gunrock's dynamic
// grouping).
#pragma once

#include <cte/along.cuh>
#include <cte/block.cuh>

namespace cte {

namespace detail {

template <int BlockDim, class T>
struct classes_memory {
    static constexpr int per_lane = staged_per_thread<BlockDim, T>();
    turn_memory turn;
    values_of<T, BlockDim * per_lane> values;
    values_of<T, BlockDim / lanes> sums;
};
template <int BlockDim>
struct classes_memory<BlockDim, nothing> {
    static constexpr int per_lane = 1;
    turn_memory turn;
};

/// Reduces `run` over [from, bound) by a warp; lane 0 has the result. `values` is memory for `per_lane` values per lane.
template <int per_lane, class T, class Index, class Run, class Reduce>
__device__ partial<T> reduce_by_warp(T* values, Index from, Index bound, Run run, const T& init, Reduce& op) {
    using count = std::make_unsigned_t<Index>;
    const count size = size_of(from, bound);
    partial<T> sum{init};
    if constexpr (is_nothing<T>) {
        run_along(from, bound, run);
    } else if constexpr (is_commutative<Reduce>) {
        run_along(from, bound, [&](Index i) { sum.append(run(i), op); });
        __syncwarp();
        sum.value = reduce_lanes<lanes>(sum.value, size < lanes ? static_cast<int>(size) : lanes, op);
    } else {
        const int lane = lane_number();
        const auto at = [&](count i) { return run(static_cast<Index>(static_cast<count>(from) + i)); };
        constexpr int strip = per_lane * lanes;
        for (count done = 0; done < size; done += strip) {
            const int length = size - done < strip ? static_cast<int>(size - done) : strip;
            stage<lanes, per_lane>(values, length, lane, [&](int i) { return at(done + i); });
            __syncwarp();
            partial<T> mine{init};
#pragma unroll
            for (int k = 0; k < per_lane; ++k) {
                if (lane * per_lane + k < length) mine.append(values[lane * per_lane + k], op);
            }
            __syncwarp();
            sum.append(reduce_lanes<lanes>(mine.value, (length - 1) / per_lane + 1, op), op);
        }
    }
    return sum;
}

}  // namespace detail

/// A policy: the block runs tasks of at least its own size together, each warp those of at least 32, each lane its own small one.
///
/// Use it if the whole block calls, and tasks fall into classes: a few fine tasks, a few dozen, or more than the block has threads.
///
/// @code
/// const auto visit = [=](int i, int level) { atomicMin(levels + columns[i], level + 1); };
/// cte::for_each<256, cte::scanned, cte::thread_warp_block>(begin, end, visit, row < rows ? levels[row] : 0);
/// @endcode
///
/// All threads of the block call together: the policy contains barriers. It keeps the contract of cte/policy.cuh. In the reference
/// kernel (bench/cte_registers.py), a call uses 7224 bytes of shared memory (at most 24 kilobytes of values) and 32 registers.
/// Descriptors take shared memory of their own: one of each type.
struct thread_warp_block {
    template <int BlockDim, class T, class... Call>
    using temp = detail::classes_memory<BlockDim, T>;
    static constexpr bool whole_block = true;

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(temp<BlockDim, T>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        using namespace detail;
        using count = std::make_unsigned_t<Index>;
        partial<T> sum{init};
        run_long<BlockDim>(shared, begin, end, BlockDim, map, op, sum, descriptors...);
        const count size = begin < end ? static_cast<count>(end - begin) : 0;
        one_by_one(size >= lanes && size < BlockDim, [&](int owner) {
            const partial<T> theirs = by_warp<BlockDim>(shared, map, shuffle(begin, owner), shuffle(end, owner), init, op,
                                                        shuffle(descriptors, owner)...);
            if constexpr (!is_nothing<T>) {
                const T total = shuffle(theirs.value, 0);
                if (lane_number() == owner) sum = {total, true};
            }
        });
        __syncthreads();
        if (size >= lanes) return sum.after(init, op);
        T result = init;
        for (Index i = begin; i < end; ++i) result = op(result, map(i, descriptors...));
        return result;
    }

    /// The block runs the tasks of at least `least` fine tasks one after another. Returns whether there was any.
    template <int BlockDim, class T, class Index, class Map, class Reduce, class... D>
    __device__ static bool run_long(temp<BlockDim, T>& shared, Index begin, Index end, int least, Map& map, Reduce& op,
                                    detail::partial<T>& sum, const D&... descriptors) {
        using namespace detail;
        enter_block<BlockDim>();
        const bool waits = begin < end && static_cast<std::make_unsigned_t<Index>>(end - begin) >= least;
        const auto run_one = [&](Index first, Index last, bool mine, auto& columns) {
            const auto run = [&](Index i) {
                const auto call = [&](const auto&... theirs) { return map(i, theirs...); };
                return columns.run(0, call);
            };
            by_block<BlockDim>(shared, run, mine, first, last, sum, op);
        };
        return take_turns(shared.turn, waits, begin, end, run_one, descriptors...);
    }

   private:
    /// Each warp runs a part of a task that the block runs together. The result is appended to `sum` in the thread that owns the task.
    template <int BlockDim, class T, class Index, class Run, class Reduce>
    __device__ static void by_block(temp<BlockDim, T>& shared, Run run, bool mine, Index begin, Index end, detail::partial<T>& sum,
                                    Reduce& op) {
        using namespace detail;
        using count = std::make_unsigned_t<Index>;
        const count size = static_cast<count>(end - begin), part = ((size - 1) / BlockDim + 1) * lanes;
        const count from = warp_number() * part < size ? warp_number() * part : size;
        const count bound = size - from < part ? size : from + part;
        const auto index = [=](count place) { return static_cast<Index>(static_cast<count>(begin) + place); };
        T* values = nullptr;
        constexpr int per_lane = temp<BlockDim, T>::per_lane;
        if constexpr (!is_nothing<T>) values = shared.values.begin() + warp_number() * per_lane * lanes;
        const partial<T> theirs = reduce_by_warp<per_lane>(values, index(from), index(bound), run, sum.value, op);
        if constexpr (!is_nothing<T>) {
            if (lane_number() == 0 && theirs.some) shared.sums[warp_number()] = theirs.value;
            __syncthreads();
            if (mine) {
                for (int warp = 0; warp < BlockDim / lanes && warp * part < size; ++warp) sum.append(shared.sums[warp], op);
            }
        }
    }

    template <int BlockDim, class T, class Index, class Map, class Reduce, class... D>
    __device__ static detail::partial<T> by_warp(temp<BlockDim, T>& shared, Map& map, Index begin, Index end, const T& init,
                                                 Reduce& op, const D&... descriptors) {
        using namespace detail;
        T* values = nullptr;
        constexpr int per_lane = temp<BlockDim, T>::per_lane;
        if constexpr (!is_nothing<T>) values = shared.values.begin() + warp_number() * per_lane * lanes;
        return reduce_by_warp<per_lane>(values, begin, end, [&](Index i) { return map(i, descriptors...); }, init, op);
    }
};

}  // namespace cte
