// PageRank (L. Page et al., The PageRank citation ranking, 1999), in the forms that workload.py names. Two launches an iteration
// (`program`: one): what each vertex gives to a neighbor, then the sums of what is given. A vertex without outgoing edges gives nothing:
// its rank leaves the graph.
#include <cte/frontier.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256;
constexpr float DAMPING = 0.85f;

// rest is what every vertex has without edges: (1 - DAMPING) / vertices. What is pushed is added to it.
extern "C" __global__ void __launch_bounds__(BLOCK)
pagerank_give(int vertices, float rest, const int* __restrict__ out_degrees, float* __restrict__ ranks, float* __restrict__ given) {
  const int v = blockIdx.x * BLOCK + threadIdx.x;
  if (v >= vertices) return;
  given[v] = out_degrees[v] ? DAMPING * ranks[v] / out_degrees[v] : 0.0f;
  ranks[v] = rest;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
pagerank_plain(int vertices, float rest, const int* __restrict__ in_offsets, const int* __restrict__ sources,
               const float* __restrict__ given, float* __restrict__ ranks) {
#pragma ccc for
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < vertices; v += gridDim.x * blockDim.x) {
    float rank = rest;
    int first = in_offsets[v], last = in_offsets[v + 1];
#pragma ccc for variable
    for (int k = first; k < last; ++k) rank += given[sources[k]];
    ranks[v] = rank;
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
pagerank_pull(int vertices, float rest, const int* in_offsets, const int* sources, const float* __restrict__ given, float* ranks) {
  const auto from = [=](int u, int) { return __ldg(given + u); };
  const auto store = [=](int v, float rank) { ranks[v] = rank; };
  cte::reduce_neighbors<BLOCK, CTE_POLICY>(cte::graph{in_offsets, sources}, vertices, from, cte::plus{}, rest, store);
}

// One launch an iteration: once a vertex has its rank, it also says what it gives in the next iteration.
extern "C" __global__ void __launch_bounds__(BLOCK)
pagerank_program(int vertices, float rest, const int* in_offsets, const int* sources, const int* __restrict__ out_degrees,
                 const float* __restrict__ given, float* __restrict__ gives, float* __restrict__ ranks) {
  const auto begin = [=](int) { return rest; };
  const auto from = [=](int u, int) { return __ldg(given + u); };
  const auto become = [=](int v, float rank) {
    ranks[v] = rank;
    gives[v] = out_degrees[v] ? DAMPING * rank / out_degrees[v] : 0.0f;
    return false;  // all vertices are active, in each of the five iterations
  };
  const cte::vertex_program program{begin, from, cte::plus{}, become};
  cte::step<BLOCK, CTE_POLICY>(program, cte::graph{in_offsets, sources}, vertices, [](int) {});
}

extern "C" __global__ void __launch_bounds__(BLOCK)
pagerank_push(int vertices, const int* offsets, const int* neighbors, const float* __restrict__ given, float* ranks) {
  const auto give = [=](int u, int, float part) { atomicAdd(ranks + u, part); };
  cte::advance_if<BLOCK, CTE_POLICY>(
      cte::graph{offsets, neighbors}, vertices, [](int) { return true; }, give, [=](int v) { return given[v]; });
}
