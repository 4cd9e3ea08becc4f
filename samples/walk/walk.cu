// Monte Carlo transport of photons in layered tissue: how long a photon lives is a matter of chance, so that the lanes of a
// warp wait for the one whose photon lives longest.
//
//   walk [log2_photons]     follows the photons at three absorptions and prints the mean moment for each
//
// A photon flies a random distance in a random direction, is turned back at the surface, loses weight according to the
// layer in which it arrives, and is absorbed there with a given probability: log, sine, cosine and three random numbers per
// step. The stored moment is its weight times the square of the distance from its point of entry.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "walk.cuh"

// The best number of steps between two votes depends on how many steps a photon lives: one kernel for each choice.
#define PRAGMA(words) _Pragma(#words)
#define WALK(STEPS)                                                                                           \
  extern "C" __global__ void __launch_bounds__(256) walk_##STEPS(int photons, float absorption, float* moments) { \
    PRAGMA(ccc for)                                                                                           \
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < photons; i += gridDim.x * blockDim.x) {           \
      Photon photon = entering(i);                                                                            \
      bool alive = true;                                                                                      \
      PRAGMA(ccc while chunk(STEPS))                                                                          \
      while (alive) {                                                                                         \
        alive = step(photon, absorption);                                                                     \
      }                                                                                                       \
      moments[i] = moment(photon);                                                                            \
    }                                                                                                         \
  }
WALK(16)
WALK(4)
WALK(1)

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "walk: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

int main(int argc, char** argv) {
  const int log2_photons = argc > 1 ? std::atoi(argv[1]) : 16;
  if (log2_photons < 0 || log2_photons > 28) {
    std::fprintf(stderr, "usage: walk [log2_photons 0..28]\n");
    return 2;
  }
  struct {
    void (*kernel)(int, float, float*);
    float absorption;
  } runs[] = {{walk_16, 0.02f}, {walk_4, 0.1f}, {walk_1, 0.3f}};
  const int photons = 1 << log2_photons;
  std::vector<float> moments(photons);
  float* device_moments = nullptr;
  check(cudaMalloc(&device_moments, photons * sizeof(float)), "cudaMalloc");
  for (const auto& run : runs) {
    run.kernel<<<32, 256>>>(photons, run.absorption, device_moments);
    check(cudaGetLastError(), "the launch");
    check(cudaMemcpy(moments.data(), device_moments, photons * sizeof(float), cudaMemcpyDeviceToHost), "the kernel");
    double sum = 0;
    for (float moment : moments) sum += moment;
    std::printf("absorption %g mean moment %.3f\n", run.absorption, sum / photons);
  }
  cudaFree(device_moments);
  return 0;
}
