// Shortest paths from one vertex, two kernel launches per round: P. Harish and P. J. Narayanan, Accelerating large graph
// algorithms on the GPU using CUDA, 2007.
//
//   sssp [scale] [edge_factor] [seed]     an R-MAT graph of 2^scale vertices and edge_factor * 2^scale edges of length 1 to 64
//
// A lane visits the vertices v, v + stride, v + 2 * stride, ... Few of them are in the mask (`if`), and those that are have
// between none and thousands of neighbors (`for variable`). Adjacent lanes read adjacent costs, as long as they read
// them before the tasks are mixed: F. Khorasani's thesis, figure 4.9.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../bfs/graph.cuh"
#include "sssp.cuh"

// Minima do not depend on the order in which they are taken.
extern "C" __global__ void __launch_bounds__(256)
sssp_relax(int vertices, const int* __restrict__ mask, const int* __restrict__ costs, int* __restrict__ updating,
           const int* __restrict__ row, const int* __restrict__ neighbours, const int* __restrict__ weights) {
#pragma ccc for
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < vertices; v += gridDim.x * blockDim.x) {
#pragma ccc if
    if (mask[v]) {
      int cost = costs[v];
      int first = row[v], last = row[v + 1];
#pragma ccc for variable
      for (int k = first; k < last; ++k) atomicMin(&updating[neighbours[k]], cost + weights[k]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
rmat_scatter(const Rmat* graph, int* next, int* neighbours, int* weights) {
  rmat_place(graph, next, [=](int k, int to, unsigned e) {
    neighbours[k] = to;
    weights[k] = weight(e, *graph);
  });
}

// The host side: workload.py generates the same graph and computes the same checksum.
int main(int argc, char** argv) {
  const int scale = argc > 1 ? std::atoi(argv[1]) : 16, edge_factor = argc > 2 ? std::atoi(argv[2]) : 8;
  const uint32_t seed = argc > 3 ? uint32_t(std::strtoul(argv[3], nullptr, 10)) : 1;
  if (scale < 1 || scale > 26 || edge_factor < 1 || edge_factor > 32) {
    std::fprintf(stderr, "usage: sssp [scale 1..26] [edge_factor 1..32] [seed]\n");
    return 2;
  }
  const Graph graph = rmat(graph500(scale, edge_factor, seed));
  const int vertices = int(graph.row.size()) - 1, source = busiest(graph);
  std::vector<int> costs(vertices, UNREACHED), mask(vertices, 0);
  costs[source] = 0;
  mask[source] = 1;

  int* device_costs = on_device(costs);
  int* device_updating = on_device(costs);
  int* device_mask = on_device(mask);
  int* device_row = on_device(graph.row);
  int* device_neighbours = on_device(graph.neighbours);
  int* device_weights = on_device(graph.weights);
  int* device_changed = on_device(std::vector<int>{0});
  int changed = 1, rounds = 0;
  for (; changed; ++rounds) {
    check(cudaMemset(device_changed, 0, sizeof(int)), "cudaMemset");
    sssp_relax<<<16, 256>>>(vertices, device_mask, device_costs, device_updating, device_row, device_neighbours, device_weights);
    sssp_update<<<16, 256>>>(vertices, device_mask, device_costs, device_updating, device_changed);
    check(cudaGetLastError(), "the launches");
    check(cudaMemcpy(&changed, device_changed, sizeof(int), cudaMemcpyDeviceToHost), "the kernels");
  }
  check(cudaMemcpy(costs.data(), device_costs, vertices * sizeof(int), cudaMemcpyDeviceToHost), "cudaMemcpy");
  for (int* pointer : {device_costs, device_updating, device_mask, device_row, device_neighbours, device_weights, device_changed})
    cudaFree(pointer);

  uint32_t checksum = 0;
  int reached = 0, farthest = 0;
  for (int v = 0; v < vertices; ++v) {
    checksum += hash32(uint32_t(v) ^ hash32(uint32_t(costs[v])));
    if (costs[v] == UNREACHED) continue;
    ++reached;
    if (costs[v] > farthest) farthest = costs[v];
  }
  std::printf("vertices %d edges %d source %d checksum %08x\n", vertices, graph.row[vertices], source, checksum);
  std::printf("rounds %d reached %d farthest %d\n", rounds, reached, farthest);
  return 0;
}
