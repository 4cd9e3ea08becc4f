// samples/emies with CCC written by hand: near boxes wait until 32 lanes have one.
//
// Half of the tasks that run are the lane's own. Only what a lane computes for another goes through shared memory.
#include "../../samples/emies/emies.cuh"
#include "warp_stack.cuh"

struct Task {
  float x, y, z;
  int box, owner;  // owner: the thread whose observer this is
};

extern "C" __global__ void __launch_bounds__(256)
emies(int observers, int boxes, const float* __restrict__ x, const float* __restrict__ y,
      const float* __restrict__ z, const Box* __restrict__ box, const float4* __restrict__ sources,
      Field* __restrict__ fields) {
  using Stack = ccc::WarpStack<Task>;
  __shared__ Stack::Storage storage;
  __shared__ Field from_others[256];
  const int self = threadIdx.x, stride = gridDim.x * blockDim.x;
  Stack stack(storage);

  for (int first = ccc::first_of_warp(); first < observers; first += stride) {
    const int o = first + ccc::lane();
    const bool observes = o < observers;
    Task mine = {0, 0, 0, 0, self};
    if (observes) mine.x = x[o], mine.y = y[o], mine.z = z[o];
    Field sum = {0, 0};
    from_others[self] = {0, 0};
    __syncwarp();
    const auto add = [&](const Task& task) {
      const Field field =
          near_field(sources, box[task.box].first, box[task.box].count, task.x, task.y, task.z);
      if (task.owner == self) {
        sum.re += field.re;
        sum.im += field.im;
      } else {
        atomicAdd(&from_others[task.owner].re, field.re);
        atomicAdd(&from_others[task.owner].im, field.im);
      }
    };
    for (int b = 0; b < boxes; ++b) {
      const float4 centre = box[b].centre;
      const float dx = mine.x - centre.x, dy = mine.y - centre.y, dz = mine.z - centre.z, d2 = squared(dx, dy, dz);
      const bool is_near = observes && d2 < NEAR * NEAR;
      if (!is_near) {
        const Field field = far_field(box[b].dipole, centre.w, dx, dy, dz, d2);
        sum.re += field.re;
        sum.im += field.im;
      }
      mine.box = b;
      stack.collect(is_near, mine, add);
    }
    Task left;
    if (stack.waiting(left)) add(left);
    __syncwarp();
    if (observes) fields[o] = {sum.re + from_others[self].re, sum.im + from_others[self].im};
  }
}
