// The kernel of samples/escape with its orbits collected by hand: a task is an orbit, and lanes whose orbit has escaped take
// up waiting ones every 32 steps.
#include "../../samples/escape/escape.cuh"
#include "warp_stack.cuh"

namespace {

constexpr int CHUNK = 32;

struct Task {
  float x, y, cx, cy;
  int pixel, taken;
};

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
escape(int width, int height, float left, float top, float pitch, int limit, int* __restrict__ steps) {
  using Stack = ccc::WarpStack<Task>;
  __shared__ Stack::Storage storage;
  Stack stack(storage);

  // Up to `most` steps; whether the orbit may go on. One comparison serves both the chunk's end and the limit, and an orbit
  // that escapes just where a chunk ends is found out in the next one.
  const auto advance = [=](Task& task, int most) {
    const int stop = min(limit, task.taken + most);
#pragma unroll 4
    while (inside(task.x, task.y) && task.taken < stop) {
      step(task.x, task.y, task.cx, task.cy);
      ++task.taken;
    }
    const bool goes_on = task.taken == stop && stop < limit;
    if (!goes_on) steps[task.pixel] = task.taken;
    return goes_on;
  };

  const int pixels = width * height, stride = gridDim.x * blockDim.x;
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; __any_sync(ccc::WHOLE_WARP, i < pixels); i += stride) {
    const Task task{0.0f, 0.0f, fmaf(float(i % width), pitch, left), fmaf(float(i / width), pitch, top), i, 0};
    stack.collect_trips(i < pixels, task, [&](Task& task) { return advance(task, CHUNK); });
  }
  stack.drain([&](Task task) { advance(task, limit); });
}
