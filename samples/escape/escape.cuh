// One step of the Mandelbrot set's iteration z -> z * z + c, and whether z can still stay near the origin (|z| < 2).
//
// The fused multiply-adds are written out: orbits are chaotic, and one rounding more or less changes how long they are.
#pragma once

__device__ __forceinline__ bool inside(float x, float y) { return fmaf(x, x, y * y) < 4.0f; }

__device__ __forceinline__ void step(float& x, float& y, float cx, float cy) {
  const float twice = x + x, rest = fmaf(-y, y, cx);
  x = fmaf(x, x, rest);
  y = fmaf(twice, y, cy);
}
