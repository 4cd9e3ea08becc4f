// Kernels of tests/cte/test_sharing.py: tasks that are long enough for the warps of a block to share them.
#include "tasks.cuh"

constexpr int BLOCK = 128;

/// Sequences of 8 bytes.
struct pair {
    unsigned hash, power;
};
struct joined {
    __device__ pair operator()(const pair& a, const pair& b) const { return {a.hash * b.power + b.hash, a.power * b.power}; }
};

/// Several calls behind one another with closures that change from turn to turn, and nothing that holds warps together. `stays` tells
/// which warps take part.
template <class Layout, class Between = Layout>
__device__ void turns(int tasks, const int* begins, const int* ends, unsigned stays, char odd, unsigned* visits, pair* out, int* sums) {
    if (!(stays >> threadIdx.x / 32 & 1u)) return;
    for (int base = blockIdx.x * BLOCK; base < tasks; base += gridDim.x * BLOCK) {
        const int task = min(base + static_cast<int>(threadIdx.x), tasks), begin = begins[task], end = ends[task];
        const auto letter = [=](int i) {
            atomicAdd(visits + i, 1u);
            return pair{(i * 1000u * 2654435761u + odd) >> 28, 31u};
        };
        const auto numbered = [=](int i, int known) { return ((i ^ base) & 15) + known; };
        const pair text = cte::for_each_index<BLOCK, Layout>(begin, end, letter, joined{}, pair{static_cast<unsigned>(task), 1u});
        const int sum = cte::for_each_index<BLOCK, Between>(begin, end, numbered, cte::plus{}, 5, task & 3);
        cte::for_each<BLOCK, Layout>(begin, end, cte::uniform([=](int i) { atomicAdd(visits + i, static_cast<unsigned>(odd)); }));
        if (task < tasks) {
            out[task] = text;
            sums[task] = sum;
        }
    }
}

extern "C" __global__ void turns_scanned(int tasks, const int* begins, const int* ends, unsigned stays, char odd, unsigned* visits,
                                         pair* out, int* sums) {
    turns<cte::scanned>(tasks, begins, ends, stays, odd, visits, out, sums);
}
extern "C" __global__ void turns_disjoint(int tasks, const int* begins, const int* ends, unsigned stays, char odd, unsigned* visits,
                                          pair* out, int* sums) {
    turns<cte::disjoint>(tasks, begins, ends, stays, odd, visits, out, sums);
}

extern "C" __global__ void turns_mixed(int tasks, const int* begins, const int* ends, unsigned stays, char odd, unsigned* visits,
                                       pair* out, int* sums) {
    turns<cte::scanned, cte::disjoint>(tasks, begins, ends, stays, odd, visits, out, sums);
}

/// Sequences of 24 bytes.
template <class Layout>
__device__ void texts(int tasks, const int* begins, const int* ends, long_sequence* out) {
    const int task = min(static_cast<int>(blockIdx.x * BLOCK + threadIdx.x), tasks);
    const auto letter = [=](int i) { return long_sequence{i * 2654435761u >> 28, 31, 1}; };
    const long_sequence start = {static_cast<unsigned>(task), 1, 0};
    const long_sequence text = cte::for_each_index<BLOCK, Layout>(begins[task], ends[task], letter, then{}, start);
    if (task < tasks) out[task] = text;
}

extern "C" __global__ void texts_scanned(int tasks, const int* begins, const int* ends, long_sequence* out) {
    texts<cte::scanned>(tasks, begins, ends, out);
}
extern "C" __global__ void texts_disjoint(int tasks, const int* begins, const int* ends, long_sequence* out) {
    texts<cte::disjoint>(tasks, begins, ends, out);
}

// Who runs what: `runners` has one more than the number of the warp that ran a fine task. A fine task's value is 2 plus the number of
// the warp that has the task, where it tells.
#define WHO(NAME) extern "C" __global__ void NAME(const int* begins, const int* ends, unsigned* runners, int* out)
__device__ int thread() { return static_cast<int>(threadIdx.x); }

template <class Layout, class Map>
__device__ void run(const int* begins, const int* ends, int* out, Map map) {
    out[thread()] = cte::for_each_index<BLOCK, Layout>(begins[thread()], ends[thread()], map, cte::plus{}, 7);
}

template <class Layout>
__device__ void by_value(const int* begins, const int* ends, unsigned* runners, int* out) {
    run<Layout>(begins, ends, out, [=](int i) {
        runners[i] = thread() / 32 + 1;
        return 2;
    });
}

WHO(who_by_value_scanned) { by_value<cte::scanned>(begins, ends, runners, out); }
WHO(who_by_value_disjoint) { by_value<cte::disjoint>(begins, ends, runners, out); }

