// The claim of an atom on a point of its quadrature grid: the product, over the other atoms of the molecule, of a function that
// falls from 1 at the atom to 0 at the other (A. D. Becke, A multicenter numerical integration scheme for polyatomic molecules,
// J. Chem. Phys. 88, 2547, 1988). F. Khorasani's thesis calls it DQG; ../../../samples/dqg divides by the sum of all claims.
//
// A coarse task is a point, a fine task an atom of its molecule. Points next to each other in memory belong to any molecules:
// cte::disjoint. What is multiplied and added is written as fma(), so that all builds round a factor alike.
#include <cte.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256;

__device__ __forceinline__ double length(double x, double y, double z) { return sqrt(fma(z, z, fma(y, y, x * x))); }

// From 1 at the atom (mu = -1) to 0 at the other (mu = 1): p(mu) = 1.5 mu - 0.5 mu^3, three times.
__device__ __forceinline__ double switching(double mu) {
#pragma unroll
  for (int turn = 0; turn < 3; ++turn) mu *= fma(-0.5 * mu, mu, 1.5);
  return fma(-0.5, mu, 0.5);
}

// What a factor needs to know of its point: where it is, whose it is and how far that atom is.
struct Point {
  double x, y, z, to_owner;
  int owner;
};

// The atoms of a molecule are those from offsets[molecule] to offsets[molecule + 1]. atoms and points hold all x, then y, then z.
extern "C" __global__ void __launch_bounds__(BLOCK)
dqg(int points, int atoms, const double* __restrict__ point_positions, const int* __restrict__ molecules,
    const int* __restrict__ owners, const double* __restrict__ atom_positions, const int* __restrict__ offsets,
    double* __restrict__ claims) {
  const double *const x = atom_positions, *const y = x + atoms, *const z = y + atoms;
  const int p = blockIdx.x * BLOCK + threadIdx.x;
  int begin = 0, end = 0;
  Point point = {};
  if (p < points) {
    point.x = point_positions[p];
    point.y = point_positions[points + p];
    point.z = point_positions[2 * points + p];
    point.owner = owners[p];
    point.to_owner = length(point.x - x[point.owner], point.y - y[point.owner], point.z - z[point.owner]);
    const int molecule = molecules[p];
    begin = offsets[molecule];
    end = offsets[molecule + 1];
  }
  const auto factor = [=](int atom, const Point& at) {
    if (atom == at.owner) return 1.0;
    const double ax = __ldg(x + atom), ay = __ldg(y + atom), az = __ldg(z + atom);
    const double separation = length(ax - __ldg(x + at.owner), ay - __ldg(y + at.owner), az - __ldg(z + at.owner));
    return switching((at.to_owner - length(at.x - ax, at.y - ay, at.z - az)) / separation);
  };
  const auto product = [](double a, double b) { return a * b; };
  const double claim = cte::for_each_index<BLOCK, cte::disjoint, CTE_POLICY>(begin, end, factor, product, 1.0, point);
  if (p < points) claims[p] = claim;
}
