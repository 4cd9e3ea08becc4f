// Breadth-first search in the forms that workload.py names. They differ in how the vertices of a level are found and in which
// direction edges are followed. Most forms take one launch for each level.
//
// levels[v] is the distance of v from the source, or -1 while v has not been reached.
#include <cte/frontier.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256, LARGE_BLOCK = 1024;
// Resident on a multiprocessor: without a number, ptxas 13.0 takes 32 registers where appending needs more, and spills.
constexpr int BLOCKS = 5;
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

// The first thread that reaches a vertex appends it.
template <class Append>
__device__ auto level_after(int depth, int* levels, Append append) {
  return [=](int u, int) {
    if (levels[u] < 0 && atomicCAS(levels + u, -1, depth + 1) < 0) append(u);
  };
}

// The vertices of the level are in a queue without duplicates.
extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)
bfs_push(int depth, const int* offsets, const int* neighbors, int* levels, int* now, Size* now_size, int* next, Size* next_size,
         Size capacity) {
  const cte::queue<int> to{next, next_size, capacity};
  const auto reach = level_after(depth, levels, [=](int u) { to.push(u); });
  cte::advance<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, cte::queue<int>{now, now_size, capacity}, reach);
}

// The same, and each warp collects what it appends.
extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)
bfs_stage(int depth, const int* offsets, const int* neighbors, int* levels, int* now, Size* now_size, int* next, Size* next_size,
          Size capacity) {
  __shared__ cte::staging<BLOCK, int> staged;
  const cte::queue<int> to{next, next_size, capacity};
  staged.clear();
  const auto reach = level_after(depth, levels, [=](int u) { staged.push(u, to); });
  cte::advance<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, cte::queue<int>{now, now_size, capacity}, reach);
  staged.flush(to);
}

// The queue knows where the edges of its vertices begin: all warps take the same number of edges.
extern "C" __global__ void __launch_bounds__(BLOCK)
bfs_balance(int depth, const int* offsets, const int* neighbors, int* levels, int* now, unsigned* now_begins, Size* now_counts,
            int* next, unsigned* next_begins, Size* next_counts, unsigned capacity) {
  __shared__ cte::staging<BLOCK, int> staged;
  using frontier = cte::scanned_queue<int, int>;
  const frontier to{offsets, next, next_begins, next_counts, capacity};
  staged.clear();
  const auto reach = level_after(depth, levels, [=](int u) { staged.push(u, to); });
  cte::advance_balanced<BLOCK>(cte::graph{offsets, neighbors}, frontier{offsets, now, now_begins, now_counts, capacity}, reach);
  staged.flush(to);
}

// Without atomic operations on levels: threads that reach a vertex at the same time all append it ...
extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)
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

// ... and one of each is kept.
extern "C" __global__ void __launch_bounds__(BLOCK)
bfs_unique(unsigned* words, int* found, Size* found_size, Size room, int* next, Size* next_size, Size capacity) {
  const cte::bitmap seen{words};
  cte::filter<BLOCK>(cte::queue<int>{found, found_size, room}, cte::queue<int>{next, next_size, capacity},
                     [=](int v) { return seen.set(v); });
}

// From the other side: a vertex that has not been reached looks for a neighbor of this level, and stops at the first.
extern "C" __global__ void __launch_bounds__(BLOCK)
bfs_pull(int vertices, int depth, const int* in_offsets, const int* sources, const int* offsets, int* levels, int* next,
         unsigned* next_begins, Size* next_counts, unsigned capacity) {
  __shared__ cte::staging<BLOCK, int> staged;
  const cte::scanned_queue<int, int> to{offsets, next, next_begins, next_counts, capacity};
  staged.clear();
  const auto is_open = [=](int v) { return levels[v] < 0; };
  const auto is_new = [=](int u, int) { return levels[u] == depth; };
  cte::pull<BLOCK>(cte::graph{in_offsets, sources}, vertices, is_open, is_new, [=](int v) {
    levels[v] = depth + 1;
    staged.push(v, to);
  });
  staged.flush(to);
}

// One block runs levels as long as they have at most `most` vertices.
extern "C" __global__ void __launch_bounds__(LARGE_BLOCK, 1)
bfs_block(int depth, const int* offsets, const int* neighbors, int* levels, int* now, Size* now_size, int* next, Size* next_size,
          Size capacity, Size most, int* steps) {
  const auto level = [&](int step, cte::queue<int> from, cte::queue<int> to) {
    const auto reach = level_after(depth + step, levels, [=](int u) { to.push(u); });
    cte::advance<LARGE_BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, from, reach);
  };
  const int done = cte::run_in_block(cte::queue<int>{now, now_size, capacity}, cte::queue<int>{next, next_size, capacity}, most,
                                     1 << 30, level);
  if (threadIdx.x == 0) *steps = done;
}

// The same with a queue that knows where the edges of its vertices begin; `most` is a number of edges.
extern "C" __global__ void __launch_bounds__(LARGE_BLOCK, 1)
bfs_block_balanced(int depth, const int* offsets, const int* neighbors, int* levels, int* now, unsigned* now_begins, Size* now_counts,
                   int* next, unsigned* next_begins, Size* next_counts, unsigned capacity, Size most, int* steps) {
  __shared__ cte::staging<LARGE_BLOCK, int> staged;
  using frontier = cte::scanned_queue<int, int>;
  const auto level = [&](int step, frontier from, frontier to) {
    staged.clear();
    const auto reach = level_after(depth + step, levels, [=](int u) { staged.push(u, to); });
    cte::advance_balanced<LARGE_BLOCK>(cte::graph{offsets, neighbors}, from, reach);
    staged.flush(to);
  };
  const int done = cte::run_in_block(frontier{offsets, now, now_begins, now_counts, capacity},
                                     frontier{offsets, next, next_begins, next_counts, capacity}, most, 1 << 30, level);
  if (threadIdx.x == 0) *steps = done;
}
