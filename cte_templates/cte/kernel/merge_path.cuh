// One merge path for a whole grid: each block takes an equal piece of the walk through all tasks and all their fine tasks (Merrill,
// Garland, SC 2016).
#pragma once

#include <cte/path.cuh>
#include <cte/policies/block.cuh>

namespace cte::kernel {

/// What a block leaves for `fix_up`. Each run of `reduce` writes one for every block.
template <class T, class Index>
struct carry {
    T tail;        // of the task that began in the block and is open at its end
    T lead;        // of the task that was open at the block's beginning
    Index task;    // the number of that task if it ends in this block, else -1
    int has_lead;  // whether the block had fine tasks of it
};

/// A form for whole kernels: each thread takes an equal number of steps of the walk through all tasks and their fine tasks, so that one
/// giant task spreads over the grid. A second kernel, `fix_up`, completes the tasks that lie in several blocks.
///
/// Use it for any skew, empty tasks included, and for any operator: the order of values is kept, and there are no atomics.
///
/// @code
/// using form = cte::kernel::merge_path<256, 7>;
/// using carry = cte::kernel::carry<float, int>;
///
/// // The grid has form::blocks(rows, entries) blocks, and `carries` an element for each.
/// __global__ void __launch_bounds__(256) row_sums(int rows, const int* offsets, const float* values, float* sums, carry* carries) {
///     __shared__ form::temp<float> shared;
///     const auto value = [=](int i) { return values[i]; };
///     const auto put = [=](int row, float sum) { sums[row] = sum; };
///     form::reduce(shared, rows, offsets, value, cte::plus{}, 0.0f, put, carries);
/// }
///
/// __global__ void __launch_bounds__(256, 4) fix_up_row_sums(int blocks, const int* offsets, float* sums, const carry* carries) {
///     __shared__ form::fix_up_temp<float> shared;
///     const auto put = [=](int row, float sum) { sums[row] = sum; };
///     form::fix_up(shared, blocks, offsets, cte::plus{}, 0.0f, put, carries);
/// }
/// @endcode
///
/// @tparam BlockDim        threads of the block: a multiple of 32, up to 1024
/// @tparam ItemsPerThread  steps that a thread takes, 1 to 32: an odd number avoids bank conflicts
///
/// In the reference kernels (bench/cte_registers.py), `reduce` uses 7240 bytes of shared memory and 32 registers, `fix_up` 13700 and
/// 54. Without the 4 in its launch bounds, ptxas 13.0 gives `fix_up` 40 registers on sm_90 and spills.
template <int BlockDim, int ItemsPerThread = 7>
struct merge_path {
    static_assert(BlockDim % detail::lanes == 0 && BlockDim >= detail::lanes && BlockDim <= 1024,
                  "BlockDim is the number of threads of the block: a multiple of 32, up to 1024");
    static_assert(ItemsPerThread >= 1 && ItemsPerThread <= 32,
                  "cte::kernel::merge_path: a thread takes 1 to 32 steps (an odd number avoids bank conflicts)");

    /// The number of steps that a block takes.
    static constexpr int tile = BlockDim * ItemsPerThread;

    /// The shared memory of a block of `reduce`. `T` is the type of the values.
    template <class T>
    struct temp {
        static constexpr int widest = sizeof(T) > sizeof(int) ? sizeof(T) : sizeof(int);
        // Where the tile's tasks end, then its values; later the results of its tasks. Each task and each value is a step.
        alignas(T) alignas(int) unsigned char bytes[tile * widest + sizeof(int) + alignof(T)];
        detail::carry_memory<BlockDim, T> carries;
        long long borders[2];
    };

    /// The shared memory of a block of `fix_up`.
    template <class T>
    using fix_up_temp = block::temp<BlockDim, T>;

    /// The number of blocks that `reduce` needs, and of the carries that it writes: at least one.
    __host__ __device__ static constexpr long long blocks(long long tasks, long long fine) {
        return tasks + fine <= tile ? 1 : (tasks + fine - 1) / tile + 1;
    }

