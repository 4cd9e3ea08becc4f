// The inverse error function of many numbers: one of three polynomials, by the size of the number.
//
//   iefa [values] [seed]      that many numbers, twice: uniform in (-1, 1), and with equally likely polynomials
//
// A warp whose lanes need different polynomials computes all of them one after the other. Here each of the three is a path
// (F. Khorasani's thesis, section 4.1.5: the benchmark IEFA).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "iefa.cuh"

extern "C" __global__ void __launch_bounds__(256, 8)
iefa(unsigned n, const double* __restrict__ x, double* __restrict__ y) {
#pragma ccc for
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    const double value = x[i], w = depth(value);
#pragma ccc if
    if (w < 6.25) {
      y[i] = central(w) * value;
    } else
#pragma ccc if
    if (w < 16.0) {
      y[i] = middle(w) * value;
    }
#pragma ccc else
    else {
      y[i] = tail(w) * value;
    }
  }
}

// The numbers: uniform in (-1, 1), or w uniform in (0, 6.2), (6.3, 15.9) or (16.1, 26.1), each a third of the time.
extern "C" __global__ void __launch_bounds__(256)
make_values(unsigned n, unsigned seed, int equally_likely, double* __restrict__ x) {
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned h = i * 2654435761u + (seed - 1) * 0x9e3779b9u;
    h ^= h >> 13;
    h *= 0x5bd1e995u;
    h ^= h >> 15;
    const double u = (h + 0.5) * 0x1p-32;
    const double w = h % 3 == 0 ? u * 6.2 : h % 3 == 1 ? fma(u, 9.6, 6.3) : fma(u, 10.0, 16.1);
    x[i] = equally_likely ? sqrt(1.0 - exp(-w)) : fma(2.0, u, -1.0);
  }
}

// A sum over hashes of the results' bits and places (D. Stafford's variant 13 of a 64-bit finalizer): results that differ in
// one bit, or in their order, have a different sum.
extern "C" __global__ void __launch_bounds__(256)
digest(unsigned n, const double* __restrict__ y, unsigned long long* __restrict__ sum) {
  unsigned long long mine = 0;
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned long long h = __double_as_longlong(y[i]) + (i + 1ull) * 0x9e3779b97f4a7c15ull;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ h >> 27) * 0x94d049bb133111ebull;
    mine += h ^ h >> 31;
  }
  atomicAdd(sum, mine);
}

// --- the host side -------------------------------------------------------------------------------------------------------

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "iefa: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

int main(int argc, char** argv) {
  const unsigned n = argc > 1 ? unsigned(std::strtoul(argv[1], nullptr, 10)) : 1u << 20;
  const unsigned seed = argc > 2 ? unsigned(std::strtoul(argv[2], nullptr, 10)) : 1;
  if (n < 1 || n > 1u << 30) {
    std::fprintf(stderr, "usage: iefa [values 1..2^30] [seed]\n");
    return 2;
  }
  double *x = nullptr, *y = nullptr;
  check(cudaMalloc(&x, n * sizeof(double)), "cudaMalloc");
  check(cudaMalloc(&y, n * sizeof(double)), "cudaMalloc");
  std::vector<double> results(n);
  for (int equally_likely : {0, 1}) {
    make_values<<<64, 256>>>(n, seed, equally_likely, x);
    iefa<<<64, 256>>>(n, x, y);
    check(cudaGetLastError(), "the launch");
    check(cudaMemcpy(results.data(), y, n * sizeof(double), cudaMemcpyDeviceToHost), "the kernel");
    double sum = 0, largest = 0;
    for (double result : results) {
      sum += std::fabs(result);
      largest = std::fmax(largest, std::fabs(result));
    }
    std::printf("%s values %u mean %.9f largest %.9f\n", equally_likely ? "equal" : "uniform", n, sum / n, largest);
  }
  cudaFree(x);
  cudaFree(y);
  return 0;
}
