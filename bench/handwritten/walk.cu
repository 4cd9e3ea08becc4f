// The kernels of samples/walk with the photons' steps collected by hand: a task is the rest of a photon's way.
#include "../../samples/walk/walk.cuh"
#include "warp_stack.cuh"

struct Task {
  Photon photon;
  int i;
};

template <int STEPS>
__device__ __forceinline__ void walk(int photons, float absorption, float* moments) {
  using Stack = ccc::WarpStack<Task>;
  __shared__ Stack::Storage storage;
  Stack stack(storage);
  // Whoever follows a photon to its end stores what became of it.
  const auto follow = [=](Task& task) {
    bool alive = true;
#pragma unroll 1
    for (int taken = 0; alive && taken < STEPS; ++taken) alive = step(task.photon, absorption);
    if (!alive) moments[task.i] = moment(task.photon);
    return alive;
  };
  const int stride = gridDim.x * blockDim.x;
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  for (; __any_sync(ccc::WHOLE_WARP, i < photons); i += stride)
    stack.collect_trips(i < photons, {entering(i), i}, follow);
  stack.drain([=](Task task) {
    while (follow(task)) {
    }
  });
}

#define WALK(STEPS)                                                                                           \
  extern "C" __global__ void __launch_bounds__(256) walk_##STEPS(int photons, float absorption, float* moments) { \
    walk<STEPS>(photons, absorption, moments);                                                                \
  }
WALK(16)
WALK(4)
WALK(1)