    /// Reduces `map(i)` for each `i` in [offsets[task], offsets[task + 1]), for all tasks, and passes to `put` the results of those that
    /// lie in one block. `fix_up` does so for the others.
    ///
    /// @param shared     shared memory of the block
    /// @param tasks      the number of tasks
    /// @param offsets    where the tasks begin, and where the last one ends: `tasks + 1` signed integers
    /// @param map        returns the value of a fine task, once for each
    /// @param op         an associative operator; it need not commute
    /// @param init       the first operand of each task, used once
    /// @param put        called as `put(task, result)`, once for each task by `reduce` or `fix_up`
    /// @param carries    an element for each block, which this function writes and `fix_up` reads
    /// @param partition  what `divide` wrote for these offsets, or null: the blocks then search for their pieces
    ///
    /// All threads of at least `blocks(tasks, offsets[tasks] - offsets[0])` blocks call, in a one-dimensional grid.
    template <class T, class Index, class Map, class Reduce, class Put>
    __device__ static void reduce(temp<T>& shared, Index tasks, const Index* __restrict__ offsets, Map map, Reduce op, T init,
                                  Put put, carry<T, Index>* __restrict__ carries, const Index* __restrict__ partition = nullptr) {
        using namespace detail;
        static_assert(std::is_signed_v<Index>, "cte::kernel::merge_path: tasks and offsets are signed integers of one type");
        const int thread = thread_number();
        const Index origin = offsets[0];
        const long long fine = offsets[tasks] - origin, steps = tasks + fine;
        const long long step = static_cast<long long>(blockIdx.x) * tile;
        carry<T, Index>& left = carries[blockIdx.x];
        if (step >= steps) {
            if (thread == 0) left.task = -1;
            return;
        }
        const int length = steps - step < tile ? static_cast<int>(steps - step) : tile;
        if (partition != nullptr) {
            if (thread < 2) shared.borders[thread] = partition[blockIdx.x + thread];
            __syncthreads();
        } else {
            find_borders(shared.borders, tasks, fine, offsets, origin, step, step + length);
        }
        const Index task = static_cast<Index>(shared.borders[0]);
        const int count = static_cast<int>(shared.borders[1] - shared.borders[0]);  // tasks that end in the tile
        const Index first = static_cast<Index>(origin + (step - task));             // fine task
        const bool entered = task < tasks && first > offsets[task];                 // whether the first task began in an earlier block

        int* const bound = reinterpret_cast<int*>(shared.bytes);
        T* const values = aligned_after<T>(bound + count + 1);
        for (int i = thread; i < count; i += BlockDim) bound[i] = static_cast<int>(offsets[task + 1 + i] - first);
        if (thread == 0) bound[count] = length;  // more than there are: the task does not end here
        stage<BlockDim, ItemsPerThread>(values, length - count, thread, [&](int i) { return map(static_cast<Index>(first + i)); });
        __syncthreads();

        const int from = thread * ItemsPerThread < length ? thread * ItemsPerThread : length;
        const int mine = length - from < ItemsPerThread ? length - from : ItemsPerThread;
        const int least = from > length - count ? from - (length - count) : 0, most = from < count ? from : count;
        const int first_end = partition_point(least, most, [&](int i) { return bound[i] + i < from; });
        path_piece<T, ItemsPerThread> piece(init);
        piece.walk(first_end, from - first_end, mine, [&](int i) { return bound[i]; }, [&](int i) -> const T& { return values[i]; },
                   op, [&](const partial<T>& sum) { return sum.after(init, op); });
        const open_before<T> preceding = shared.carries.scan(piece.open, piece.closes(), op);

        T* const results = reinterpret_cast<T*>(shared.bytes);
        const auto put_first = [&](int i, const partial<T>& sum) {
            if (i == 0 && entered) {
                leave(left, task, sum);
            } else {
                results[i] = sum.after(init, op);
            }
        };
        piece.finish(first_end, preceding.open, op, put_first, [&](int i, const T& result) { results[i] = result; });
        if (thread == BlockDim - 1) {
            const partial<T> open = piece.closes() ? piece.open : joined(preceding.open, piece.open, op);
            if (count == 0 && entered) {
                leave(left, Index{-1}, open);
            } else {
                if (open.some) left.tail = open.value;
                if (!entered) left.task = -1;
            }
        }
        __syncthreads();
        for (int i = thread + (entered ? 1 : 0); i < count; i += BlockDim) put(task + i, results[i]);
    }

