// Breadth-first search, one kernel launch per level, with the two places where a warp diverges annotated.
//
//   bfs [scale] [edge_factor] [seed]      an R-MAT graph of 2^scale vertices and edge_factor * 2^scale edges
//
// A lane visits the vertices v, v + stride, v + 2 * stride, ... Few of them are on the current level (`if`), and those that
// are have between none and thousands of neighbors (`for variable`): F. Khorasani's thesis, figures 4.1 and 4.5.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "graph.cuh"

// levels[v] is the distance of v from the source, or -1 while v has not been reached. Several threads may reach the same u
// at once: all of them store the same number into one aligned word, and no thread compares against a level that is still being
// written, so neither the order of the vertices nor that of the neighbors matters.
extern "C" __global__ void __launch_bounds__(256)
bfs(int vertices, int current, int* levels, const int* __restrict__ row, const int* __restrict__ neighbours, int* changed) {
#pragma ccc for
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < vertices; v += gridDim.x * blockDim.x) {
#pragma ccc if
    if (levels[v] == current) {
      int first = row[v], last = row[v + 1];
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

extern "C" __global__ void __launch_bounds__(256) rmat_scatter(const Rmat* graph, int* next, int* neighbours) {
  rmat_place(graph, next, [=](int k, int to, unsigned) { neighbours[k] = to; });
}

// The host side: workload.py generates the same graph and computes the same checksum.
int main(int argc, char** argv) {
  const int scale = argc > 1 ? std::atoi(argv[1]) : 17, edge_factor = argc > 2 ? std::atoi(argv[2]) : 8;
  const uint32_t seed = argc > 3 ? uint32_t(std::strtoul(argv[3], nullptr, 10)) : 1;
  if (scale < 1 || scale > 26 || edge_factor < 1 || edge_factor > 32) {
    std::fprintf(stderr, "usage: bfs [scale 1..26] [edge_factor 1..32] [seed]\n");
    return 2;
  }
  const Graph graph = rmat(graph500(scale, edge_factor, seed));
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
