// Kernels of tests/cte/test_frontier.py, with the policy that nvcc is given (-DPOLICY=cte::warp, or -DSEARCH=cte::warp), of
// test_vertex_program.py (-DPROGRAM=cte::warp), and of test_frontier_queues.py (-DQUEUES). Edges are numbered from `base`, and vertices
// in queues from `name`, so that neither fits 32 bits where it is to be of 64.
#include "tasks.cuh"

#include <cte/frontier.cuh>

#ifdef POLICY

using Size = unsigned long long;

template <class Vertex, class Offset>
__device__ auto based(const Offset* offsets, const Vertex* neighbors, Offset base) {
    return cte::graph<Vertex, Offset>{offsets, neighbors - base};
}

#define STEPS(NAME, THREADS, VERTEX, OFFSET)                                                                                       \
    extern "C" __global__ void advance_##NAME(const OFFSET* offsets, const VERTEX* neighbors, OFFSET base, VERTEX name,            \
                                              VERTEX* from, Size* size, const int* marks, unsigned* visits, VERTEX* sources,       \
                                              int* told, VERTEX* to, Size* to_size, Size capacity) {                               \
        const cte::queue<VERTEX> now{from, size, *size}, next{to, to_size, capacity};                                              \
        const auto visit = [=](VERTEX neighbor, OFFSET edge, VERTEX source, int mark, char low) {                                  \
            atomicAdd(visits + (edge - base), 1u);                                                                                 \
            sources[edge - base] = source;                                                                                         \
            told[edge - base] = low == static_cast<char>(mark) ? mark : -1;                                                        \
            next.push(name + neighbor);                                                                                            \
        };                                                                                                                         \
        const auto mark_of = [=](VERTEX v) { return marks[v]; };                                                                   \
        const auto low_of = [=](VERTEX v) { return static_cast<char>(marks[v]); };                                                 \
        cte::advance<THREADS, POLICY>(based(offsets, neighbors, base), now, visit, cte::itself{}, mark_of, low_of);                \
    }                                                                                                                              \
    extern "C" __global__ void advance_if_##NAME(const OFFSET* offsets, const VERTEX* neighbors, OFFSET base, VERTEX vertices,     \
                                                 const unsigned* words, unsigned* visits, VERTEX* sources) {                       \
        const cte::bitmap active{const_cast<unsigned*>(words)};                                                                    \
        const auto visit = [=](VERTEX, OFFSET edge, VERTEX source) {                                                               \
            atomicAdd(visits + (edge - base), 1u);                                                                                 \
            sources[edge - base] = source;                                                                                         \
        };                                                                                                                         \
        cte::advance_if<THREADS, POLICY>(                                                                                          \
            based(offsets, neighbors, base), vertices, [=](VERTEX v) { return active.test(v); }, visit, cte::itself{});            \
    }                                                                                                                              \
    extern "C" __global__ void reduce_##NAME(const OFFSET* offsets, const VERTEX* neighbors, OFFSET base, VERTEX vertices,         \
                                             unsigned* visits, sequence* out) {                                                    \
        const auto letter = [=](VERTEX neighbor, OFFSET edge) {                                                                    \
            atomicAdd(visits + (edge - base), 1u);                                                                                 \
            return sequence{static_cast<unsigned>(neighbor), 31, 1};                                                               \
        };                                                                                                                         \
        cte::reduce_neighbors<THREADS, POLICY>(based(offsets, neighbors, base), vertices, letter, then{}, sequence{7, 3, 1},       \
                                               [=](VERTEX v, const sequence& result) { out[v] = result; });                        \
    }                                                                                                                              \
    extern "C" __global__ void intersect_##NAME(OFFSET pairs, const VERTEX* list, const OFFSET* a, const OFFSET* b, OFFSET base,   \
                                                Size* out) {                                                                       \
        const OFFSET pair = static_cast<OFFSET>(blockIdx.x) * THREADS + cte::detail::thread_number();                              \
        const OFFSET here = pair < pairs ? pair : pairs - 1, none = pair < pairs;                                                  \
        const OFFSET a_begin = a[2 * here], b_begin = b[2 * here];                                                                 \
        const Size size = cte::intersection_size<THREADS, POLICY>(list - base, a_begin, none ? a[2 * here + 1] : a_begin, b_begin, \
                                                                  none ? b[2 * here + 1] : b_begin);                               \
        if (pair < pairs) out[pair] = size;                                                                                        \
    }

STEPS(int, 96, int, int)
STEPS(long, 64, long long, long long)
STEPS(mixed, 32, int, long long)
STEPS(unsigned, 256, unsigned, unsigned)

extern "C" __global__ void bfs_of_block(const int* offsets, const int* neighbors, int* levels, int* first, Size* first_size,
                                        int* second, Size* second_size, Size capacity, Size most, int steps, int* done) {
    const auto level = [&](int step, cte::queue<int> now, cte::queue<int> next) {
        const auto reach = [=](int neighbor, int) {
            if (levels[neighbor] < 0 && atomicCAS(levels + neighbor, -1, step + 1) < 0) next.push(neighbor);
        };
        cte::advance<96, POLICY>(cte::graph{offsets, neighbors}, now, reach);
    };
    const int number = cte::run_in_block(cte::queue<int>{first, first_size, capacity}, cte::queue<int>{second, second_size, capacity},
                                         most, steps, level);
    if (threadIdx.x == 0) *done = number;
}

