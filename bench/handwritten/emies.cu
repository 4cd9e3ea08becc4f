// samples/emies with CCC written by hand: near boxes wait until 32 lanes have one.
//
// A task adds its field to its observer's in global memory, whoever runs it. So tasks may wait past the end of their
// observer's loop, and what is left runs once, at the end of the kernel.
#include "../../samples/emies/emies.cuh"
#include "warp_stack.cuh"

struct Task {
  float x, y, z;
  int box, observer;
};

__device__ __forceinline__ void add(Field* __restrict__ fields, int observer, Field field) {
  atomicAdd(&fields[observer].re, field.re);
  atomicAdd(&fields[observer].im, field.im);
}

extern "C" __global__ void __launch_bounds__(256)
emies(int observers, int boxes, const float* __restrict__ x, const float* __restrict__ y, const float* __restrict__ z,
      const Box* __restrict__ box, const float4* __restrict__ sources, Field* __restrict__ fields) {
  using Stack = ccc::WarpStack<Task>;
  __shared__ Stack::Storage storage;
  const int stride = gridDim.x * blockDim.x;
  Stack stack(storage);
  const auto run = [&](const Task& task) {
    const int first = box[task.box].first, count = box[task.box].count;
    add(fields, task.observer, near_field(sources, first, count, task.x, task.y, task.z));
  };

  for (int o = threadIdx.x + blockIdx.x * blockDim.x; __any_sync(ccc::WHOLE_WARP, o < observers); o += stride) {
    const bool observes = o < observers;
    Task mine = {0, 0, 0, 0, o};
    if (observes) {
      mine.x = x[o], mine.y = y[o], mine.z = z[o];
      fields[o] = {0, 0};
    }
    __syncwarp();  // other lanes add to what was just cleared
    Field far = {0, 0};
    for (int b = 0; b < boxes; ++b) {
      const float4 centre = box[b].centre;
      const float dx = mine.x - centre.x, dy = mine.y - centre.y, dz = mine.z - centre.z, d2 = squared(dx, dy, dz);
      const bool is_near = observes && d2 < NEAR * NEAR;
      if (!is_near) {
        const Field field = far_field(box[b].dipole, centre.w, dx, dy, dz, d2);
        far.re += field.re;
        far.im += field.im;
      }
      // Most boxes are far for all 32 observers.
      if (__any_sync(ccc::WHOLE_WARP, is_near)) {
        mine.box = b;
        stack.collect(is_near, mine, run);
      }
    }
    if (observes) add(fields, o, far);
  }
  stack.drain(run);
}
