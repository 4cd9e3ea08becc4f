// What dqg.cu and other ways of running its kernel share: Becke's partition of space among the atoms of a molecule.
// A. D. Becke, "A multicenter numerical integration scheme for polyatomic molecules", J. Chem. Phys. 88, 2547 (1988).
//
// Multiplications and additions that belong together are written as fma(), so that the bits of a result do not depend on
// what a compiler contracts.
#pragma once

// The longest list of atoms, the owner of the grid first.
constexpr int MOST_ATOMS = 80;

// A point this near to its own atom, in distances to the nearest other atom, has weight 1: with mu < 2 * CORE - 1 another
// atom takes less than 9 * (2 * CORE)^8 of it, a list of 80 less than 2e-15.
constexpr double CORE = 0.003;

// A list of atoms: x, y and z are arrays of their own.
struct Atoms {
  double x[MOST_ATOMS], y[MOST_ATOMS], z[MOST_ATOMS];
};

struct Point {
  double x, y, z;
};

__device__ __forceinline__ double length(double x, double y, double z) { return sqrt(fma(z, z, fma(y, y, x * x))); }

__device__ __forceinline__ double distance(const Point& p, const Atoms& atoms, int j) {
  return length(p.x - atoms.x[j], p.y - atoms.y[j], p.z - atoms.z[j]);
}

__device__ __forceinline__ double separation(const Atoms& atoms, int i, int j) {
  return length(atoms.x[i] - atoms.x[j], atoms.y[i] - atoms.y[j], atoms.z[i] - atoms.z[j]);
}

// From 1 at the atom (mu = -1) to 0 at the other (mu = 1): p(mu) = 1.5 mu - 0.5 mu^3, three times.
__device__ __forceinline__ double switching(double mu) {
#pragma unroll
  for (int turn = 0; turn < 3; ++turn) mu *= fma(-0.5 * mu, mu, 1.5);
  return fma(-0.5, mu, 0.5);
}

// A point on its way through the pairs (i, j) of its list, j first. The product over j of switching(mu_ij) is atom i's claim
// on the point, and the first atom's claim over the sum of all is the point's weight.
struct Claims {
  double ri;        // the distance to atom i
  double next = 0;  // the distance to atom i + 1, once it was j
  double claim = 1, own = 0, total = 0;
  int i = 0, j = 1;

  // The next pair. All n (n - 1) of them are done when i is n.
  __device__ __forceinline__ void pair(const Point& at, const Atoms& atoms, int n) {
    const double rj = distance(at, atoms, j);
    claim *= switching((ri - rj) / separation(atoms, i, j));
    if (j == i + 1) next = rj;
    if (++j == i) ++j;
    if (j < n) return;
    if (i == 0) own = claim;
    total = __dadd_rn(total, claim);
    claim = 1;
    ri = next;
    ++i;
    j = 0;
  }

  __device__ __forceinline__ double weight() const { return own / total; }
};

// The block's list from global memory, where there is room for `most` x, then y, then z. All threads of the block call.
__device__ __forceinline__ void load(Atoms& atoms, const double* __restrict__ list, int most) {
  for (int j = threadIdx.x; j < most; j += blockDim.x) {
    atoms.x[j] = list[j];
    atoms.y[j] = list[most + j];
    atoms.z[j] = list[2 * most + j];
  }
  __syncthreads();
}
