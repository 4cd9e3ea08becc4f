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

  const auto visit = [=](List& list) {
    int neighbour[TRIPS], weight[TRIPS];
#pragma unroll
    for (int trip = 0; trip < TRIPS; ++trip) {
      if (list.next + trip >= list.last) break;
      neighbour[trip] = neighbours[list.next + trip];
      weight[trip] = weights[list.next + trip];
    }
#pragma unroll
    for (int trip = 0; trip < TRIPS; ++trip)
      if (list.next + trip < list.last) atomicMin(&updating[neighbour[trip]], list.cost + weight[trip]);
    list.next += TRIPS;
    return list.next < list.last;
  };
  const auto expand = [&](bool given, Vertex vertex) {
    List list{0, 0, vertex.cost};
    if (given) list.next = row[vertex.v], list.last = row[vertex.v + 1];
    waiting_lists.collect_trips(list.next < list.last, list, visit);
  };

  const int stride = gridDim.x * blockDim.x;
  for (int first = ccc::first_of_warp(); first < vertices; first += stride) {
    const int v = first + int(ccc::lane());
    const bool wanted = v < vertices && mask[v];
    Vertex vertex{v, 0};
    if (wanted) vertex.cost = costs[v];
    waiting_vertices.collect_rare(wanted, vertex, [&](Vertex vertex) { expand(true, vertex); });
  }
  Vertex vertex{0, 0};
  const bool given = waiting_vertices.waiting(vertex);
  expand(given, vertex);
  waiting_lists.drain([&](List list) {
    while (visit(list)) {
    }
  });
}
