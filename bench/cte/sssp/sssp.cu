// Shortest paths from one vertex, two launches a round: a coarse task is a vertex that came nearer in the last round, a fine
// task one of the edges that leave it (P. Harish and P. J. Narayanan, Accelerating large graph algorithms on the GPU using
// CUDA, 2007). All other vertices' tasks are empty. The vertex' distance is its task's descriptor.
#include <cte.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256;

// Minima do not depend on the order in which they are taken, and a round reads only distances of the round before: the rounds
// are the same whoever runs the tasks.
extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_relax(int vertices, const int* __restrict__ nearer, const unsigned* __restrict__ distances, const int* __restrict__ offsets,
           const int* __restrict__ neighbours, const unsigned* __restrict__ lengths, unsigned* __restrict__ updated) {
  const int v = blockIdx.x * BLOCK + threadIdx.x;
  int begin = 0, end = 0;
  unsigned distance = 0;
  if (v < vertices && nearer[v]) {
    begin = offsets[v];
    end = offsets[v + 1];
    distance = distances[v];
  }
  const auto relax =
      cte::uniform([=](int i, unsigned distance) { atomicMin(updated + neighbours[i], distance + lengths[i]); });
  cte::for_each<BLOCK, cte::disjoint, CTE_POLICY>(begin, end, relax, distance);
}

// Who came nearer in this round is to tell its neighbours in the next. All store the same to *changed, but whoever finds it set (in the
// multiprocessor's cache, mostly) leaves it: stores of all to one place queue.
extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_update(int vertices, const unsigned* __restrict__ updated, int* __restrict__ nearer, unsigned* __restrict__ distances,
            int* changed) {
  const int v = blockIdx.x * BLOCK + threadIdx.x;
  if (v >= vertices) return;
  const bool lower = updated[v] < distances[v];
  nearer[v] = lower;
  if (!lower) return;
  distances[v] = updated[v];
  if (*changed == 0) *changed = 1;
}

// The other forms, a build each, pull: all edges that lead to a vertex, in every round. A source that nobody has reached is so
// far away that nothing comes nearer through it.
__device__ auto distance_by(const int* sources, const unsigned* lengths, const unsigned* distances) {
  return [=](int i) { return __ldg(distances + sources[i]) + lengths[i]; };
}

#if defined(CTE_FORM_EDGE_PARALLEL)
#include <cte/kernel/edge_parallel.cuh>

extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_edge_parallel(int edges, const int* __restrict__ owners, const int* __restrict__ sources,
                   const unsigned* __restrict__ lengths, const unsigned* __restrict__ distances, unsigned* __restrict__ updated) {
  const auto head = [=](int i) { return owners[i]; };
  cte::kernel::edge_parallel<BLOCK>::reduce(edges, head, distance_by(sources, lengths, distances), cte::minimum{}, updated);
}

#elif defined(CTE_FORM_VIRTUAL_SPLIT) || defined(CTE_FORM_VIRTUAL_SPLIT_STRIDED)
#include <cte/kernel/virtual_split.cuh>

#ifdef CTE_FORM_VIRTUAL_SPLIT
using Assignment = cte::contiguous;
#else
using Assignment = cte::strided;
#endif

extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_virtual_split(int vertices, const int* __restrict__ offsets, const int* __restrict__ first, const int* __restrict__ sources,
                   const unsigned* __restrict__ lengths, const unsigned* __restrict__ distances, unsigned* __restrict__ updated) {
  const auto distance = distance_by(sources, lengths, distances);
  cte::kernel::virtual_split<8>::reduce<Assignment>(vertices, offsets, first, distance, cte::minimum{}, updated);
}
#endif
