// Breadth-first search in the forms that workload.py names. They differ in how the vertices of a level are found and in which
// direction edges are followed. Most forms take one launch for each level.
//
// levels[v] is the distance of v from the source, or -1 while v has not been reached.
#include <cte/frontier.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256;
using Size = unsigned long long;

// Every vertex tests itself (P. Harish and P. J. Narayanan, 2007). Several threads may reach one vertex at once: all of them store
// the same value into one aligned word, and no thread looks for that value in this launch.
extern "C" __global__ void __launch_bounds__(BLOCK)
bfs_plain(int vertices, int depth, const int* __restrict__ offsets, const int* __restrict__ neighbors, int* levels, int* changed) {
#pragma ccc for
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < vertices; v += gridDim.x * blockDim.x) {
#pragma ccc if
    if (levels[v] == depth) {
      int first = offsets[v], last = offsets[v + 1];
#pragma ccc for variable
      for (int k = first; k < last; ++k) {
        int u = neighbors[k];
        if (levels[u] < 0) {
          levels[u] = depth + 1;
          if (*changed == 0) *changed = 1;
        }
      }
    }
  }
}

// The same test, and the edges of a warp's vertices shared by its lanes.
extern "C" __global__ void __launch_bounds__(BLOCK)
bfs_status(int vertices, int depth, const int* offsets, const int* neighbors, int* levels, int* changed) {
  const auto is_new = [=](int v) { return levels[v] == depth; };
  const auto reach = [=](int u, int) {
    if (levels[u] >= 0) return;
    levels[u] = depth + 1;
    if (*changed == 0) *changed = 1;
  };
  cte::advance_if<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, vertices, is_new, reach);
}

// The test reads a bit in place of a word. `spent` is the mask of the previous level, which is not read any more: it is cleared for
// the level after next.
extern "C" __global__ void __launch_bounds__(BLOCK)
bfs_mask(int vertices, int depth, const int* offsets, const int* neighbors, int* levels, unsigned* now, unsigned* next,
         unsigned* spent, int* changed) {
  const cte::bitmap active{now}, reached{next};
  const auto is_new = [=](int v) {
    if (v % 32 == 0) spent[v / 32] = 0;
    return active.test(v);
  };
  const auto reach = [=](int u, int) {
    if (levels[u] >= 0 || !reached.set(u)) return;
    levels[u] = depth + 1;
    if (*changed == 0) *changed = 1;
  };
  cte::advance_if<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, vertices, is_new, reach);
}

__device__ auto level_after(int depth, int* levels, cte::queue<int> next) {
  return [=](int u, int) {
    if (levels[u] < 0 && atomicCAS(levels + u, -1, depth + 1) < 0) next.push(u);
  };
}

// The vertices of the level are in a queue without duplicates: the first thread that reaches a vertex appends it.
extern "C" __global__ void __launch_bounds__(BLOCK)
bfs_push(int depth, const int* offsets, const int* neighbors, int* levels, int* now, Size* now_size, int* next, Size* next_size,
         Size capacity) {
  const auto reach = level_after(depth, levels, {next, next_size, capacity});
  cte::advance<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, cte::queue<int>{now, now_size, capacity}, reach);
}

// Without atomic operations on levels: threads that reach a vertex at the same time all append it ...
extern "C" __global__ void __launch_bounds__(BLOCK)
bfs_mark(int depth, const int* offsets, const int* neighbors, int* levels, int* now, Size* now_size, Size capacity, int* found,
         Size* found_size, Size room) {
  const cte::queue<int> reached{found, found_size, room};
  const auto reach = [=](int u, int) {
    if (levels[u] >= 0) return;
    levels[u] = depth + 1;
    reached.push(u);
  };
  cte::advance<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, cte::queue<int>{now, now_size, capacity}, reach);
}

// ... and of those that are there several times one stays.
extern "C" __global__ void __launch_bounds__(BLOCK)
bfs_unique(unsigned* words, int* found, Size* found_size, Size room, int* next, Size* next_size, Size capacity) {
  const cte::bitmap seen{words};
  cte::filter<BLOCK>(cte::queue<int>{found, found_size, room}, cte::queue<int>{next, next_size, capacity},
                     [=](int v) { return seen.set(v); });
}

// From the other side: a vertex that has not been reached looks for a neighbor of this level, and stops at the first.
extern "C" __global__ void __launch_bounds__(BLOCK)
bfs_pull(int vertices, int depth, const int* in_offsets, const int* sources, int* levels, int* next, Size* next_size,
         Size capacity) {
  const cte::queue<int> reached{next, next_size, capacity};
  const auto is_open = [=](int v) { return levels[v] < 0; };
  const auto is_new = [=](int u, int) { return levels[u] == depth; };
  cte::pull<BLOCK>(cte::graph{in_offsets, sources}, vertices, is_open, is_new, [=](int v) {
    levels[v] = depth + 1;
    reached.push(v);
  });
}

// One block runs levels as long as they have at most `most` vertices.
extern "C" __global__ void __launch_bounds__(BLOCK)
bfs_block(int depth, const int* offsets, const int* neighbors, int* levels, int* now, Size* now_size, int* next, Size* next_size,
          Size capacity, Size most, int* steps) {
  const auto level = [&](int step, cte::queue<int> from, cte::queue<int> to) {
    cte::advance<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, from, level_after(depth + step, levels, to));
  };
  const int done = cte::run_in_block(cte::queue<int>{now, now_size, capacity}, cte::queue<int>{next, next_size, capacity}, most,
                                     1 << 30, level);
  if (threadIdx.x == 0) *steps = done;
}
