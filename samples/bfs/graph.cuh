// Graphs for bfs.cu and sssp.cu: R-MAT on the host, and the kernels that make large ones. workload.py makes the same by numpy.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

__host__ __device__ inline uint32_t hash32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

// Chakrabarti, Zhan, Faloutsos: R-MAT, a recursive model for graph mining, 2004. An edge is an entry of the adjacency matrix:
// level by level, 32 random bits choose one of its quarters, whose ranges end at `top_left`, `top` and `bottom_left`.
struct Rmat {
  uint32_t scale, vertices, edges, seed;  // the 2^scale rows and columns are mapped onto so many vertices, in order
  uint32_t top_left, top, bottom_left;
};

// With the probabilities of Graph500: 0.57, 0.19, 0.19, 0.05.
inline Rmat graph500(uint32_t scale, uint32_t edge_factor, uint32_t seed) {
  return {scale, 1u << scale, edge_factor << scale, seed, 2448131358u, 3264175144u, 4080218931u};
}

struct Edge {
  uint32_t from, to;
};

// A permutation of 0 .. 2^scale - 1: each step can be undone.
__host__ __device__ inline uint32_t shuffled(uint32_t v, const Rmat& graph) {
  const uint32_t mask = (uint32_t(1) << graph.scale) - 1;
  for (uint32_t round = 0; round < 3; ++round) {
    v = (v * (hash32(graph.seed + round) | 1) + hash32(~graph.seed + round)) & mask;
    v ^= v >> (graph.scale + 1) / 2;
  }
  return v;
}

__host__ __device__ inline uint32_t vertex(uint32_t v, const Rmat& graph) {
  return uint32_t(uint64_t(shuffled(v, graph)) * graph.vertices >> graph.scale);
}

// Every random number is the hash of its edge and its level, so the graph does not depend on the order in which it is made.
// Duplicate edges and loops are kept.
__host__ __device__ inline Edge edge(uint32_t e, const Rmat& graph) {
  const uint32_t key = hash32(e + hash32(graph.seed));
  uint32_t row = 0, column = 0;
  for (uint32_t level = 0; level < graph.scale; ++level) {
    const uint32_t random = hash32(key + level * 0x9e3779b9u);
    const uint32_t down = random >= graph.top;
    const uint32_t right = random >= (down ? graph.bottom_left : graph.top_left);
    row = row << 1 | down;
    column = column << 1 | right;
  }
  return {vertex(row, graph), vertex(column, graph)};
}

// The length of an edge, 1 to 64.
__host__ __device__ inline int weight(uint32_t e, const Rmat& graph) {
  return 1 + int(hash32(~e ^ hash32(graph.seed)) % 64);
}

// --- on the GPU -----------------------------------------------------------------------------------------------------------

// Counts the edges that leave each vertex, one entry late: running sums make them the offsets of the vertices' lists.
extern "C" __global__ void __launch_bounds__(256) rmat_count(const Rmat* graph, int* row) {
  for (uint32_t e = threadIdx.x + blockIdx.x * blockDim.x; e < graph->edges; e += gridDim.x * blockDim.x)
    atomicAdd(&row[edge(e, *graph).from + 1], 1);
}

// Puts each edge into the list of the vertex that it leaves, in any order. `next` begins as the offsets of the lists.
template <class Put>
__device__ __forceinline__ void rmat_place(const Rmat* graph, int* next, Put put) {
  for (uint32_t e = threadIdx.x + blockIdx.x * blockDim.x; e < graph->edges; e += gridDim.x * blockDim.x) {
    const Edge placed = edge(e, *graph);
    put(atomicAdd(&next[placed.from], 1), int(placed.to), e);
  }
}

// --- on the host ----------------------------------------------------------------------------------------------------------

struct Graph {
  std::vector<int> row;         // vertices + 1 offsets into neighbours and weights
  std::vector<int> neighbours;
  std::vector<int> weights;
};

inline Graph rmat(const Rmat& graph) {
  std::vector<Edge> edges(graph.edges);
  Graph made{std::vector<int>(graph.vertices + 1), std::vector<int>(graph.edges), std::vector<int>(graph.edges)};
  for (uint32_t e = 0; e < graph.edges; ++e) {
    edges[e] = edge(e, graph);
    ++made.row[edges[e].from + 1];
  }
  for (uint32_t v = 0; v < graph.vertices; ++v) made.row[v + 1] += made.row[v];
  std::vector<int> next(made.row.begin(), made.row.end() - 1);
  for (uint32_t e = 0; e < graph.edges; ++e) {
    const int k = next[edges[e].from]++;
    made.neighbours[k] = int(edges[e].to);
    made.weights[k] = weight(e, graph);
  }
  return made;
}

// The vertex with the most neighbours, the first of them.
inline int busiest(const Graph& graph) {
  int best = 0;
  for (int v = 1; v + 1 < int(graph.row.size()); ++v)
    if (graph.row[v + 1] - graph.row[v] > graph.row[best + 1] - graph.row[best]) best = v;
  return best;
}

// Ends the program where `status` is not success.
inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

template <class T>
T* on_device(const std::vector<T>& values) {
  T* pointer = nullptr;
  check(cudaMalloc(&pointer, values.size() * sizeof(T)), "cudaMalloc");
  check(cudaMemcpy(pointer, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  return pointer;
}