    /// Writes where the blocks' pieces of the walk begin. Use it if the offsets stay the same over many launches of `reduce`, whose
    /// blocks then need not search.
    ///
    /// @param tasks, offsets  as in `reduce`
    /// @param partition       space for `blocks(...) + 1` numbers
    ///
    /// At least `blocks(...) + 1` threads call, in a one-dimensional grid.
    template <class Index>
    __device__ static void divide(Index tasks, const Index* __restrict__ offsets, Index* __restrict__ partition) {
        const Index origin = offsets[0];
        const long long fine = offsets[tasks] - origin, steps = tasks + fine;
        const long long number = static_cast<long long>(blockIdx.x) * blockDim.x * blockDim.y * blockDim.z + detail::thread_number();
        if (number > blocks(tasks, fine)) return;
        const long long step = number * tile < steps ? number * tile : steps;
        const Index least = static_cast<Index>(step > fine ? step - fine : 0), most = static_cast<Index>(step < tasks ? step : tasks);
        partition[number] = detail::partition_point(least, most, [&](Index task) {
            return static_cast<long long>(offsets[task + 1] - origin) + task < step;
        });
    }

    /// Passes to `put` the results of the tasks that lie in several blocks of `reduce`.
    ///
    /// @param shared         shared memory of the block
    /// @param blocks         the number of blocks that ran `reduce`; that kernel must have ended
    /// @param offsets        as in `reduce`
    /// @param op, init, put  as in `reduce`
    /// @param carries        what `reduce` wrote
    ///
    /// All threads of a one-dimensional grid call, in blocks of `BlockDim` threads. One block is enough; with
    /// `blocks / BlockDim` blocks, it is fast.
    template <class T, class Index, class Reduce, class Put>
    __device__ static void fix_up(fix_up_temp<T>& shared, int blocks, const Index* __restrict__ offsets, Reduce op, T init, Put put,
                                  const carry<T, Index>* __restrict__ carries) {
        using namespace detail;
        for (unsigned base = blockIdx.x * BlockDim; base < static_cast<unsigned>(blocks); base += gridDim.x * BlockDim) {
            const int number = static_cast<int>(base) + thread_number();
            const Index task = number < blocks ? carries[number].task : Index{-1};
            int begin = 0, end = 0;  // the blocks that have fine tasks of it
            if (task >= 0) {
                begin = static_cast<int>((task + static_cast<long long>(offsets[task] - offsets[0])) / tile);
                end = number + (carries[number].has_lead ? 1 : 0);
            }
            const auto part = [=](int i, int first) { return i == first ? carries[i].tail : carries[i].lead; };
            const T result = block::reduce_countable<BlockDim, disjoint>(shared, begin, end, part, op, init, begin);
            if (task >= 0) put(task, result);
        }
    }

   private:
    /// Searches for the number of tasks that have ended before the steps `low` and `high` of the walk: one warp for each.
    template <class Index>
    __device__ static void find_borders(long long* borders, Index tasks, long long fine, const Index* offsets, Index origin,
                                        long long low, long long high) {
        using namespace detail;
        for (int which = warp_number(); which < 2; which += BlockDim / lanes) {
            const long long step = which == 0 ? low : high;
            const Index least = static_cast<Index>(step > fine ? step - fine : 0), most = static_cast<Index>(step < tasks ? step : tasks);
            const Index found = warp_partition_point(least, most, [&](Index task) {
                return static_cast<long long>(offsets[task + 1] - origin) + task < step;
            });
            if (lane_number() == 0) borders[which] = found;
        }
        __syncthreads();
    }

    template <class T>
    __device__ static T* aligned_after(int* bound) {
        if constexpr (alignof(T) <= alignof(int)) {
            return reinterpret_cast<T*>(bound);
        } else {
            const auto address = reinterpret_cast<unsigned long long>(bound);
            return reinterpret_cast<T*>((address + alignof(T) - 1) / alignof(T) * alignof(T));
        }
    }

    template <class T, class Index>
    __device__ static void leave(carry<T, Index>& left, Index task, const detail::partial<T>& lead) {
        left.task = task;
        left.has_lead = lead.some;
        if (lead.some) left.lead = lead.value;
    }
};

}  // namespace cte::kernel
