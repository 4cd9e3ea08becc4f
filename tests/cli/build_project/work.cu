#include "scale.cuh"
#include "work.cuh"
#include "work.h"

__global__ void scale_all(int n, float* out) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) out[i] = scale(out[i]);
}

void work_on(int n, const float* in, float* out) {
  work<<<8, 128>>>(n, in, out);
  scale_all<<<(n + 127) / 128, 128>>>(n, out);
}
