// The kernel of samples/bfs collected by hand: vertices on the current level wait until 32 of them read where their lists lie,
// and then the warp goes over all those lists, 32 neighbours at a time.
#include "warp_stack.cuh"

extern "C" __global__ void __launch_bounds__(256)
bfs(int vertices, int current, int* levels, const int* __restrict__ row, const int* __restrict__ neighbours, int* changed) {
  using Vertices = ccc::WarpStack<int>;
  __shared__ Vertices::Storage storage;
  Vertices waiting(storage);

  const auto visit = [=](int k, int) {
    const int u = neighbours[k];
    if (levels[u] >= 0) return;
    levels[u] = current + 1;
    *changed = 1;
  };
  const auto expand = [&](bool given, int v) {
    int next = 0, last = 0;
    if (given) next = row[v], last = row[v + 1];
    ccc::expand(next, last, [](int) { return 0; }, visit);
  };

  const int stride = gridDim.x * blockDim.x;
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; __any_sync(ccc::WHOLE_WARP, v < vertices); v += stride) {
    const bool wanted = v < vertices && levels[v] == current;
    waiting.collect(wanted, v, [&](int v) { expand(true, v); });
  }
  int left = 0;
  const bool given = waiting.waiting(left);
  expand(given, left);
}
