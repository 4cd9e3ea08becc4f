// What threads of a block exchange: whether all are present, where their tasks are in the block's list, and what each needs from the
// threads before it. "The block calls" means that all its threads call together.
#pragma once

#include <cte/check.cuh>
#include <cte/tasks.cuh>
#include <cte/warp.cuh>

namespace cte::detail {

/// Begins a policy of the whole block: from here on, no thread uses the shared memory of the previous call.
template <int BlockDim>
__device__ __forceinline__ void enter_block() {
    const int here = __syncthreads_count(1);
    CTE_CHECK(here == BlockDim && "cte: with this policy, all threads of the block must make the call together");
    static_cast<void>(here);
}

/// Whether tasks are so long that a block's fine tasks may overflow `Index`; the same in all threads. Only `disjoint` tasks can: the
/// fine tasks of others are counted by their indices.
template <int BlockDim, class Layout, class Index>
__device__ __forceinline__ bool block_overflows(Index begin, Index end) {
    if constexpr (std::is_same_v<Layout, scanned> || sizeof(Index) == 8) {
        return false;
    } else {
        return __syncthreads_or(begin < end && static_cast<unsigned>(end - begin) > 0xffffffffu / (2 * BlockDim));
    }
}

/// Uninitialized memory for a value. An array of slots needs no default constructor and may stay in registers.
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

/// The first index in [low, high) for which `before` does not hold, `high` if there is none. `before` holds for a prefix of the range.
template <class Index, class Before>
__device__ __forceinline__ Index partition_point(Index low, Index high, Before before) {
    using count = std::make_unsigned_t<Index>;
    // No branches in the loop, so lanes that search lists of the same length stay together.
    for (count left = low < high ? static_cast<count>(high - low) : 0; left > 0;) {
        const count half = left / 2;
        const bool passed = before(static_cast<Index>(low + half));
        low = passed ? static_cast<Index>(low + half + 1) : low;
        left = passed ? left - half - 1 : half;
    }
    return low;
}

/// The same by a whole warp, with 32 probes per step. `low` and `high` are the same in all lanes, and so is the result.
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

/// A thread's place in the list of all fine tasks of its block, in the order of threads. Its own are at positions [first, first + size)
/// of `total`. `busy` threads have a task that is not empty; `rank` of them come before this one.
template <class count>
struct block_listing {
    count first, size, total;
    int rank, busy;
};

template <int BlockDim>
struct listing_memory {
    unsigned long long sizes[BlockDim / lanes];
    int busy[BlockDim / lanes];

    /// Lists the tasks of a block. The block calls.
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

/// Descriptors of a block's tasks in shared memory, by the task's number.
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

    /// Calls `f` with the task's descriptors.
    template <class F, class... Known>
    __device__ auto run(int task, F& f, const Known&... known) {
        return rest.run(task, f, known..., column[task]);
    }
};

/// The descriptors' shared memory. It is not part of a policy's `temp`, which is declared without their types. Calls with descriptors
/// of the same types share it.
template <int count, class... D>
__device__ __forceinline__ descriptor_columns<count, D...>& descriptor_storage() {
    __shared__ descriptor_columns<count, D...> shared;
    return shared;
}

/// Which thread's turn it is while a block runs tasks one after another.
struct turn_memory {
    int winner;
    unsigned long long begin, end;  // of the winner's task
};

/// Calls `run(begin, end, mine, columns)` for the task of each thread that `waits`, one after another. `mine` says whether the task
/// is this thread's own; `columns.run(0, f)` passes its descriptors to `f`. All threads of the block call this function, and all of them
/// call `run`.
/// Returns whether there was any task.
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

/// How many lanes below this one are in the same segment. The lanes in `borders` begin a new one.
__device__ __forceinline__ int same_segment_below(unsigned borders) {
    const int lane = lane_number();
    const unsigned upto = borders & (2u << lane) - 1u;
    return upto == 0 ? lane : __clz(upto) - (lanes - 1 - lane);
}

/// What is open before a thread's values, and whether a border lies before them in the block.
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

    /// What is open before each thread's values. `own` is the reduction of its values after its last border, or of all of them if there
    /// is none (`closes` is false). The block calls, and has passed a barrier since the last call.
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

/// Sets `values[0 .. length)` to `value_at(i)`. `stride` threads call, with at most `turns` values each; this one is number `rank`.
template <int stride, int turns, class T, class ValueAt>
__device__ __forceinline__ void stage(T* values, int length, int rank, ValueAt value_at) {
    slot<T> got[turns];  // all loads are issued before the first value is stored
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
        if (turn * stride + rank < length) got[turn].value = value_at(turn * stride + rank);
    }
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
        if (turn * stride + rank < length) values[turn * stride + rank] = got[turn].value;
    }
}

/// How much a policy of the block may take of a block's 48 kilobytes of static shared memory. Descriptors also need some.
constexpr int most_shared = 44 * 1024;

/// The number of values per thread that a block stages: 1, 3, 5 or 7, as many as fit in 24 kilobytes or in what
/// `others` leave. It is odd, so lanes that read one piece each use different banks.
template <int BlockDim, class T>
constexpr int staged_per_thread(int others = 0) {
    const int bytes = most_shared - others < 24 * 1024 ? most_shared - others : 24 * 1024;
    const int fit = bytes / (BlockDim * static_cast<int>(sizeof(T)));
    return fit >= 7 ? 7 : fit < 3 ? 1 : (fit - 1) | 1;
}

}  // namespace cte::detail
