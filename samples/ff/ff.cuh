// The fractal flame's points, variations and image. S. Draves and E. Reckase, "The Fractal Flame Algorithm", 2003, lists the
// variations; their numbers here are those of the `switch` in ff.cu, not those of the paper.
#pragma once
#include <cstdint>

constexpr unsigned VARIATIONS = 10;
constexpr unsigned SIDE = 2048;  // the image has SIDE x SIDE pixels and shows [-2, 2) x [-2, 2)
constexpr float PI = 3.14159265f;

__host__ __device__ inline uint32_t hash32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

// A point of [-1, 1) x [-1, 1) from 32 random bits, without rounding.
__device__ inline float2 point_of(uint32_t bits) {
  return make_float2((bits & 0xffff) / 32768.f - 1, (bits >> 16) / 32768.f - 1);
}

__device__ inline float radius_of(float2 p) { return sqrtf(fmaf(p.x, p.x, p.y * p.y)) + 1e-6f; }
__device__ inline float angle_of(float2 p) { return atan2f(p.x, p.y); }

// Where a product meets a sum, `fmaf` says which of them is fused, so that all builds round alike.
__device__ inline float2 sinusoidal(float2 p) { return make_float2(sinf(p.x), sinf(p.y)); }

__device__ inline float2 spherical(float2 p, float r) {
  const float q = 1.f / (r * r);
  return make_float2(p.x * q, p.y * q);
}

__device__ inline float2 swirl(float2 p, float r) {
  const float s = sinf(r * r), c = cosf(r * r);
  return make_float2(fmaf(p.x, s, -(p.y * c)), fmaf(p.x, c, p.y * s));
}

__device__ inline float2 horseshoe(float2 p, float r) {
  return make_float2((p.x - p.y) * (p.x + p.y) / r, 2 * p.x * p.y / r);
}

__device__ inline float2 polar(float r, float angle) { return make_float2(angle / PI, r - 1); }

__device__ inline float2 handkerchief(float r, float angle) {
  return make_float2(r * sinf(angle + r), r * cosf(angle - r));
}

__device__ inline float2 heart(float r, float angle) { return make_float2(r * sinf(angle * r), -r * cosf(angle * r)); }

__device__ inline float2 disc(float r, float angle) {
  return make_float2(angle / PI * sinf(PI * r), angle / PI * cosf(PI * r));
}

__device__ inline float2 power(float r, float angle) {
  const float m = powf(r, sinf(angle));
  return make_float2(m * cosf(angle), m * sinf(angle));
}

// The pixel's column or row; what lies outside comes in again on the other side. `__fadd_rn` is never fused with a product
// that made the coordinate, however the code around it is inlined.
__device__ inline int pixel_of(float coordinate) {
  return int(__fadd_rn(coordinate, 2.f) * (SIDE / 4)) & int(SIDE - 1);
}

__device__ inline void plot(unsigned* image, float2 p) { atomicAdd(&image[pixel_of(p.y) * SIDE + pixel_of(p.x)], 1u); }
