// PageRank until it has converged, in the forms that workload.py names. A vertex without outgoing edges gives nothing: its rank leaves
// the graph.
//
// `plain`, `ccc` and `program` pull: every vertex sums what the others give, until no rank changes by more than `tolerance`. `residual`
// pushes: residuals[v] is what ranks[v] lacks and has not been passed on (P. Berkhin, Bookmark-coloring algorithm for personalized
// PageRank computing, 2006). Only vertices whose residual exceeds `tolerance` are in the frontier. Both end when what is left is less
// than `tolerance` at each vertex, and so all ranks are equally exact.
#include <cte/frontier.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256;
constexpr float DAMPING = 0.85f;
using Size = unsigned long long;

// rest is what every vertex has without edges: (1 - DAMPING) / vertices.
extern "C" __global__ void __launch_bounds__(BLOCK)
converged_give(int vertices, const int* __restrict__ out_degrees, const float* __restrict__ ranks, float* __restrict__ given) {
  const int v = blockIdx.x * BLOCK + threadIdx.x;
  if (v < vertices) given[v] = out_degrees[v] ? DAMPING * ranks[v] / out_degrees[v] : 0.0f;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
converged_plain(int vertices, float rest, float tolerance, const int* __restrict__ in_offsets, const int* __restrict__ sources,
                const float* __restrict__ given, float* __restrict__ ranks, int* changed) {
#pragma ccc for
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < vertices; v += gridDim.x * blockDim.x) {
    float rank = rest;
    int first = in_offsets[v], last = in_offsets[v + 1];
#pragma ccc for variable
    for (int k = first; k < last; ++k) rank += given[sources[k]];
    if (fabsf(rank - ranks[v]) > tolerance && *changed == 0) *changed = 1;
    ranks[v] = rank;
  }
}

// One launch an iteration: once a vertex has its rank, it also says what it gives in the next iteration.
extern "C" __global__ void __launch_bounds__(BLOCK)
converged_program(int vertices, float rest, float tolerance, const int* in_offsets, const int* sources,
                  const int* __restrict__ out_degrees, const float* __restrict__ given, float* __restrict__ gives,
                  float* __restrict__ ranks, int* changed) {
  const auto begin = [=](int) { return rest; };
  const auto from = [=](int u, int) { return __ldg(given + u); };
  const auto become = [=](int v, float rank) {
    const bool has_changed = fabsf(rank - ranks[v]) > tolerance;
    gives[v] = out_degrees[v] ? DAMPING * rank / out_degrees[v] : 0.0f;
    ranks[v] = rank;  // last: a store right after the load from the same address stalls
    return has_changed;
  };
  const cte::vertex_program program{begin, from, cte::plus{}, become};
  cte::step<BLOCK, CTE_POLICY>(program, cte::graph{in_offsets, sources}, vertices, changed);
}

// At first, every vertex lacks `rest` and is in the frontier.
extern "C" __global__ void __launch_bounds__(BLOCK)
converged_begin(int vertices, float rest, const int* offsets, float* ranks, float* residuals, int* next, unsigned* next_begins,
                Size* next_counts, unsigned capacity) {
  const cte::scanned_queue<int, int> all{offsets, next, next_begins, next_counts, capacity};
  const int v = blockIdx.x * BLOCK + threadIdx.x;
  if (v < vertices) {
    ranks[v] = 0;
    residuals[v] = rest;
  }
  __syncwarp();
  all.push_if(v < vertices, v < vertices ? v : 0);
}

// The vertices of the frontier take what they lack, and say what they give for it.
extern "C" __global__ void __launch_bounds__(BLOCK)
converged_take(const int* offsets, float* ranks, float* residuals, float* __restrict__ given, const int* now, const Size* now_counts) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= cte::scanned_queue<int, int>::vertices_in(*now_counts)) return;
  const int v = now[i];
  const float residual = residuals[v];
  residuals[v] = 0;
  ranks[v] += residual;
  given[v] = DAMPING * residual / (offsets[v + 1] - offsets[v]);
}

// The addition that lifts a residual above `tolerance` appends its vertex: exactly one does, since residuals are not reset here.
extern "C" __global__ void __launch_bounds__(BLOCK)
converged_push(float tolerance, const int* offsets, const int* neighbors, const float* given, float* residuals, int* now,
               unsigned* now_begins, Size* now_counts, int* next, unsigned* next_begins, Size* next_counts, unsigned capacity) {
  __shared__ cte::staging<BLOCK, int> staged;
  using frontier = cte::scanned_queue<int, int>;
  const frontier to{offsets, next, next_begins, next_counts, capacity};
  staged.clear();
  const auto give = [=](int u, int, float part) {
    const float before = atomicAdd(residuals + u, part);
    if (before <= tolerance && before + part > tolerance) staged.push(u, to);
  };
  cte::advance_balanced<BLOCK>(cte::graph{offsets, neighbors}, frontier{offsets, now, now_begins, now_counts, capacity}, give,
                               [=](int v) { return given[v]; });
  staged.flush(to);
}

// What is left is too little to be passed on.
extern "C" __global__ void __launch_bounds__(BLOCK)
converged_end(int vertices, const float* __restrict__ residuals, float* __restrict__ ranks) {
  const int v = blockIdx.x * BLOCK + threadIdx.x;
  if (v < vertices) ranks[v] += residuals[v];
}
