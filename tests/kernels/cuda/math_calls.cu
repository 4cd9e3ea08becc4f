// nvcc does not inline `pow`: a path and the code after it call the same function, which touches no memory.
extern "C" __global__ void __launch_bounds__(64) powers(int n, const double* __restrict__ a, double* __restrict__ out, double* __restrict__ rest) {
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    double x = a[i];
#pragma ccc if
    if (x > 1.0) out[i] = pow(x, 3.3) + sin(x);
    rest[i] = pow(x, 1.7) + cos(x);
  }
}
