// Breadth-first search, one kernel launch a level, with the two places where a warp diverges annotated.
//
//   bfs [scale] [edge_factor] [seed]      an R-MAT graph of 2^scale vertices and edge_factor * 2^scale edges
//
// A lane visits the vertices v, v + stride, v + 2 * stride, ... Few of them are on the current level (`if`), and those that
// are have between none and thousands of neighbours (`for variable`): F. Khorasani's thesis, figures 4.1 and 4.5.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// levels[v] is the distance of v from the source, or -1 while v has not been reached. Several threads may reach the same u
// at once: all of them store the same number into one aligned word, and nobody compares against a level that is still being
// written, so neither the order of the vertices nor that of the neighbours matters.
extern "C" __global__ void __launch_bounds__(256)
bfs(int vertices, int current, int* levels, const int* __restrict__ row, const int* __restrict__ neighbours, int* changed) {
#pragma ccc for
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < vertices; v += gridDim.x * blockDim.x) {
#pragma ccc if
    if (levels[v] == current) {
      int first = row[v], last = row[v + 1];
// nvcc would unroll a plain loop like this by itself; an annotated one is unrolled only as the source says.
#pragma unroll 4
#pragma ccc for variable
      for (int k = first; k < last; ++k) {
        int u = neighbours[k];
        if (levels[u] < 0) {
          levels[u] = current + 1;
          *changed = 1;
        }
      }
    }
  }
}

// --- the host side: workload.py generates the same graph and computes the same checksum ---------------------------------

struct Graph {
  std::vector<int> row;         // vertices + 1 offsets into neighbours
  std::vector<int> neighbours;
};

static uint32_t hash32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

// A permutation of 0 .. 2^scale - 1: each step can be undone.
static uint32_t shuffled(uint32_t v, int scale, uint32_t seed) {
  const uint32_t mask = (uint32_t(1) << scale) - 1;
  for (uint32_t round = 0; round < 3; ++round) {
    v = (v * (hash32(seed + round) | 1) + hash32(~seed + round)) & mask;
    v ^= v >> (scale + 1) / 2;
  }
  return v;
}

// R-MAT with the probabilities of Graph500 (0.57, 0.19, 0.19, 0.05). Every random number is the hash of its edge and its
// level, so the graph does not depend on the order in which it is made. Duplicate edges and loops are kept.
static Graph rmat(int scale, int edge_factor, uint32_t seed) {
  const uint32_t vertices = uint32_t(1) << scale, edges = vertices * uint32_t(edge_factor);
  std::vector<uint32_t> from(edges), to(edges);
  for (uint32_t e = 0; e < edges; ++e) {
    const uint32_t key = hash32(e + hash32(seed));
    uint32_t u = 0, v = 0;
    for (int level = 0; level < scale; ++level) {
      const uint32_t random = hash32(key + uint32_t(level) * 0x9e3779b9u);
      const uint32_t down = random >= 3264175144u;                                         // 0.76 * 2^32
      const uint32_t right = down ? random >= 4080218931u : random >= 2448131358u;  // 0.95 and 0.57 * 2^32
      u = u << 1 | down;
      v = v << 1 | right;
    }
    from[e] = shuffled(u, scale, seed);
    to[e] = shuffled(v, scale, seed);
  }
  Graph graph{std::vector<int>(vertices + 1), std::vector<int>(edges)};
  for (uint32_t e = 0; e < edges; ++e) ++graph.row[from[e] + 1];
  for (uint32_t v = 0; v < vertices; ++v) graph.row[v + 1] += graph.row[v];
  std::vector<int> next(graph.row.begin(), graph.row.end() - 1);
  for (uint32_t e = 0; e < edges; ++e) graph.neighbours[next[from[e]]++] = int(to[e]);
  return graph;
}

// The vertex with the most neighbours, the first of them.
static int busiest(const Graph& graph) {
  int best = 0;
  for (int v = 1; v + 1 < int(graph.row.size()); ++v)
    if (graph.row[v + 1] - graph.row[v] > graph.row[best + 1] - graph.row[best]) best = v;
  return best;
}

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "bfs: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

template <class T>
static T* on_device(const std::vector<T>& values) {
  T* pointer = nullptr;
  check(cudaMalloc(&pointer, values.size() * sizeof(T)), "cudaMalloc");
  check(cudaMemcpy(pointer, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  return pointer;
}

int main(int argc, char** argv) {
  const int scale = argc > 1 ? std::atoi(argv[1]) : 17, edge_factor = argc > 2 ? std::atoi(argv[2]) : 8;
  const uint32_t seed = argc > 3 ? uint32_t(std::strtoul(argv[3], nullptr, 10)) : 1;
  if (scale < 1 || scale > 26 || edge_factor < 1 || edge_factor > 32) {
    std::fprintf(stderr, "usage: bfs [scale 1..26] [edge_factor 1..32] [seed]\n");
    return 2;
  }
  const Graph graph = rmat(scale, edge_factor, seed);
  const int vertices = int(graph.row.size()) - 1, source = busiest(graph);
  std::vector<int> levels(vertices, -1);
  levels[source] = 0;

  int* device_levels = on_device(levels);
  int* device_row = on_device(graph.row);
  int* device_neighbours = on_device(graph.neighbours);
  int* device_changed = on_device(std::vector<int>{0});
  int changed = 1;
  for (int current = 0; changed; ++current) {
    check(cudaMemset(device_changed, 0, sizeof(int)), "cudaMemset");
    bfs<<<16, 256>>>(vertices, current, device_levels, device_row, device_neighbours, device_changed);
    check(cudaGetLastError(), "the launch");
    check(cudaMemcpy(&changed, device_changed, sizeof(int), cudaMemcpyDeviceToHost), "the kernel");
  }
  check(cudaMemcpy(levels.data(), device_levels, vertices * sizeof(int), cudaMemcpyDeviceToHost), "cudaMemcpy");
  cudaFree(device_levels);
  cudaFree(device_row);
  cudaFree(device_neighbours);
  cudaFree(device_changed);

  uint32_t checksum = 0;
  std::vector<int> histogram;
  for (int v = 0; v < vertices; ++v) {
    checksum += hash32(uint32_t(v) ^ hash32(uint32_t(levels[v])));
    if (levels[v] >= int(histogram.size())) histogram.resize(levels[v] + 1);
    if (levels[v] >= 0) ++histogram[levels[v]];
  }
  std::printf("vertices %d edges %d source %d checksum %08x\n", vertices, graph.row[vertices], source, checksum);
  for (size_t level = 0; level < histogram.size(); ++level) std::printf("level %d: %d\n", int(level), histogram[level]);
  return 0;
}
