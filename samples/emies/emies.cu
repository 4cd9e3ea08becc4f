// Waves from sources in many boxes, added up for every observer: F. Khorasani's thesis, section 4.1.5, calls it EMIES.
//
//   emies [side] [sources] [observers] [seed]     side^3 boxes of about `sources` sources, and that many observers
//
// A lane owns an observer and goes over all boxes. Those near to it are added source by source, all others by an expansion
// about their center. The observers of a warp lie close together, but they do not agree on which boxes are near.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "emies.cuh"

// The sums of an observer may be added up in any order, by any lane.
extern "C" __global__ void __launch_bounds__(256)
emies(int observers, int boxes, const float* __restrict__ x, const float* __restrict__ y,
      const float* __restrict__ z, const Box* __restrict__ box, const float4* __restrict__ sources,
      Field* __restrict__ fields) {
  for (int o = threadIdx.x + blockIdx.x * blockDim.x; o < observers; o += gridDim.x * blockDim.x) {
    const float ox = x[o], oy = y[o], oz = z[o];
    float re = 0, im = 0;
#pragma ccc for reduce(+: re, im)
    for (int b = 0; b < boxes; ++b) {
      const float4 centre = box[b].centre;
      const float dx = ox - centre.x, dy = oy - centre.y, dz = oz - centre.z, d2 = squared(dx, dy, dz);
#pragma ccc if
      if (d2 < NEAR * NEAR) {
        const Field field = near_field(sources, box[b].first, box[b].count, ox, oy, oz);
        re += field.re;
        im += field.im;
      } else {
        const Field field = far_field(box[b].dipole, centre.w, dx, dy, dz, d2);
        re += field.re;
        im += field.im;
      }
    }
    fields[o] = {re, im};
  }
}

// --- the inputs: made on the device, every random number by the hash of what it belongs to ------------------------------

__host__ __device__ inline uint32_t hash32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

// The k-th number of a key, in steps of 2^-24, from 0 on and below 1.
__device__ inline float uniform(uint32_t key, uint32_t k) {
  return (hash32(key + k * 0x9e3779b9u) >> 8) * (1.0f / (1 << 24));
}

// Boxes with `average` sources, give or take an eighth, anywhere in the box and of charges between -1 and 1. A thread fills
// a box.
extern "C" __global__ void __launch_bounds__(256)
make_boxes(int side, int average, uint32_t seed, Box* box, float4* sources) {
  const int room = average + average / 8, spread = 2 * (average / 8) + 1;
  for (int b = threadIdx.x + blockIdx.x * blockDim.x; b < side * side * side; b += gridDim.x * blockDim.x) {
    const float x = b % side, y = b / side % side, z = b / (side * side);
    Box made = {{x + 0.5f, y + 0.5f, z + 0.5f, 0}, {0, 0, 0, 0}, b * room, 0};
    made.count = room - int(hash32(b + hash32(seed)) % spread);
    for (int s = made.first; s < made.first + made.count; ++s) {
      const uint32_t key = hash32(s + hash32(seed + 1));
      const float4 source = {x + uniform(key, 0), y + uniform(key, 1), z + uniform(key, 2), 2 * uniform(key, 3) - 1};
      made.centre.w += source.w;
      made.dipole.x = fmaf(source.w, source.x - made.centre.x, made.dipole.x);
      made.dipole.y = fmaf(source.w, source.y - made.centre.y, made.dipole.y);
      made.dipole.z = fmaf(source.w, source.z - made.centre.z, made.dipole.z);
      sources[s] = source;
    }
    box[b] = made;
  }
}

// Observers are sorted by cells of 2 x 2 x 2 boxes: as many in each cell, anywhere in it.
extern "C" __global__ void __launch_bounds__(256)
make_observers(int observers, int side, uint32_t seed, float* x, float* y, float* z) {
  const int across = side / 2, cells = across * across * across, in_cell = (observers + cells - 1) / cells;
  for (int o = threadIdx.x + blockIdx.x * blockDim.x; o < observers; o += gridDim.x * blockDim.x) {
    const uint32_t key = hash32(o + hash32(seed + 2));
    const int cell = o / in_cell;
    x[o] = 2 * (cell % across + uniform(key, 0));
    y[o] = 2 * (cell / across % across + uniform(key, 1));
    z[o] = 2 * (cell / (across * across) + uniform(key, 2));
  }
}

// --- the host side --------------------------------------------------------------------------------------------------------

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "emies: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

template <class T>
static T* on_device(size_t size) {
  T* pointer = nullptr;
  check(cudaMalloc(&pointer, size * sizeof(T)), "cudaMalloc");
  return pointer;
}

int main(int argc, char** argv) {
  const int side = argc > 1 ? std::atoi(argv[1]) : 6, average = argc > 2 ? std::atoi(argv[2]) : 64;
  const int observers = argc > 3 ? std::atoi(argv[3]) : 99999;
  const uint32_t seed = argc > 4 ? uint32_t(std::strtoul(argv[4], nullptr, 10)) : 1;
  if (side < 2 || side > 64 || side % 2 != 0 || average < 1 || average > 4096 || observers < 1) {
    std::fprintf(stderr, "usage: emies [even side 2..64] [sources 1..4096] [observers] [seed]\n");
    return 2;
  }
  const int boxes = side * side * side, room = average + average / 8;
  Box* box = on_device<Box>(boxes);
  float4* sources = on_device<float4>(size_t(boxes) * room);
  float *x = on_device<float>(observers), *y = on_device<float>(observers), *z = on_device<float>(observers);
  Field* device_fields = on_device<Field>(observers);
  make_boxes<<<8, 256>>>(side, average, seed, box, sources);
  make_observers<<<32, 256>>>(observers, side, seed, x, y, z);
  emies<<<32, 256>>>(observers, boxes, x, y, z, box, sources, device_fields);
  check(cudaGetLastError(), "the launch");
  std::vector<Field> fields(observers);
  check(cudaMemcpy(fields.data(), device_fields, observers * sizeof(Field), cudaMemcpyDeviceToHost), "the kernels");
  for (float* array : {x, y, z}) cudaFree(array);
  cudaFree(box);
  cudaFree(sources);
  cudaFree(device_fields);

  double energy = 0;
  for (const Field& field : fields) energy += double(field.re) * field.re + double(field.im) * field.im;
  std::printf("observers %d boxes %d mean square %.4g\n", observers, boxes, energy / observers);
  return 0;
}
