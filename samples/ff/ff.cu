// Fractal flame: points that go through one of ten variations each, chosen at random, and are counted in an image.
//
//   ff [log2_points]      draws 2^log2_points points and prints a checksum of the image
//
// Lanes of a warp choose different variations, so a warp runs nearly all of them for every point of a lane. With `switch`
// each variation waits until 32 lanes want it: F. Khorasani's thesis, figure 4.8.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ff.cuh"

// Points are independent, and what they add to a pixel can be added in any order.
extern "C" __global__ void __launch_bounds__(256) ff(unsigned points, unsigned* image) {
#pragma ccc for
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < points; i += gridDim.x * blockDim.x) {
    const uint32_t random = hash32(i);
    const float2 p = point_of(random);
    const float r = radius_of(p), angle = angle_of(p);
    float2 moved;
#pragma ccc switch
    switch (hash32(random) % VARIATIONS) {
      case 0: moved = p; break;
      case 1: moved = sinusoidal(p); break;
      case 2: moved = spherical(p, r); break;
      case 3: moved = swirl(p, r); break;
      case 4: moved = horseshoe(p, r); break;
      case 5: moved = polar(r, angle); break;
      case 6: moved = handkerchief(r, angle); break;
      case 7: moved = heart(r, angle); break;
      case 8: moved = disc(r, angle); break;
      default: moved = power(r, angle); break;
    }
    plot(image, moved);
  }
}

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "ff: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

int main(int argc, char** argv) {
  const int log2_points = argc > 1 ? std::atoi(argv[1]) : 20;
  if (log2_points < 0 || log2_points > 30) {
    std::fprintf(stderr, "usage: ff [log2_points 0..30]\n");
    return 2;
  }
  std::vector<unsigned> image(SIDE * SIDE);
  const size_t bytes = image.size() * sizeof(unsigned);
  unsigned* device_image = nullptr;
  check(cudaMalloc(&device_image, bytes), "cudaMalloc");
  check(cudaMemset(device_image, 0, bytes), "cudaMemset");
  ff<<<32, 256>>>(1u << log2_points, device_image);
  check(cudaGetLastError(), "the launch");
  check(cudaMemcpy(image.data(), device_image, bytes, cudaMemcpyDeviceToHost), "the kernel");
  cudaFree(device_image);

  unsigned drawn = 0, lit = 0, brightest = 0;
  uint32_t checksum = 0;
  for (unsigned pixel = 0; pixel < image.size(); ++pixel) {
    drawn += image[pixel];
    lit += image[pixel] > 0;
    brightest = image[pixel] > brightest ? image[pixel] : brightest;
    checksum += hash32(pixel ^ hash32(image[pixel]));
  }
  std::printf("points %u pixels lit %u brightest %u checksum %08x\n", drawn, lit, brightest, checksum);
  return 0;
}
