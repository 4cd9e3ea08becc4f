// What threads of a block tell one another: which are there, where their tasks are in the list of the block, what each needs of the
// threads before it. Functions called by "the block" are called by all its threads.
#pragma once

#include <cte/check.cuh>
#include <cte/tasks.cuh>
#include <cte/warp.cuh>

namespace cte::detail {

/// Begins a policy of the whole block: no thread uses the shared memory of the call before.
template <int BlockDim>
__device__ __forceinline__ void enter_block() {
    const int here = __syncthreads_count(1);
    CTE_CHECK(here == BlockDim && "cte::block, cte::merge_path and cte::thread_warp_block need all threads of the block");
    static_cast<void>(here);
}

/// Whether tasks are so long that their number in a block may not be counted; the same in all threads. Disjoint tasks only: the
/// indices of others count them.
template <int BlockDim, class Layout, class Index>
__device__ __forceinline__ bool block_overflows(Index begin, Index end) {
    if constexpr (std::is_same_v<Layout, scanned> || sizeof(Index) == 8) {
        return false;
    } else {
        return __syncthreads_or(begin < end && static_cast<unsigned>(end - begin) > 0xffffffffu / (2 * BlockDim));
    }
}

/// Uninitialized memory for a value: an array of these needs no default constructor and may stay in registers.
template <class T>
union slot {
    T value;
    __device__ slot() {}
};

/// Shared memory for `count` values of a type that may have constructors.
template <class T, int count>
struct values_of {
    alignas(T) unsigned char bytes[count * sizeof(T)];

    __device__ T* begin() { return reinterpret_cast<T*>(bytes); }
    __device__ T& operator[](int i) { return begin()[i]; }
};
template <int count>
struct values_of<nothing, count> {};

/// The first index of [low, high) for which `before` does not hold (`before` holds up to some index only); `high` if there is none.
template <class Index, class Before>
__device__ __forceinline__ Index partition_point(Index low, Index high, Before before) {
    using count = std::make_unsigned_t<Index>;
    // Without branches in the loop: lanes that search lists of one length stay together.
    for (count left = low < high ? static_cast<count>(high - low) : 0; left > 0;) {
        const count half = left / 2;
        const bool passed = before(static_cast<Index>(low + half));
        low = passed ? static_cast<Index>(low + half + 1) : low;
        left = passed ? left - half - 1 : half;
    }
    return low;
}

/// The same by a whole warp, 32 probes a step. `low` and `high` are the same in all lanes, and so is the result.
template <class Index, class Before>
__device__ __forceinline__ Index warp_partition_point(Index low, Index high, Before before) {
    using count = std::make_unsigned_t<Index>;
    count left = low < high ? static_cast<count>(high - low) : 0;
    while (left > 0) {
        const count stride = (left - 1) / lanes + 1;
        const count probe = (lane_number() + 1) * stride - 1;
        const bool passed = probe < left && before(static_cast<Index>(low + probe));
        const count gone = __popc(__ballot_sync(full_warp, passed)) * stride;
        low += static_cast<Index>(gone);
        left = left - gone < stride - 1 ? left - gone : stride - 1;
    }
    return low;
}

/// The fine tasks of a block in the order of its threads: this thread's are at positions [first, first + size) of `total`. Among the
/// threads with a task that is not empty, of which there are `busy`, this one is number `rank`.
template <class count>
struct block_listing {
    count first, size, total;
    int rank, busy;
};

template <int BlockDim>
struct listing_memory {
    unsigned long long sizes[BlockDim / lanes];
    int busy[BlockDim / lanes];

    /// The block calls.
    template <class count>
    __device__ block_listing<count> list(count size) {
        const int lane = lane_number(), warp = warp_number();
        const unsigned some = __ballot_sync(full_warp, size != 0);
        const count bound = inclusive_sum(size);
        if (lane == lanes - 1) {
            sizes[warp] = bound;
            busy[warp] = __popc(some);
        }
        __syncthreads();
        const bool counts = lane < BlockDim / lanes;
        const count places = inclusive_sum(counts ? static_cast<count>(sizes[lane]) : 0);
        const int tasks = inclusive_sum(counts ? busy[lane] : 0);
        const count places_before = shuffle(places, warp == 0 ? 0 : warp - 1);
        const int tasks_before = shuffle(tasks, warp == 0 ? 0 : warp - 1);
        return {(warp == 0 ? 0 : places_before) + bound - size, size, shuffle(places, lanes - 1),
                (warp == 0 ? 0 : tasks_before) + __popc(some & lanes_below(lane)), shuffle(tasks, lanes - 1)};
    }
};

/// Descriptors of a block's tasks in shared memory, by a number of the task.
template <int count, class... D>
struct descriptor_columns {
    __device__ void put(int) {}
    template <class F, class... Known>
    __device__ auto run(int, F& f, const Known&... known) {
        return f(known...);
    }
};
template <int count, class First, class... Rest>
struct descriptor_columns<count, First, Rest...> {
    values_of<First, count> column;
    descriptor_columns<count, Rest...> rest;

