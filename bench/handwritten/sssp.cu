// The kernels of samples/sssp, the first collected by hand: vertices in the mask wait until 32 of them read where their lists
// lie, with the costs that neighbouring lanes have read together, and lanes whose list has ended go on with one that waits.
#include "../../samples/sssp/sssp.cuh"
#include "warp_stack.cuh"

struct Vertex {
  int v, cost;
};

struct List {
  int next, last, cost;
};

constexpr int TRIPS = 4;  // between two votes, as the sample unrolls its loop

extern "C" __global__ void __launch_bounds__(256)
sssp_relax(int vertices, const int* __restrict__ mask, const int* __restrict__ costs, int* __restrict__ updating,
           const int* __restrict__ row, const int* __restrict__ neighbours, const int* __restrict__ weights) {
  using Vertices = ccc::WarpStack<Vertex>;
  using Lists = ccc::WarpStack<List>;
  __shared__ Vertices::Storage vertices_storage;
  __shared__ Lists::Storage lists_storage;
  Vertices waiting_vertices(vertices_storage);
  Lists waiting_lists(lists_storage);

  const auto visit_some = [=](List& list) {
#pragma unroll
    for (int trip = 0; trip < TRIPS; ++trip)
      atomicMin(&updating[neighbours[list.next + trip]], list.cost + weights[list.next + trip]);
    list.next += TRIPS;
    return list.next < list.last;
  };
  // What is left of a list after its first neighbours is a multiple of TRIPS, and often nothing.
  const auto expand = [&](bool given, Vertex vertex) {
    List list{0, 0, vertex.cost};
    if (given) list.next = row[vertex.v], list.last = row[vertex.v + 1];
#pragma unroll 1
    for (; (list.last - list.next) % TRIPS; ++list.next)
      atomicMin(&updating[neighbours[list.next]], vertex.cost + weights[list.next]);
    waiting_lists.collect_trips(list.next < list.last, list, visit_some);
  };

  const int stride = gridDim.x * blockDim.x;
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; __any_sync(ccc::WHOLE_WARP, v < vertices); v += stride) {
    const bool wanted = v < vertices && mask[v];
    Vertex vertex{v, 0};
    if (wanted) vertex.cost = costs[v];
    waiting_vertices.collect(wanted, vertex, [&](Vertex vertex) { expand(true, vertex); });
  }
  Vertex vertex{0, 0};
  const bool given = waiting_vertices.waiting(vertex);
  expand(given, vertex);
  waiting_lists.drain([&](List list) {
    while (visit_some(list)) {
    }
  });
}
