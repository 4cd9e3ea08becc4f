// What emies.cu and other ways of running its kernel share: waves from point sources, which stand in boxes.
//
// A source of charge q at distance R makes the field q exp(ikR) / R. Lengths are in edges of a box.
#pragma once

struct Field {
  float re, im;
};

// Of one box: how many sources it has, where they begin, its centre with their total charge (w), and their dipole moment
// about the centre.
struct Box {
  float4 centre;
  float4 dipole;
  int first, count;
};

// How near the centre of a near box is, and the half-waves in an edge of a box.
constexpr float NEAR = 1.5f, HALF_WAVES = 0.5f;

// A source is a small ball: its field is finite everywhere.
constexpr float SOFT = 1e-4f;

__device__ __forceinline__ float squared(float dx, float dy, float dz) { return fmaf(dz, dz, fmaf(dy, dy, dx * dx)); }

// The field of one box source by source: right at any distance.
__device__ __forceinline__ Field near_field(const float4* __restrict__ sources, int first, int count, float x, float y,
                                            float z) {
  Field field = {0, 0};
  for (int s = first; s < first + count; ++s) {
    const float4 source = sources[s];
    const float d2 = squared(x - source.x, y - source.y, z - source.z) + SOFT;
    const float inverse = rsqrtf(d2);
    float sine, cosine;
    sincospif(HALF_WAVES * (d2 * inverse), &sine, &cosine);
    const float amplitude = source.w * inverse;
    field.re = fmaf(amplitude, cosine, field.re);
    field.im = fmaf(amplitude, sine, field.im);
  }
  return field;
}

// The field of a box at (x, y, z) from its centre, as if all its charge and its dipole moment were at the centre.
// With n the direction to the observer it is exp(ikR) / R * (q + (dipole * n) (1/R - ik)).
__device__ __forceinline__ Field far_field(const float4& dipole, float charge, float x, float y, float z, float d2) {
  const float inverse = rsqrtf(d2);
  float sine, cosine;
  sincospif(HALF_WAVES * (d2 * inverse), &sine, &cosine);
  const float along = inverse * fmaf(z, dipole.z, fmaf(y, dipole.y, x * dipole.x));
  const float re = inverse * fmaf(along, inverse, charge);
  const float im = inverse * (-3.14159265f * HALF_WAVES) * along;
  return {fmaf(re, cosine, -(im * sine)), fmaf(re, sine, im * cosine)};
}
