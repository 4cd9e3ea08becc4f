// The kernel of samples/bfs collected by hand: vertices on the current level wait until 32 of them read where their lists lie,
// and lanes whose list has ended go on with a list that waits.
#include "warp_stack.cuh"

struct List {
  int next, last;
};

constexpr int TRIPS = 4;  // between two votes, as the sample unrolls its loop

extern "C" __global__ void __launch_bounds__(256)
bfs(int vertices, int current, int* levels, const int* __restrict__ row, const int* __restrict__ neighbours, int* changed) {
  using Vertices = ccc::WarpStack<int>;
  using Lists = ccc::WarpStack<List>;
  __shared__ Vertices::Storage vertices_storage;
  __shared__ Lists::Storage lists_storage;
  Vertices waiting_vertices(vertices_storage);
  Lists waiting_lists(lists_storage);

  // One neighbour after another, as in the sample: only the collection is to differ.
  const auto visit = [=](int k) {
    const int u = neighbours[k];
    if (levels[u] >= 0) return;
    levels[u] = current + 1;
    *changed = 1;
  };
  const auto visit_some = [=](List& list) {
#pragma unroll
    for (int trip = 0; trip < TRIPS; ++trip) visit(list.next + trip);
    list.next += TRIPS;
    return list.next < list.last;
  };
  // What is left of a list after its first neighbours is a multiple of TRIPS, and often nothing.
  const auto expand = [&](bool given, int v) {
    List list{0, 0};
    if (given) list = {row[v], row[v + 1]};
#pragma unroll 1
    for (; (list.last - list.next) % TRIPS; ++list.next) visit(list.next);
    waiting_lists.collect_trips(list.next < list.last, list, visit_some);
  };

  const int stride = gridDim.x * blockDim.x;
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; __any_sync(ccc::WHOLE_WARP, v < vertices); v += stride) {
    const bool wanted = v < vertices && levels[v] == current;
    waiting_vertices.collect(wanted, v, [&](int v) { expand(true, v); });
  }
  int left = 0;
  const bool given = waiting_vertices.waiting(left);
  expand(given, left);
  waiting_lists.drain([&](List list) {
    while (visit_some(list)) {
    }
  });
}
