// Ray casting: one ray per pixel against spheres, as a camera with an open lens sees them.
//
//   rt [width] [height] [spheres] [seed] [FILE.ppm]      random spheres; the picture goes into the file
//
// All rays look for the first sphere in their way. Those that find one are shaded, with a ray to the light and one that is
// mirrored: that is most of the work, and in a warp half of the rays miss (F. Khorasani's thesis, section 4.1.5: the
// benchmark RT).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "rt.cuh"

extern "C" __global__ void __launch_bounds__(256)
rt(int width, int height, unsigned seed, int count, const float4* __restrict__ spheres,
   const float4* __restrict__ materials, uchar4* __restrict__ image) {
  const Scene scene{count, spheres, materials};
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < width * height; i += gridDim.x * blockDim.x) {
    const Ray ray = camera_ray(i, width, height, seed);
    const Hit hit = first_hit(scene, ray, -1);
#pragma ccc if
    if (hit.sphere >= 0) {
      image[i] = pixel(shaded(scene, ray, hit));
    } else {
      image[i] = pixel(sky(ray.direction));
    }
  }
}

// --- the host side: workload.py generates the same spheres and computes the same picture ---------------------------------

struct Spheres {
  std::vector<float4> spheres, materials;
};

// Every step is exact in double precision, or is the only one that is rounded.
static Spheres random_spheres(int count, uint32_t seed) {
  Spheres made;
  for (uint32_t sphere = 0; sphere < uint32_t(count); ++sphere) {
    double random[7];  // in [0, 1)
    for (uint32_t k = 0; k < 7; ++k) random[k] = (hash32((seed * 0x9e3779b9u + sphere) * 8 + k) >> 8) * 0x1p-24;
    const float radius = float((2 + 3 * random[3]) / 10);
    made.spheres.push_back({float((random[0] - 0.5) * 12), float((random[1] - 0.5) * 6.5), float(7 + 6 * random[2]),
                            radius * radius});
    made.materials.push_back({float(random[4]), float(random[5]), float(random[6]), 1 / radius});
  }
  return made;
}

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "rt: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

template <class T>
static T* on_device(const std::vector<T>& values) {
  T* pointer = nullptr;
  check(cudaMalloc(&pointer, values.size() * sizeof(T)), "cudaMalloc");
  check(cudaMemcpy(pointer, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  return pointer;
}

int main(int argc, char** argv) {
  const int width = argc > 1 ? std::atoi(argv[1]) : 1024, height = argc > 2 ? std::atoi(argv[2]) : 540;
  const int count = argc > 3 ? std::atoi(argv[3]) : 80;
  const uint32_t seed = argc > 4 ? uint32_t(std::strtoul(argv[4], nullptr, 10)) : 1;
  if (width < 1 || width > 16384 || height < 1 || height > 16384 || count < 1 || count > 1 << 20) {
    std::fprintf(stderr, "usage: rt [width 1..16384] [height 1..16384] [spheres] [seed] [FILE.ppm]\n");
    return 2;
  }
  const Spheres made = random_spheres(count, seed);
  std::vector<uchar4> image(size_t(width) * height);
  float4* spheres = on_device(made.spheres);
  float4* materials = on_device(made.materials);
  uchar4* device_image = on_device(image);
  rt<<<64, 256>>>(width, height, seed, count, spheres, materials, device_image);
  check(cudaGetLastError(), "the launch");
  check(cudaMemcpy(image.data(), device_image, image.size() * sizeof(uchar4), cudaMemcpyDeviceToHost), "the kernel");
  cudaFree(spheres);
  cudaFree(materials);
  cudaFree(device_image);

  unsigned long long sums[3] = {};
  for (uchar4 p : image) sums[0] += p.x, sums[1] += p.y, sums[2] += p.z;
  std::printf("pixels %zu red %.3f green %.3f blue %.3f\n", image.size(), double(sums[0]) / image.size(),
              double(sums[1]) / image.size(), double(sums[2]) / image.size());
  if (argc > 5) {
    std::FILE* file = std::fopen(argv[5], "wb");
    if (file == nullptr) {
      std::perror(argv[5]);
      return 1;
    }
    std::fprintf(file, "P6 %d %d 255\n", width, height);
    for (uchar4 p : image) std::fwrite(&p, 1, 3, file);
    std::fclose(file);
  }
  return 0;
}
