// One merge path for a whole grid: each block takes an equal piece of the walk through all tasks and all their fine tasks, so that
// one giant task spreads over the grid (Merrill, Garland, SC 2016). Two kernels: `reduce`, then `fix_up` for tasks that lie in
// several blocks.
//
//     using form = cte::kernel::merge_path<256, 7>;
//     __global__ void __launch_bounds__(256) spmv(...) {
//         __shared__ form::temp<float> shared;
//         form::reduce(shared, rows, offsets, map, cte::plus{}, 0.0f, put, carries);
//     }
//     __global__ void __launch_bounds__(256, 4) spmv_fix_up(...) {
//         __shared__ form::fix_up_temp<float> shared;
//         form::fix_up(shared, blocks, offsets, cte::plus{}, 0.0f, put, carries);
//     }
//
// Without the 4, ptxas 13.0 gives `fix_up` 40 registers on sm_90, and spills one of 56.
#pragma once

#include <cte/path.cuh>
#include <cte/policies/block.cuh>

namespace cte::kernel {

/// What a block leaves for `fix_up`. Written anew by each run of `reduce`.
template <class T, class Index>
struct carry {
    T tail;        // of the task that is open where the block ends and that began in it
    T lead;        // of the task that was open where the block began
    Index task;    // that one, if it ends in this block; else -1
    int has_lead;  // whether the block had fine tasks of it
};

template <int BlockDim, int ItemsPerThread = 7>
struct merge_path {
    static_assert(BlockDim % detail::lanes == 0 && BlockDim >= detail::lanes && BlockDim <= 1024,
                  "BlockDim is the number of threads of the block: a multiple of 32, up to 1024");
    static_assert(ItemsPerThread >= 1 && ItemsPerThread <= 32,
                  "cte::kernel::merge_path: a thread takes 1 to 32 steps (an odd number keeps it off bank conflicts)");

    static constexpr int tile = BlockDim * ItemsPerThread;

    /// The shared memory of a block of `reduce`.
    template <class T>
    struct temp {
        static constexpr int widest = sizeof(T) > sizeof(int) ? sizeof(T) : sizeof(int);
        // Where the tile's tasks end, and after that its values; later the results of its tasks. A task or a value is a step each.
        alignas(T) alignas(int) unsigned char bytes[tile * widest + sizeof(int) + alignof(T)];
        detail::carry_memory<BlockDim, T> carries;
        long long borders[2];
    };

    /// The shared memory of a block of `fix_up`.
    template <class T>
    using fix_up_temp = block::temp<BlockDim, T>;

    /// How many blocks `reduce` needs, and how many carries it writes: at least one.
    __host__ __device__ static constexpr long long blocks(long long tasks, long long fine) {
        return tasks + fine <= tile ? 1 : (tasks + fine - 1) / tile + 1;
    }

    /// Reduces `map(i)` for i in [offsets[task], offsets[task + 1]) for all tasks, and calls `put(task, result)` once for each that
    /// lies in one block; `fix_up` does for the others. Called by all threads of at least `blocks(tasks, offsets[tasks] -
    /// offsets[0])` blocks, in a grid of one dimension.
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
        const bool entered = task < tasks && first > offsets[task];                 // the first task began in an earlier block

        int* const bound = reinterpret_cast<int*>(shared.bytes);
        T* const values = aligned_after<T>(bound + count + 1);
        for (int i = thread; i < count; i += BlockDim) bound[i] = static_cast<int>(offsets[task + 1 + i] - first);
        if (thread == 0) bound[count] = length;  // more than there are: it does not end here
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

    /// Writes for `reduce` where the pieces of the walk begin, `blocks(...) + 1` numbers, for the offsets that stay as they are:
    /// its blocks then need not search. Called by at least as many threads, in a grid of one dimension.
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

    /// Calls `put(task, result)` for the tasks that lie in several of the `blocks` blocks of a `reduce` that has ended. Called by all
    /// threads of a grid of one dimension: one block is enough, `blocks / BlockDim` are quick. `BlockDim` threads a block.
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
    /// The tasks that have ended before the steps `low` and `high` of the walk, by search: two warps, one each.
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
