// Breadth-first search, one launch a level: a coarse task is a vertex of the current level, a fine task one of its neighbours
// (P. Harish and P. J. Narayanan, Accelerating large graph algorithms on the GPU using CUDA, 2007). All other vertices'
// tasks are empty, so that neighbouring lanes' ranges do not touch: cte::disjoint.
#include <cte.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256;

// levels[v] is the distance of v from the source, or -1 while v has not been reached. Several threads may reach one vertex at
// once: all of them store the same number into one aligned word, which is not the level that anybody looks for in this launch.
// So with *changed, but whoever finds it set (in the multiprocessor's cache, mostly) leaves it: stores of all to one place queue.
extern "C" __global__ void __launch_bounds__(BLOCK)
bfs(int vertices, int current, const int* __restrict__ offsets, const int* __restrict__ neighbours, int* levels, int* changed) {
  const int v = blockIdx.x * BLOCK + threadIdx.x;
  int begin = 0, end = 0;
  if (v < vertices && levels[v] == current) {
    begin = offsets[v];
    end = offsets[v + 1];
  }
  cte::for_each<BLOCK, cte::disjoint, CTE_POLICY>(begin, end, cte::uniform([=](int i) {
    const int u = neighbours[i];
    if (levels[u] >= 0) return;
    levels[u] = current + 1;
    if (*changed == 0) *changed = 1;
  }));
}
