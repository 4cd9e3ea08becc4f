// What the kernels of warp_policies.cu and scan_and_any.cu share: values that tell which fine task they are of, and in which order.
#pragma once

#include <cte.cuh>

/// A polynomial hash of a sequence: `then` joins two, and no two orders have one hash. 12 or 24 bytes.
template <class Word>
struct sequence_of {
    Word hash, power, length;
};
using sequence = sequence_of<unsigned>;
using long_sequence = sequence_of<unsigned long long>;

struct then {
    template <class Word>
    __device__ sequence_of<Word> operator()(const sequence_of<Word>& a, const sequence_of<Word>& b) const {
        return {a.hash * b.power + b.hash, a.power * b.power, a.length + b.length};
    }
};

/// Of numbers, in order as far as the headers know.
struct add {
    template <class T>
    __device__ T operator()(T a, T b) const {
        return a + b;
    }
};

/// The value of a fine task and where a coarse task begins. Numbers are small: their sums are exact in any order.
template <class T>
struct value_of {
    __device__ static T letter(unsigned hash) { return static_cast<T>(hash >> 28); }
    __device__ static T first(int task) { return static_cast<T>(task % 5 + 3); }
};
template <class Word>
struct value_of<sequence_of<Word>> {
    __device__ static sequence_of<Word> letter(unsigned hash) { return {hash, 31, 1}; }
    __device__ static sequence_of<Word> first(int task) { return {static_cast<Word>(task), 3, 1}; }
};

struct quad {
    int a, b, c, d;
};

/// Calls `f(...)` with a task's descriptors: none, or 4, 1 + 4 or 1 + 4 + 16 bytes.
template <int Count, class F>
__device__ auto with_descriptors(int task, F f) {
    const auto low = static_cast<unsigned char>(task);
    if constexpr (Count == 0) return f();
    if constexpr (Count == 1) return f(task);
    if constexpr (Count == 2) return f(low, task);
    if constexpr (Count == 3) return f(low, task, quad{task + 1, task + 2, task + 3, task + 4});
}

/// The task that descriptors tell, 0 if there are none; one that does not exist if they contradict one another.
__device__ inline int told() { return 0; }
__device__ inline int told(int task) { return task; }
__device__ inline int told(unsigned char low, int task) { return low == static_cast<unsigned char>(task) ? task : -1; }
__device__ inline int told(unsigned char low, int task, const quad& more) {
    return more.a == task + 1 && more.b == task + 2 && more.c == task + 3 && more.d == task + 4 ? told(low, task) : -1;
}

/// Where the fine tasks of a launch stand, and how often each of them ran. Fine task `base` is the first.
template <class Index>
struct fine_tasks {
    Index base;
    unsigned* visits;

    template <class... D>
    __device__ unsigned visit(Index i, const D&... descriptors) const {
        const unsigned place = static_cast<unsigned>(i - base);
        atomicAdd(visits + place, 1u);
        return (place * 1000u + told(descriptors...) * 3u) * 2654435761u + 12345u;
    }
};

/// Calls `run(task, begin, end)` for each of the tasks: a thread has one, of which there may be none (behind the last one stands an
/// empty one). Blocks take several turns.
template <int Threads, class Index, class Run>
__device__ void each_task(int tasks, const Index* begins, const Index* ends, Run run) {
    for (int base = blockIdx.x * Threads; base < tasks; base += gridDim.x * Threads) {
        const int task = min(base + cte::detail::thread_number(), tasks);
        run(task, begins[task], ends[task]);
    }
}
