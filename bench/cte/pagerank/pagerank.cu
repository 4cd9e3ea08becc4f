// PageRank, pulled: a coarse task is a vertex, a fine task one of the edges that lead to it (L. Page et al., The PageRank
// citation ranking, 1999). Two launches an iteration: what each vertex gives to a neighbour, then the sums of what is given.
//
// A vertex without outgoing edges gives nothing: its rank leaves the graph.
#include <cte.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256;
constexpr float DAMPING = 0.85f;

// rest is what every vertex has without edges: (1 - DAMPING) / vertices.
extern "C" __global__ void __launch_bounds__(BLOCK)
pagerank_give(int vertices, const int* __restrict__ out_degrees, const float* __restrict__ ranks, float* __restrict__ given) {
  const int v = blockIdx.x * BLOCK + threadIdx.x;
  if (v >= vertices) return;
  given[v] = out_degrees[v] ? DAMPING * ranks[v] / out_degrees[v] : 0.0f;
}

__device__ auto given_by(const int* sources, const float* given) {
  return [=](int i) { return __ldg(given + sources[i]); };
}

extern "C" __global__ void __launch_bounds__(BLOCK)
pagerank(int vertices, float rest, const int* __restrict__ offsets, const int* __restrict__ sources,
         const float* __restrict__ given, float* __restrict__ ranks) {
  const int v = min(int(blockIdx.x * BLOCK + threadIdx.x), vertices);
  const int begin = offsets[v], end = offsets[min(v + 1, vertices)];
  const auto map = given_by(sources, given);
  const float rank = cte::for_each_index<BLOCK, cte::scanned, CTE_POLICY>(begin, end, map, cte::plus{}, rest);
  if (v < vertices) ranks[v] = rank;
}

// The other forms, a build each.
#if defined(CTE_FORM_MERGE_PATH)
#include <cte/kernel/merge_path.cuh>

using MergePath = cte::kernel::merge_path<BLOCK, 5>;
using Carry = cte::kernel::carry<float, int>;

extern "C" __global__ void __launch_bounds__(BLOCK)
pagerank_merge_path(int vertices, float rest, const int* __restrict__ offsets, const int* __restrict__ sources,
                    const float* __restrict__ given, float* __restrict__ ranks, Carry* carries,
                    const int* __restrict__ partition) {
  __shared__ MergePath::temp<float> shared;
  const auto put = [=](int v, float rank) { ranks[v] = rank; };
  MergePath::reduce(shared, vertices, offsets, given_by(sources, given), cte::plus{}, rest, put, carries, partition);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 4)
pagerank_fix_up(int blocks, float rest, const int* __restrict__ offsets, float* __restrict__ ranks,
                const Carry* __restrict__ carries) {
  __shared__ MergePath::fix_up_temp<float> shared;
  const auto put = [=](int v, float rank) { ranks[v] = rank; };
  MergePath::fix_up(shared, blocks, offsets, cte::plus{}, rest, put, carries);
}
#elif defined(CTE_FORM_DEFER_LONG)
#include <cte/kernel/defer_long.cuh>

using DeferLong = cte::kernel::defer_long<BLOCK, 512>;
using Piece = cte::kernel::piece<int>;

extern "C" __global__ void __launch_bounds__(BLOCK)
pagerank_defer_long(int vertices, float rest, const int* __restrict__ offsets, const int* __restrict__ sources,
                    const float* __restrict__ given, float* __restrict__ ranks, Piece* pieces, int* counters) {
  __shared__ DeferLong::temp<float> shared;
  const int v = min(int(blockIdx.x * BLOCK + threadIdx.x), vertices);
  const int begin = offsets[v], end = offsets[min(v + 1, vertices)];
  const cte::kernel::pieces<int> later{pieces, counters};
  const float rank =
      DeferLong::reduce<cte::scanned>(shared, v, begin, end, given_by(sources, given), cte::plus{}, rest, later);
  if (v < vertices) ranks[v] = rank;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
pagerank_finish(const int* __restrict__ sources, const float* __restrict__ given, float* __restrict__ ranks, Piece* pieces,
                int* counters) {
  DeferLong::finish(cte::kernel::pieces<int>{pieces, counters}, given_by(sources, given), cte::plus{}, ranks);
}
#elif defined(CTE_FORM_EDGE_PARALLEL)
#include <cte/kernel/edge_parallel.cuh>

// What is given is added to this.
extern "C" __global__ void __launch_bounds__(BLOCK) pagerank_begin(int vertices, float rest, float* __restrict__ ranks) {
  const int v = blockIdx.x * BLOCK + threadIdx.x;
  if (v < vertices) ranks[v] = rest;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
pagerank_edge_parallel(int edges, const int* __restrict__ owners, const int* __restrict__ sources,
                       const float* __restrict__ given, float* __restrict__ ranks) {
  const auto taker = [=](int i) { return owners[i]; };
  cte::kernel::edge_parallel<BLOCK>::reduce(edges, taker, given_by(sources, given), cte::plus{}, ranks);
}
#endif
