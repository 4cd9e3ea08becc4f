// The U-list phase of the fast multipole method: what the points near a target add to its potential (L. Greengard and
// V. Rokhlin, A fast algorithm for particle simulations, J. Comput. Phys. 73, 1987; the name is that of adaptive trees,
// J. Carrier et al., SIAM J. Sci. Stat. Comput. 9, 1988).
//
// A coarse task is a target, a fine task one of the points in the U-list of its leaf: the leaf itself and those that touch it.
// The targets of a leaf share its list, so that neighbouring lanes' ranges overlap: cte::disjoint.
#include <cte.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256;

// A point is x, y, z and its charge. sources[offsets[leaf]] to sources[offsets[leaf + 1]] are the points of a leaf's U-list.
extern "C" __global__ void __launch_bounds__(BLOCK)
fmm(int targets, const float4* __restrict__ points, const int* __restrict__ leaves, const int* __restrict__ offsets,
    const int* __restrict__ sources, float* __restrict__ potentials) {
  const int target = blockIdx.x * BLOCK + threadIdx.x;
  int begin = 0, end = 0;
  float3 position = {0, 0, 0};
  if (target < targets) {
    const float4 point = points[target];
    position = {point.x, point.y, point.z};
    const int leaf = leaves[target];
    begin = offsets[leaf];
    end = offsets[leaf + 1];
  }
  // The target is in its own list, and adds nothing.
  const auto added_by = [=](int i, const float3& at) {
    const float4 source = __ldg(points + sources[i]);
    const float dx = source.x - at.x, dy = source.y - at.y, dz = source.z - at.z;
    const float square = dx * dx + dy * dy + dz * dz;
    return square > 0 ? source.w * rsqrtf(square) : 0.0f;
  };
  const float potential = cte::for_each_index<BLOCK, cte::disjoint, CTE_POLICY>(begin, end, added_by, cte::plus{}, 0.0f, position);
  if (target < targets) potentials[target] = potential;
}