#endif

#ifdef SEARCH

template <int Threads, class Vertex, class Offset>
__device__ void pull_once(const Offset* offsets, const Vertex* neighbors, Offset base, Vertex vertices, const unsigned char* waits,
                          const unsigned char* wanted, unsigned* asked, Vertex* found, unsigned long long* size,
                          unsigned long long capacity) {
    const cte::queue<Vertex> hits{found, size, capacity};
    const auto has = [=](Vertex neighbor, Offset edge) {
        atomicAdd(asked + (edge - base), 1u);
        return wanted[neighbor] != 0;
    };
    cte::pull<Threads, SEARCH>(
        cte::graph<Vertex, Offset>{offsets, neighbors - base}, vertices, [=](Vertex v) { return waits[v] != 0; }, has,
        [=](Vertex v) { hits.push(v); });
}

#define PULL(NAME, THREADS, VERTEX, OFFSET)                                                                                         \
    extern "C" __global__ void pull_##NAME(const OFFSET* offsets, const VERTEX* neighbors, OFFSET base, VERTEX vertices,            \
                                           const unsigned char* waits, const unsigned char* wanted, unsigned* asked, VERTEX* found, \
                                           unsigned long long* size, unsigned long long capacity) {                                 \
        pull_once<THREADS>(offsets, neighbors, base, vertices, waits, wanted, asked, found, size, capacity);                        \
    }

PULL(int, 96, int, int)
PULL(long, 64, long long, long long)
PULL(unsigned, 256, unsigned, unsigned)

#endif

#ifdef PROGRAM

using Size = unsigned long long;

/// A vertex begins with its own number, and becomes what its neighbors say in order; vertices are numbered from `name`.
template <class Vertex, class Offset>
__device__ auto sentence(const unsigned char* changes, Offset base, Vertex name, unsigned* visits, unsigned* updates, sequence* out) {
    const auto own = [=](Vertex v) { return sequence{static_cast<unsigned>(v - name), 3, 1}; };
    const auto letter = [=](Vertex neighbor, Offset edge) {
        atomicAdd(visits + (edge - base), 1u);
        return sequence{static_cast<unsigned>(neighbor), 31, 1};
    };
    const auto store = [=](Vertex v, const sequence& result) {
        atomicAdd(updates + (v - name), 1u);
        out[v - name] = result;
        return changes[v - name] != 0;
    };
    return cte::vertex_program{own, letter, then{}, store};
}

#define PROGRAMS(NAME, THREADS, VERTEX, OFFSET)                                                                                    \
    extern "C" __global__ void all_##NAME(const OFFSET* offsets, const VERTEX* neighbors, OFFSET base,                             \
                                          const unsigned char* changes, unsigned* visits, unsigned* updates, sequence* out,        \
                                          VERTEX vertices, int* flag) {                                                            \
        cte::step<THREADS, PROGRAM>(sentence(changes, base, static_cast<VERTEX>(0), visits, updates, out),                         \
                                    cte::graph<VERTEX, OFFSET>{offsets, neighbors - base}, vertices, flag);                        \
    }                                                                                                                              \
    extern "C" __global__ void masked_##NAME(const OFFSET* offsets, const VERTEX* neighbors, OFFSET base,                          \
                                             const unsigned char* changes, unsigned* visits, unsigned* updates, sequence* out,     \
                                             VERTEX vertices, unsigned* active, unsigned* changed) {                               \
        cte::step_if<THREADS, PROGRAM>(sentence(changes, base, static_cast<VERTEX>(0), visits, updates, out),                      \
                                       cte::graph<VERTEX, OFFSET>{offsets, neighbors - base}, vertices, cte::bitmap{active},       \
                                       cte::bitmap{changed});                                                                      \
    }                                                                                                                              \
    extern "C" __global__ void tested_##NAME(const OFFSET* offsets, const VERTEX* neighbors, OFFSET base,                          \
                                             const unsigned char* changes, unsigned* visits, unsigned* updates, sequence* out,     \
                                             VERTEX vertices, const unsigned char* states, unsigned* changed) {                    \
        const auto is_seven = [=](VERTEX v) { return states[v] == 7; };                                                            \
        const auto count = [=](VERTEX v) { atomicAdd(changed + v, 1u); };                                                          \
        cte::step_if<THREADS, PROGRAM>(sentence(changes, base, static_cast<VERTEX>(0), visits, updates, out),                      \
                                       cte::graph<VERTEX, OFFSET>{offsets, neighbors - base}, vertices, is_seven, count);          \
    }                                                                                                                              \
    extern "C" __global__ void queued_##NAME(const OFFSET* offsets, const VERTEX* neighbors, OFFSET base,                          \
                                             const unsigned char* changes, unsigned* visits, unsigned* updates, sequence* out,     \
                                             VERTEX name, VERTEX* from, Size* size, VERTEX* to, Size* to_size, Size capacity) {    \
        cte::step<THREADS, PROGRAM>(sentence(changes, base, name, visits, updates, out),                                           \
                                    cte::graph<VERTEX, OFFSET>{offsets - name, neighbors - base},                                  \
                                    cte::queue<VERTEX>{from, size, *size}, cte::queue<VERTEX>{to, to_size, capacity});             \
    }

