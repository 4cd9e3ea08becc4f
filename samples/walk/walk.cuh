// What a photon is and does: see walk.cu.
#pragma once
#include <cstdint>

__device__ __forceinline__ uint32_t hash32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

struct Photon {
  float across, depth, weight;
  uint32_t random;  // the state of its own xorshift generator: its fate does not depend on the lane that follows it
};

__device__ __forceinline__ Photon entering(unsigned i) { return {0.0f, 0.0f, 1.0f, hash32(i + 1)}; }

__device__ __forceinline__ float uniform(uint32_t& random) {
  random ^= random << 13;
  random ^= random >> 17;
  random ^= random << 5;
  return float(random >> 8) * (1.0f / 16777216.0f);
}

// One step; whether the photon lives on. The share of the weight that remains is 0.995 in the upper layer and 0.985 in the
// lower one, and changes linearly at depths of 4 to 8: without a jump, a rounding error stays one. No product stands where
// the compiler may fuse it with a sum or not, so that every build rounds alike.
__device__ __forceinline__ bool step(Photon& photon, float absorption) {
  const float distance = -__logf(uniform(photon.random) + 1e-7f), turn = 6.2831853f * uniform(photon.random);
  float sine, cosine;
  __sincosf(turn, &sine, &cosine);
  photon.across = fmaf(distance, cosine, photon.across);
  photon.depth = fabsf(fmaf(distance, sine, photon.depth));
  photon.weight *= fmaf(__saturatef(fmaf(photon.depth, 0.25f, -1.0f)), -0.01f, 0.995f);
  return uniform(photon.random) > absorption;
}

__device__ __forceinline__ float moment(const Photon& photon) {
  return photon.weight * fmaf(photon.across, photon.across, __fmul_rn(photon.depth, photon.depth));
}
