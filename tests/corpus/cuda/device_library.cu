// Thrust and CUB as a host program calls them: many kernels that the templates bring.
#include <cub/device/device_reduce.cuh>
#include <thrust/device_vector.h>
#include <thrust/scan.h>
#include <thrust/transform.h>

struct Scale {
  float by;
  __host__ __device__ float operator()(float x) const { return by * x; }
};

void run(thrust::device_vector<float>& v, void* scratch, size_t bytes, float* sum) {
  thrust::transform(v.begin(), v.end(), v.begin(), Scale{2.0f});
  thrust::inclusive_scan(v.begin(), v.end(), v.begin());
  cub::DeviceReduce::Sum(scratch, bytes, v.begin(), sum, (int)v.size());
}
