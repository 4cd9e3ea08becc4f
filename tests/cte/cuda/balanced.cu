// Kernels of tests/cte/test_balanced.py. Edges are numbered from `base`, and vertices from `name`, so that neither fits 32 bits where it
// is to be of 64.
#include <cte/frontier.cuh>

using Size = unsigned long long;

#define BALANCED(NAME, THREADS, PLACES, EDGES, POLICY, VERTEX, OFFSET)                                                                \
    extern "C" __global__ void advance_##NAME(const OFFSET* offsets, const VERTEX* neighbors, OFFSET base, VERTEX name,               \
                                              VERTEX* from, unsigned* from_begins, Size* from_counts, unsigned from_capacity,         \
                                              const int* marks, unsigned* visits, VERTEX* sources, int* told, VERTEX* to,             \
                                              unsigned* to_begins, Size* to_counts, unsigned capacity) {                              \
        __shared__ cte::staging<THREADS, VERTEX, PLACES> staged;                                                                      \
        using frontier = cte::scanned_queue<VERTEX, OFFSET>;                                                                          \
        const frontier now{offsets - name, from, from_begins, from_counts, from_capacity};                                            \
        const frontier next{offsets - name, to, to_begins, to_counts, capacity};                                                      \
        staged.clear();                                                                                                               \
        const auto visit = [=](VERTEX neighbor, OFFSET edge, VERTEX source, int mark) {                                               \
            atomicAdd(visits + (edge - base), 1u);                                                                                    \
            sources[edge - base] = source;                                                                                            \
            told[edge - base] = mark;                                                                                                 \
            staged.push(neighbor, next);                                                                                              \
        };                                                                                                                            \
        cte::advance_balanced<THREADS, EDGES, POLICY>(cte::graph<VERTEX, OFFSET>{offsets - name, neighbors - base}, now, visit,       \
                                                      cte::itself{}, [=](VERTEX v) { return marks[v - name]; });                      \
        staged.flush(next);                                                                                                           \
    }

BALANCED(int, 96, 32, 8, cte::warp, int, int)
BALANCED(fine, 32, 64, 1, cte::one_per_lane, int, int)
BALANCED(long, 64, 256, 3, cte::warp, long long, long long)
BALANCED(mixed, 256, 128, 2, cte::sub_warp<8>, int, long long)
BALANCED(unsigned, 64, 32, 5, cte::warp_chunked, unsigned, unsigned)

// Which warp of the grid visits each edge.
extern "C" __global__ void warps_of_edges(const int* offsets, const int* neighbors, int* from, unsigned* begins, Size* counts,
                                          unsigned capacity, int* warps) {
    const int warp = blockIdx.x * 2 + threadIdx.x / 32;
    cte::advance_balanced<64, 4>(cte::graph{offsets, neighbors}, cte::scanned_queue<int, int>{offsets, from, begins, counts, capacity},
                                 [=](int, int edge) { warps[edge] = warp; });
}

// Appends with push, or, if `together`, with push_if.
extern "C" __global__ void append(const long long* offsets, int count, const long long* given, const unsigned char* wanted, int together,
                                  long long* to, unsigned* begins, Size* counts, unsigned capacity) {
    const cte::scanned_queue<long long, long long> queue{offsets, to, begins, counts, capacity};
    const int i = blockIdx.x * 64 + threadIdx.x;
    const bool mine = i < count && wanted[i];
    if (together) {
        queue.push_if(mine, i < count ? given[i] : 0);
    } else if (mine) {
        queue.push(given[i]);
    }
}

// Each thread appends its number `times` times; each warp holds back 32 vertices.
extern "C" __global__ void stage(int times, int* to, Size* size, Size capacity) {
    __shared__ cte::staging<64, int, 32> staged;
    const cte::queue<int> queue{to, size, capacity};
    staged.clear();
    for (int time = 0; time < times + static_cast<int>(threadIdx.x) % 2; ++time) staged.push(blockIdx.x * 64 + threadIdx.x, queue);
    staged.flush(queue);
}

// Sorts by a bound into a scanned queue and a pile.
extern "C" __global__ void sort_pile(const int* offsets, int* pile, Size* pile_size, const int* priorities, int bound, int* near,
                                     unsigned* begins, Size* counts, unsigned capacity, int* far, Size* far_size, Size far_capacity) {
    const cte::near_far<int, int, cte::scanned_queue<int, int>> next{
        {offsets, near, begins, counts, capacity}, {far, far_size, far_capacity}, bound};
    const auto priority_of = [=](int v) { return priorities[v]; };
    cte::split<96>(cte::queue<int>{pile, pile_size, *pile_size}, next, [](int) { return true; }, priority_of);
}

extern "C" __global__ void push_near_far(const int* offsets, int count, const int* priorities, int bound, int* near, unsigned* begins,
                                         Size* counts, unsigned capacity, int* far, Size* far_size, Size far_capacity) {
    const cte::near_far<int, int, cte::scanned_queue<int, int>> next{
        {offsets, near, begins, counts, capacity}, {far, far_size, far_capacity}, bound};
    const int i = blockIdx.x * 64 + threadIdx.x;
    if (i < count) next.push(i, priorities[i]);
}

extern "C" __global__ void bfs_of_block(const int* offsets, const int* neighbors, int* levels, int* first, unsigned* first_begins,
                                        Size* first_counts, int* second, unsigned* second_begins, Size* second_counts,
                                        unsigned capacity, Size most, int steps, int* done) {
    __shared__ cte::staging<96, int, 32> staged;
    using frontier = cte::scanned_queue<int, int>;
    const auto level = [&](int step, frontier now, frontier next) {
        staged.clear();
        const auto reach = [=](int neighbor, int) {
            if (levels[neighbor] < 0 && atomicCAS(levels + neighbor, -1, step + 1) < 0) staged.push(neighbor, next);
        };
        cte::advance_balanced<96>(cte::graph{offsets, neighbors}, now, reach);
        staged.flush(next);
    };
    const int number = cte::run_in_block(frontier{offsets, first, first_begins, first_counts, capacity},
                                         frontier{offsets, second, second_begins, second_counts, capacity}, most, steps, level);
    if (threadIdx.x == 0) *done = number;
}
