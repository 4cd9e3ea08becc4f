// The kernel of samples/rt with the shading collected by hand. A context is the ray, what it has hit and where, and its pixel.
// All rays begin in the plane z = 0, so that eight words tell everything: two wide accesses.
#include "../../samples/rt/rt.cuh"
#include "warp_stack.cuh"

namespace {

struct Task {
  float x, y;  // the ray's origin
  float t;
  int sphere;
  float3 direction;
  int pixel;
};

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
rt(int width, int height, unsigned seed, int count, const float4* __restrict__ spheres,
   const float4* __restrict__ materials, uchar4* __restrict__ image) {
  using Stack = ccc::WarpStack<Task>;
  __shared__ Stack::Storage storage;
  Stack stack(storage);
  const Scene scene{count, spheres, materials};
  const auto shade = [=](Task task) {
    const Ray ray{make_float3(task.x, task.y, 0.0f), task.direction};
    image[task.pixel] = pixel(shaded(scene, ray, {task.sphere, task.t}));
  };
  const int pixels = width * height, stride = gridDim.x * blockDim.x;
  for (int first = int(ccc::first_of_warp()); first < pixels; first += stride) {
    const int i = first + int(ccc::lane());
    const Ray ray = camera_ray(i, width, height, seed);
    const Hit hit = first_hit(scene, ray, -1);
    const bool mine = i < pixels;
    if (mine && hit.sphere < 0) image[i] = pixel(sky(ray.direction));
    const Task task{ray.origin.x, ray.origin.y, hit.t, hit.sphere, ray.direction, i};
    stack.collect(mine && hit.sphere >= 0, task, shade);
  }
  stack.drain(shade);
}
