// Quadrature weights for integrals over a molecule: every atom has a grid of points of its own, and Becke's weight is the
// share of a point that belongs to the point's own atom. F. Khorasani's thesis, section 4.1.5, calls it DQG.
//
//   dqg [side] [grids] [points] [seed]     grids of `points` points around atoms of a molecule of side^3 atoms
//
// A lane goes over all pairs of the atoms that matter for its point. A point far from its atom has a list of 80 atoms and
// 6320 pairs, one near to it 2 atoms and 2 pairs, and points next to each other in memory lie anywhere in the grid.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "dqg.cuh"

// A block works for the atom blockIdx.y. One trip of the inner loop is a pair of atoms. The two loops that the pairs are made
// of are one loop here, because the number of pairs differs between lanes.
extern "C" __global__ void __launch_bounds__(256)
becke(int points, int most, const double* __restrict__ lists, const double* __restrict__ x, const double* __restrict__ y,
      const double* __restrict__ z, const int* __restrict__ counts, double* __restrict__ weights) {
  __shared__ Atoms atoms;
  load(atoms, lists + blockIdx.y * 3 * most, most);
  const double core = CORE * separation(atoms, 0, 1);
  const int first = blockIdx.y * points;
#pragma ccc for
  for (int p = threadIdx.x + blockIdx.x * blockDim.x; p < points; p += gridDim.x * blockDim.x) {
    const Point at = {x[first + p], y[first + p], z[first + p]};
    const double to_owner = distance(at, atoms, 0);
    if (to_owner < core) {
      weights[first + p] = 1;
    } else {
      const int n = counts[first + p];
      Claims claims = {to_owner};
#pragma ccc while chunk(16)
      while (claims.i < n) claims.pair(at, atoms, n);
      weights[first + p] = claims.weight();
    }
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

// The k-th number of a key, in steps of 2^-24 strictly between 0 and 1.
__device__ inline double uniform(uint32_t key, uint32_t k) {
  return ((hash32(key + k * 0x9e3779b9u) >> 8) + 0.5) * (1.0 / (1 << 24));
}

// An atom of the molecule: side^3 of them, one somewhere in the middle third of each cell (3 Bohr) of a cubic lattice.
__device__ inline Point atom(int number, int side, uint32_t seed) {
  const uint32_t key = hash32(number + hash32(seed));
  return {number % side * 3.0 + uniform(key, 0), number / side % side * 3.0 + uniform(key, 1),
          number / (side * side) * 3.0 + uniform(key, 2)};
}

__device__ inline double squared(const Point& a, const Point& b) {
  const double dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
  return fma(dz, dz, fma(dy, dy, dx * dx));
}

// The nearest atoms of every atom that owns a grid, the nearest first (itself). A block makes one list.
extern "C" __global__ void __launch_bounds__(256) make_lists(int side, uint32_t seed, int most, double* lists) {
  const int molecule = side * side * side;
  const Point owner = atom(int((long long)blockIdx.x * molecule / gridDim.x), side, seed);
  double* list = lists + blockIdx.x * 3 * most;
  for (int j = threadIdx.x; j < molecule; j += blockDim.x) {
    const Point mine = atom(j, side, seed);
    const double d = squared(owner, mine);
    int nearer = 0;
    for (int k = 0; k < molecule; ++k) {
      const double other = squared(owner, atom(k, side, seed));
      nearer += other < d || (other == d && k < j);
    }
    if (nearer < most) {
      list[nearer] = mine.x;
      list[most + nearer] = mine.y;
      list[2 * most + nearer] = mine.z;
    }
  }
}

// The points of the grid of the atom blockIdx.y. One of 16 is in the core; the others fill a ball evenly (the largest of
// three random numbers is distributed like a radius in a ball). A point's list has the atoms that are less than three times
// as far from the owner as the point, at least 2: where atoms lie evenly, all lengths up to `most` are equally frequent.
extern "C" __global__ void __launch_bounds__(256)
make_points(int points, int most, uint32_t seed, const double* lists, double* x, double* y, double* z, int* counts) {
  __shared__ Atoms atoms;
  load(atoms, lists + blockIdx.y * 3 * most, most);
  const Point owner = {atoms.x[0], atoms.y[0], atoms.z[0]};
  for (int p = threadIdx.x + blockIdx.x * blockDim.x; p < points; p += gridDim.x * blockDim.x) {
    const int point = blockIdx.y * points + p;
    const uint32_t key = hash32(point + hash32(~seed));
    const Point towards = {uniform(key, 0) - 0.5, uniform(key, 1) - 0.5, uniform(key, 2) - 0.5};
    const bool in_core = uniform(key, 3) < 1.0 / 16;
    const double reach = in_core ? CORE * separation(atoms, 0, 1) : separation(atoms, 0, most - 1) / 3;
    const double r = reach * fmax(uniform(key, 4), fmax(uniform(key, 5), uniform(key, 6)));
    const double step = r / length(towards.x, towards.y, towards.z);
    int count = 2;
    while (count < most && distance(owner, atoms, count) < 3 * r) ++count;
    x[point] = fma(step, towards.x, owner.x);
    y[point] = fma(step, towards.y, owner.y);
    z[point] = fma(step, towards.z, owner.z);
    counts[point] = count;
  }
}

// --- the host side --------------------------------------------------------------------------------------------------------

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "dqg: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

template <class T>
static T* on_device(size_t size) {
  T* pointer = nullptr;
  check(cudaMalloc(&pointer, size * sizeof(T)), "cudaMalloc");
  return pointer;
}

int main(int argc, char** argv) {
  const int side = argc > 1 ? std::atoi(argv[1]) : 10, grids = argc > 2 ? std::atoi(argv[2]) : 33;
  const int points = argc > 3 ? std::atoi(argv[3]) : 4999;
  const uint32_t seed = argc > 4 ? uint32_t(std::strtoul(argv[4], nullptr, 10)) : 1;
  if (side < 2 || side > 100 || grids < 1 || grids > side * side * side || points < 1 || points > 1000000000 / grids) {
    std::fprintf(stderr, "usage: dqg [side 2..100] [grids up to side^3] [points a grid] [seed]\n");
    return 2;
  }
  const int molecule = side * side * side, most = molecule < MOST_ATOMS ? molecule : MOST_ATOMS;
  const size_t all = size_t(grids) * points;
  double* lists = on_device<double>(size_t(grids) * 3 * most);
  double *x = on_device<double>(all), *y = on_device<double>(all), *z = on_device<double>(all);
  double* device_weights = on_device<double>(all);
  int* counts = on_device<int>(all);
  const dim3 grid(8, grids);
  make_lists<<<grids, 256>>>(side, seed, most, lists);
  make_points<<<grid, 256>>>(points, most, seed, lists, x, y, z, counts);
  becke<<<grid, 256>>>(points, most, lists, x, y, z, counts, device_weights);
  check(cudaGetLastError(), "the launch");
  std::vector<double> weights(all);
  check(cudaMemcpy(weights.data(), device_weights, all * sizeof(double), cudaMemcpyDeviceToHost), "the kernels");
  for (double* array : {lists, x, y, z, device_weights}) cudaFree(array);
  cudaFree(counts);

  double sum = 0;
  size_t mostly = 0;
  for (double weight : weights) {
    sum += weight;
    mostly += weight > 0.5;
  }
  std::printf("points %zu sum of weights %.9g over half %zu\n", all, sum, mostly);
  return 0;
}