    __device__ void put(int task, const First& value, const Rest&... others) {
        column[task] = value;
        rest.put(task, others...);
    }

    /// `f` of the task's descriptors.
    template <class F, class... Known>
    __device__ auto run(int task, F& f, const Known&... known) {
        return rest.run(task, f, known..., column[task]);
    }
};

/// The descriptors' shared memory is no part of the call's: a policy does not know their types where it says what it needs. Calls
/// with descriptors of the same types share it.
template <int count, class... D>
__device__ __forceinline__ descriptor_columns<count, D...>& descriptor_storage() {
    __shared__ descriptor_columns<count, D...> shared;
    return shared;
}

/// Whose turn it is where a block runs tasks one after the other.
struct turn_memory {
    int winner;
    unsigned long long begin, end;  // of the winner's task
};

/// Calls `run(begin, end, mine, columns)` for the tasks of all threads that `wait`, one after the other: `mine` in the thread whose task
/// it is, `columns.run(0, f)` giving `f` its descriptors. The block calls, and so it does `run`. Returns whether there was any task.
template <class Index, class Run, class... D>
__device__ bool take_turns(turn_memory& turn, bool waits, Index begin, Index end, Run run, const D&... descriptors) {
    if (thread_number() == 0) turn.winner = -1;
    auto& columns = descriptor_storage<1, D...>();
    bool any = false;
    while (__syncthreads_or(waits)) {
        any = true;
        if (waits) atomicMax(&turn.winner, thread_number());
        __syncthreads();
        const bool mine = turn.winner == thread_number();
        if (mine) {
            turn.begin = static_cast<unsigned long long>(begin);
            turn.end = static_cast<unsigned long long>(end);
            columns.put(0, descriptors...);
            waits = false;
        }
        __syncthreads();
        if (mine) turn.winner = -1;
        run(static_cast<Index>(turn.begin), static_cast<Index>(turn.end), mine, columns);
    }
    return any;
}

/// How many lanes below this one are in the same segment; a lane of `borders` begins a new one.
__device__ __forceinline__ int same_segment_below(unsigned borders) {
    const int lane = lane_number();
    const unsigned upto = borders & (2u << lane) - 1u;
    return upto == 0 ? lane : __clz(upto) - (lanes - 1 - lane);
}

/// What is open before a thread, and whether a border lies before it in the block.
template <class T>
struct open_before {
    partial<T> open;
    bool closed;
};

/// Reductions of segments that cross threads.
template <int BlockDim, class T>
struct carry_memory {
    values_of<T, BlockDim / lanes> values;
    unsigned char some[BlockDim / lanes], closed[BlockDim / lanes];

    /// What is open before each thread; `own` is what it holds after its last border, or in all if it is not closed by one.
    /// The block calls, and has passed a barrier since the last call.
    template <class Reduce>
    __device__ open_before<T> scan(const partial<T>& own, bool closes, Reduce& op) {
        const int lane = lane_number(), warp = warp_number();
        const unsigned borders = __ballot_sync(full_warp, closes);
        const int reach = same_segment_below(borders);
        partial<T> open = own;
#pragma unroll
        for (int distance = 1; distance < lanes; distance *= 2) {
            const partial<T> left = shuffle_up(open, distance);
            if (distance <= reach) open = joined(left, open, op);
        }
        open_before<T> preceding{shuffle_up(open, 1), (borders & lanes_below(lane)) != 0};
        if (lane == 0) preceding.open.some = false;
        if (lane == lanes - 1) {
            if (open.some) values[warp] = open.value;
            some[warp] = open.some;
            closed[warp] = borders != 0;
        }
        __syncthreads();
        for (int left = warp - 1; left >= 0 && !preceding.closed; --left) {
            if (some[left]) preceding.open = joined(partial<T>{values[left], true}, preceding.open, op);
            preceding.closed = closed[left];
        }
        return preceding;
    }
};

/// Sets `values[0 .. length)` to `value_at(i)`: `stride` threads of which this one is number `rank`, at most `turns` values each.
template <int stride, int turns, class T, class ValueAt>
__device__ __forceinline__ void stage(T* values, int length, int rank, ValueAt value_at) {
    slot<T> got[turns];  // all loads are under way before the first value is stored
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
        if (turn * stride + rank < length) got[turn].value = value_at(turn * stride + rank);
    }
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
        if (turn * stride + rank < length) values[turn * stride + rank] = got[turn].value;
    }
}

/// What a policy of the block may have of a block's 48 kilobytes, which descriptors need as well.
constexpr int most_shared = 44 * 1024;

/// So many values a thread that a block stages about 24 kilobytes, or what `others` leave: an odd number, so that lanes with a piece
/// each read from different banks.
template <int BlockDim, class T>
constexpr int staged_per_thread(int others = 0) {
    const int bytes = most_shared - others < 24 * 1024 ? most_shared - others : 24 * 1024;
    const int fit = bytes / (BlockDim * static_cast<int>(sizeof(T)));
    return fit >= 7 ? 7 : fit < 3 ? 1 : (fit - 1) | 1;
}

}  // namespace cte::detail
