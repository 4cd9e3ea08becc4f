// samples/dqg with CCC written by hand: a lane that has finished its point goes on with the pairs of a waiting one.
#include "../../samples/dqg/dqg.cuh"
#include "warp_stack.cuh"

// Pairs between two votes. A point has 2100 pairs on average, so few lanes wait for the end of a chunk.
constexpr int CHUNK = 16;

struct Task {
  Point at;
  Claims claims;
  int n, point;
};

extern "C" __global__ void __launch_bounds__(256)
becke(int points, int most, const double* __restrict__ lists, const double* __restrict__ x, const double* __restrict__ y,
      const double* __restrict__ z, const int* __restrict__ counts, double* __restrict__ weights) {
  using Stack = ccc::WarpStack<Task>;
  __shared__ Stack::Storage storage;
  __shared__ Atoms atoms;
  load(atoms, lists + blockIdx.y * 3 * most, most);
  const double core = CORE * separation(atoms, 0, 1);
  const int stride = gridDim.x * blockDim.x;
  Stack stack(storage);
  Task task = {};

  for (int p = threadIdx.x + blockIdx.x * blockDim.x; __any_sync(ccc::WHOLE_WARP, p < points); p += stride) {
    bool wanted = p < points;
    if (wanted) {
      task.point = blockIdx.y * points + p;
      task.at = {x[task.point], y[task.point], z[task.point]};
      task.n = counts[task.point];
      task.claims = {distance(task.at, atoms, 0)};
      wanted = task.claims.ri >= core;
      if (!wanted) weights[task.point] = 1;
    }
    stack.collect_trips(wanted, task, [&](Task& t) {
#pragma unroll 1
      for (int trip = 0; trip < CHUNK && t.claims.i < t.n; ++trip) t.claims.pair(t.at, atoms, t.n);
      if (t.claims.i < t.n) return true;
      weights[t.point] = t.claims.weight();
      return false;
    });
  }
  stack.drain([&](Task t) {
    while (t.claims.i < t.n) t.claims.pair(t.at, atoms, t.n);
    weights[t.point] = t.claims.weight();
  });
}
