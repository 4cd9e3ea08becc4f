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
  const auto visit = [=](List& list) {
#pragma unroll
    for (int trip = 0; trip < TRIPS; ++trip) {
      const int u = neighbours[list.next];
      if (levels[u] < 0) {
        levels[u] = current + 1;
        *changed = 1;
      }
      if (++list.next == list.last) return false;
    }
    return true;
  };
  const auto expand = [&](bool given, int v) {
    List list{0, 0};
    if (given) list = {row[v], row[v + 1]};
    waiting_lists.collect_trips(list.next < list.last, list, visit);
  };

  const int stride = gridDim.x * blockDim.x;
  for (int first = ccc::first_of_warp(); first < vertices; first += stride) {
    const int v = first + int(ccc::lane());
    const bool wanted = v < vertices && levels[v] == current;
    waiting_vertices.collect_rare(wanted, v, [&](int v) { expand(true, v); });
  }
  int v = 0;
  const bool given = waiting_vertices.waiting(v);
  expand(given, v);
  waiting_lists.drain([&](List list) {
    while (visit(list)) {
    }
  });
}