PROGRAMS(int, 96, int, int)
PROGRAMS(long, 64, long long, long long)
PROGRAMS(unsigned, 256, unsigned, unsigned)

#endif

#ifdef QUEUES

using Size = unsigned long long;

#define QUEUE(NAME, VERTEX)                                                                                                        \
    extern "C" __global__ void push_##NAME(int count, const VERTEX* given, const unsigned char* wanted, VERTEX* to, Size* size,    \
                                           Size capacity) {                                                                        \
        const cte::queue<VERTEX> queue{to, size, capacity};                                                                        \
        for (int i = blockIdx.x * 64 + threadIdx.x; i < count; i += gridDim.x * 64) {                                              \
            for (int times = 0; times < wanted[i]; ++times) queue.push(given[i]);                                                  \
        }                                                                                                                          \
    }                                                                                                                              \
    extern "C" __global__ void keep_wanted_##NAME(VERTEX* from, Size* from_size, Size from_capacity, const unsigned char* wanted,  \
                                                  VERTEX name, VERTEX* to, Size* size, Size capacity) {                            \
        cte::filter<96>(cte::queue<VERTEX>{from, from_size, from_capacity}, cte::queue<VERTEX>{to, size, capacity},                \
                        [=](VERTEX v) { return wanted[v - name] != 0; });                                                          \
    }                                                                                                                              \
    extern "C" __global__ void keep_first_##NAME(VERTEX* from, Size* from_size, Size from_capacity, unsigned* words, VERTEX name,  \
                                                 VERTEX* to, Size* size, Size capacity) {                                          \
        const cte::bitmap seen{words - static_cast<unsigned long long>(name) / 32};                                                \
        cte::filter<96>(cte::queue<VERTEX>{from, from_size, from_capacity}, cte::queue<VERTEX>{to, size, capacity},                \
                        [=](VERTEX v) { return seen.set(v); });                                                                    \
    }                                                                                                                              \
    extern "C" __global__ void keep_new_##NAME(VERTEX* from, Size* from_size, Size from_capacity, VERTEX* to, Size* size,          \
                                               Size capacity) {                                                                    \
        __shared__ cte::history<VERTEX, 64> met;                                                                                   \
        met.forget();                                                                                                              \
        cte::filter<96>(cte::queue<VERTEX>{from, from_size, from_capacity}, cte::queue<VERTEX>{to, size, capacity},                \
                        [&](VERTEX v) { return !met.again(v); });                                                                  \
    }                                                                                                                              \
    extern "C" __global__ void sort_pile_##NAME(VERTEX* pile, Size* pile_size, Size pile_capacity, const float* priorities,        \
                                                VERTEX name, float settled, float bound, VERTEX* near, Size* near_size,            \
                                                Size near_capacity, VERTEX* far, Size* far_size, Size far_capacity) {              \
        const cte::near_far<VERTEX, float> next{{near, near_size, near_capacity}, {far, far_size, far_capacity}, bound};           \
        const auto priority_of = [=](VERTEX v) { return priorities[v - name]; };                                                   \
        const auto is_open = [=](VERTEX v) { return priority_of(v) >= settled; };                                                  \
        cte::split<96>(cte::queue<VERTEX>{pile, pile_size, pile_capacity}, next, is_open, priority_of);                            \
    }                                                                                                                              \
    extern "C" __global__ void push_near_far_##NAME(int count, const VERTEX* given, const float* priorities, float bound,          \
                                                    VERTEX* near, Size* near_size, Size near_capacity, VERTEX* far,                \
                                                    Size* far_size, Size far_capacity) {                                           \
        const cte::near_far<VERTEX, float> next{{near, near_size, near_capacity}, {far, far_size, far_capacity}, bound};           \
        const int i = blockIdx.x * 64 + threadIdx.x;                                                                               \
        if (i < count) next.push(given[i], priorities[i]);                                                                         \
    }

QUEUE(int, int)
QUEUE(long, long long)
QUEUE(unsigned, unsigned)

static_assert(cte::bitmap::words_for(0) == 0 && cte::bitmap::words_for(32) == 1 && cte::bitmap::words_for(33) == 2);

extern "C" __global__ void bits(int count, const unsigned* given, unsigned* words, unsigned char* was_new, int clears) {
    const cte::bitmap set{words};
    const int i = blockIdx.x * 64 + threadIdx.x;
    if (i < count) was_new[i] = clears ? set.test(given[i]) : set.set(given[i]);
    if (clears) {
        __syncthreads();
        if (i < count) set.clear(given[i]);
    }
}

#endif
