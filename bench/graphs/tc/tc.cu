// Triangles by intersections (T. Schank and D. Wagner, Finding, counting and listing all triangles in large graphs, 2005), in the forms
// that workload.py names. Edges lead from vertices of fewer neighbors to those of more, and neighbors are sorted: a triangle is an edge
// and a neighbor that both of its ends have.
#include <cte/frontier.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256;

// A thread merges the lists of an edge's ends.
extern "C" __global__ void __launch_bounds__(BLOCK)
tc_plain(int edges, const int* __restrict__ offsets, const int* __restrict__ neighbors, const int* __restrict__ tails,
         unsigned long long* triangles) {
  const int edge = blockIdx.x * BLOCK + threadIdx.x;
  if (edge >= edges) return;
  const int v = tails[edge], u = neighbors[edge];
  unsigned found = 0;
  for (int i = offsets[v], j = offsets[u]; i < offsets[v + 1] && j < offsets[u + 1];) {
    const int ours = neighbors[i], theirs = neighbors[j];
    found += ours == theirs;
    i += ours <= theirs;
    j += theirs <= ours;
  }
  if (found != 0) atomicAdd(triangles, static_cast<unsigned long long>(found));
}

// The lanes of a warp share the merges of all their edges; where one list is much shorter, its elements are searched for.
extern "C" __global__ void __launch_bounds__(BLOCK)
tc_intersect(int edges, const int* offsets, const int* neighbors, const int* tails, unsigned long long* triangles) {
  const int edge = blockIdx.x * BLOCK + threadIdx.x;
  int a_begin = 0, a_end = 0, b_begin = 0, b_end = 0;
  if (edge < edges) {
    const int v = tails[edge], u = neighbors[edge];
    a_begin = offsets[v], a_end = offsets[v + 1], b_begin = offsets[u], b_end = offsets[u + 1];
  }
  const unsigned long long found = cte::intersection_size<BLOCK, CTE_POLICY>(neighbors, a_begin, a_end, b_begin, b_end);
  if (found != 0) atomicAdd(triangles, found);
}
