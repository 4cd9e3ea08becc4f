// The kernels of samples/sssp, the first collected by hand: vertices in the mask wait until 32 of them read where their lists
// lie, with the costs that neighbouring lanes have read together, and then the warp goes over all those lists, 32 neighbours at
// a time.
#include "../../samples/sssp/sssp.cuh"
#include "warp_stack.cuh"

struct Vertex {
  int v, cost;
};

extern "C" __global__ void __launch_bounds__(256)
sssp_relax(int vertices, const int* __restrict__ mask, const int* __restrict__ costs, int* __restrict__ updating,
           const int* __restrict__ row, const int* __restrict__ neighbours, const int* __restrict__ weights) {
  using Vertices = ccc::WarpStack<Vertex>;
  __shared__ Vertices::Storage storage;
  Vertices waiting(storage);

  const auto expand = [&](bool given, Vertex vertex) {
    int next = 0, last = 0;
    if (given) next = row[vertex.v], last = row[vertex.v + 1];
    ccc::expand(
        next, last, [&](int owner) { return __shfl_sync(ccc::WHOLE_WARP, vertex.cost, owner); },
        [=](int k, int cost) { atomicMin(&updating[neighbours[k]], cost + weights[k]); });
  };

  const int stride = gridDim.x * blockDim.x;
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; __any_sync(ccc::WHOLE_WARP, v < vertices); v += stride) {
    const bool wanted = v < vertices && mask[v];
    Vertex vertex{v, 0};
    if (wanted) vertex.cost = costs[v];
    waiting.collect(wanted, vertex, [&](Vertex vertex) { expand(true, vertex); });
  }
  Vertex vertex{0, 0};
  const bool given = waiting.waiting(vertex);
  expand(given, vertex);
}