WHO(who_by_reference) {
    const int value = 2 + thread() / 32;
    run<cte::scanned>(begins, ends, out, [&](int i) {
        runners[i] = thread() / 32 + 1;
        return value;
    });
}

// The same in all warps, whatever the compiler makes of it.
WHO(who_uniform) {
    const int value = 2 + begins[0];
    run<cte::scanned>(begins, ends, out, cte::uniform([&](int i) {
        runners[i] = thread() / 32 + 1;
        return value;
    }));
}

template <class F>
__device__ void visit(const int* begins, const int* ends, int* out, F f) {
    cte::for_each<BLOCK, cte::disjoint>(begins[thread()], ends[thread()], f);
    out[thread()] = 7 + 2 * (ends[thread()] - begins[thread()]);
}
WHO(who_visits) {
    visit(begins, ends, out, [=](int i) { runners[i] = thread() / 32 + 1; });
}
WHO(who_visits_uniform) {
    visit(begins, ends, out, cte::uniform([=](int i) { runners[i] = thread() / 32 + 1; }));
}

WHO(who_of_warp) {
    const int value = 2 + thread() / 32;
    run<cte::scanned>(begins, ends, out, [=](int i) {
        runners[i] = thread() / 32 + 1;
        return value;
    });
}

// Which is not true.
WHO(who_said_uniform) {
    const long long value = 2 + thread() / 32;
    run<cte::scanned>(begins, ends, out, cte::uniform([=](int i) {
        runners[i] = thread() / 32 + 1;
        return static_cast<int>(value);
    }));
}

WHO(who_of_captured_operator) {
    const int nothing = begins[0];
    const auto map = [=](int i) {
        runners[i] = thread() / 32 + 1;
        return 2;
    };
    const auto add = [=](int a, int b) { return a + b + nothing; };
    out[thread()] = cte::for_each_index<BLOCK, cte::scanned>(begins[thread()], ends[thread()], map, add, 7);
}

WHO(who_of_aligned_captures) {
    const float4 captured = {2, 0, 0, 0};
    run<cte::scanned>(begins, ends, out, [=](int i) {
        runners[i] = thread() / 32 + 1;
        return static_cast<int>(captured.x);
    });
}

// The same functions with values of two types. Warps that have no part in the first call are early at the second.
WHO(who_of_two_types) {
    const auto map = [=](int i) {
        runners[i] = thread() / 32 + 1;
        return 1;
    };
    const auto add = [](auto a, auto b) { return a + b; };
    const int begin = begins[thread()], end = ends[thread()];
    const int first = cte::for_each_index<BLOCK, cte::scanned>(begin, end, map, add, 7);
    const long long second = cte::for_each_index<BLOCK, cte::scanned>(begin, end, map, add, 0ll);
    out[thread()] = static_cast<int>(first + second);
}

// Of one size. Warps' own types: who shares with whom may differ.
WHO(who_of_types_by_warp) {
    const auto map = [=](int i) {
        runners[i] = thread() / 32 + 1;
        return 2;
    };
    const auto add = [](int a, int b) { return a + b; };
    const int begin = begins[thread()], end = ends[thread()];
    if (thread() / 32 % 2 == 0) {
        out[thread()] = cte::for_each_index<BLOCK, cte::disjoint>(begin, end, map, add, 7);
    } else {
        out[thread()] = static_cast<int>(cte::for_each_index<BLOCK, cte::disjoint>(begin, end, map, add, 7u));
    }
}

WHO(who_of_thread) {
    int values[2] = {1, 1};
    values[begins[0] & 1] += 1 + thread() / 32;  // not known before: the array stays in memory
    const int* const place = values + (begins[0] & 1);
    run<cte::scanned>(begins, ends, out, [=](int i) {
        runners[i] = thread() / 32 + 1;
        return *place;
    });
}

template <int count>
struct numbers {
    int words[count];
};
struct added {
    template <int count>
    __device__ numbers<count> operator()(const numbers<count>& a, const numbers<count>& b) const {
        return {{a.words[0] + b.words[0]}};
    }
};

template <int count>
__device__ void of_words(const int* begins, const int* ends, unsigned* runners, int* out) {
    const auto map = [=](int i) {
        runners[i] = thread() / 32 + 1;
        return numbers<count>{{2}};
    };
    const numbers<count> start = {{7}};
    out[thread()] = cte::for_each_index<BLOCK, cte::scanned>(begins[thread()], ends[thread()], map, added{}, start).words[0];
}

WHO(who_of_32_bytes) { of_words<8>(begins, ends, runners, out); }
WHO(who_of_36_bytes) { of_words<9>(begins, ends, runners, out); }
