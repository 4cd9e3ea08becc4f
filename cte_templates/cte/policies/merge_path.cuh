// A block takes its tasks and all their fine tasks in tiles of equal work, and each thread takes an equal piece of a tile. The values
// of a tile are mapped with neighboring threads on neighboring indices, and reduced from shared memory.
#pragma once

#include <cte/path.cuh>
#include <cte/policies/sub_warp.cuh>

namespace cte {

namespace detail {

template <int BlockDim, class T>
struct path_memory {
    static constexpr int per_thread = staged_per_thread<BlockDim, T>(BlockDim * (16 + sizeof(T)));
    listing_memory<BlockDim> lister;
    unsigned long long bound[BlockDim], shift[BlockDim];  // where tasks end in the list, and the offset that turns a place into an index
    values_of<T, BlockDim * per_thread> values;
    values_of<T, BlockDim> results;
    carry_memory<BlockDim, T> carries;
    values_of<T, 2> open;  // at the end of a tile; two, as the next tile's is written while this one's is read
    unsigned char open_some[2];
};
template <int BlockDim>
struct path_memory<BlockDim, nothing> {
    listing_memory<BlockDim> lister;
    unsigned long long bound[BlockDim], shift[BlockDim];
};

}  // namespace detail

/// A policy: each thread of a block takes an equal share of the block's tasks and fine tasks, counted together, so empty tasks count, too.
///
/// Use it if the whole block calls, and many empty tasks lie among long ones.
///
/// @code
/// const auto value = [=](int i) { return values[i]; };
/// const float sum = cte::for_each_index<256, cte::scanned, cte::merge_path>(begin, end, value, cte::plus{}, 0.0f);
/// if (row < rows) out[row] = sum;
/// @endcode
///
/// All threads of the block call together: the policy contains barriers. It keeps the contract of cte/policy.cuh. In the reference
/// kernel (bench/cte_registers.py), a call uses 12448 bytes of shared memory (at most 44 kilobytes) and 48 registers. Descriptors
/// take shared memory of their own: one of each type per thread.
struct merge_path {
    template <int BlockDim, class T, class... Call>
    using temp = detail::path_memory<BlockDim, T>;
    static constexpr bool whole_block = true;

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(temp<BlockDim, T>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        using namespace detail;
        using count = std::make_unsigned_t<Index>;
        constexpr bool direct = std::is_same_v<Layout, scanned> && sizeof...(D) == 0;  // the owner of a place is never needed
        enter_block<BlockDim>();
        if (block_overflows<BlockDim, Layout>(begin, end)) {
            nothing none;
            return sub_warp<lanes>::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
        }
        const count size = begin < end ? static_cast<count>(end - begin) : 0;
        const block_listing<count> mine = shared.lister.list(size);
        const count shift = static_cast<count>(begin) - mine.first;
        count* const bound = reinterpret_cast<count*>(shared.bound);
        count* const shifts = reinterpret_cast<count*>(shared.shift);
        auto& columns = descriptor_storage<BlockDim, D...>();
        bound[thread_number()] = mine.first + size;
        shifts[thread_number()] = shift;
        columns.put(thread_number(), descriptors...);
        __syncthreads();
        // The value of a place, which belongs to one of the tasks [low, high].
        const auto value_at = [&](count place, int low, int high) {
            int task = 0;
            if constexpr (!direct) task = partition_point(low, high, [&](int t) { return bound[t] <= place; });
            const auto run = [&](const D&... theirs) {
                return map(static_cast<Index>((direct ? shift : shifts[task]) + place), theirs...);
            };
            return columns.run(task, run);
        };
        if constexpr (is_nothing<T>) {
            for (count place = thread_number(); place < mine.total; place += BlockDim) value_at(place, 0, BlockDim - 1);
            __syncthreads();
            return init;
        } else {
            run_tiles<BlockDim>(shared, bound, mine.total, value_at, op, init);
            __syncthreads();
            const T result = size == 0 ? init : op(init, shared.results[thread_number()]);
            __syncthreads();
            return result;
        }
    }

   private:
    template <int BlockDim, class T, class count, class ValueAt, class Reduce>
    __device__ static void run_tiles(detail::path_memory<BlockDim, T>& shared, const count* bound, count total, ValueAt value_at,
                                     Reduce& op, const T& init) {
        using namespace detail;
        constexpr int per_thread = detail::path_memory<BlockDim, T>::per_thread, tile = BlockDim * per_thread;
        const int thread = thread_number();
        int task = 0;
        count place = 0;
        if (thread == 0) shared.open_some[0] = false;
        for (int turn = 0; task < BlockDim; turn ^= 1) {
            // In the walk through a tile, a task ends at step (task - first task) + (bound - first place).
            const auto ends_before = [&](int step) {
                return [=](int t) { return bound[t] - place + (t - task) < static_cast<count>(step); };
            };
            const int most = BlockDim - task < tile ? BlockDim : task + tile;
            const int task_bound = warp_partition_point(task, most, ends_before(tile));
            const count left = total - place, room = tile - (task_bound - task);
            const int values = static_cast<int>(left < room ? left : room);
            const int last_task = task_bound < BlockDim ? task_bound : BlockDim - 1;
            stage<BlockDim, per_thread>(shared.values.begin(), values, thread,
                                        [&](int i) { return value_at(place + i, task, last_task); });
            __syncthreads();
            const int length = task_bound - task + values;
            const int from = thread * per_thread < length ? thread * per_thread : length;
            const int steps = length - from < per_thread ? length - from : per_thread;
            const int first = partition_point(task, task_bound, ends_before(from));
            path_piece<T, per_thread> piece(init);
            piece.walk(first, static_cast<count>(from - (first - task)), steps, [&](int t) { return bound[t] - place; },
                       [&](count i) -> const T& { return shared.values[static_cast<int>(i)]; }, op,
                       [](const partial<T>& sum) { return sum.value; });
            open_before<T> preceding = shared.carries.scan(piece.open, piece.closes(), op);
            if (!preceding.closed && shared.open_some[turn]) {
                preceding.open = joined(partial<T>{shared.open[turn], true}, preceding.open, op);
            }
            // Without `init`, which the owner adds. What is stored for an empty task is never read.
            const auto put_first = [&](int t, const partial<T>& sum) { shared.results[t] = sum.value; };
            piece.finish(first, preceding.open, op, put_first, [&](int t, const T& sum) { shared.results[t] = sum; });
            if (thread == BlockDim - 1) {
                const partial<T> open = piece.closes() ? piece.open : joined(preceding.open, piece.open, op);
                if (open.some) shared.open[turn ^ 1] = open.value;
                shared.open_some[turn ^ 1] = open.some;
            }
            task = task_bound;
            place += values;
        }
    }
};

}  // namespace cte
