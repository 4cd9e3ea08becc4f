// The annotated kernel.
#pragma once

__global__ void __launch_bounds__(128) work(int n, const float* __restrict__ in, float* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
#pragma ccc if
    if (in[i] > 0.5f) {
      float x = in[i];
      for (int k = 0; k < 40; ++k) x = x * 1.25f + 0.5f;
      out[i] = x;
    }
  }
}
