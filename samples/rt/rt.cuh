// A small ray caster: spheres, a thin lens, one light far away, shadows and one reflection.
//
// What is rounded is written out: a product is added by fmaf, and nowhere else, so that no compiler has a choice and the
// same pixel gets the same bits everywhere. Square roots and quotients are correctly rounded.
#pragma once

#include <cstdint>

__host__ __device__ inline uint32_t hash32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

__device__ __forceinline__ float dot(float3 a, float3 b) { return fmaf(a.x, b.x, fmaf(a.y, b.y, a.z * b.z)); }

// a + t * b
__device__ __forceinline__ float3 along(float3 a, float t, float3 b) {
  return make_float3(fmaf(t, b.x, a.x), fmaf(t, b.y, a.y), fmaf(t, b.z, a.z));
}

__device__ __forceinline__ float3 minus(float3 a, float3 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }

__device__ __forceinline__ float3 scaled(float3 a, float s) { return make_float3(a.x * s, a.y * s, a.z * s); }

struct Ray {
  float3 origin, direction;  // the direction is a unit vector
};

// How a ray stands to a sphere (its centre, and the square of its radius as fourth component). The ray meets the sphere ahead
// of it where all three are positive: a ray that begins in a sphere does not see it.
struct Aim {
  float nearest;  // how far along the ray its point nearest to the centre is
  float outside;  // the square of the distance from origin to centre, less that of the radius
  float depth;    // the square of half of the ray's way through the sphere

  __device__ __forceinline__ Aim(Ray ray, float4 sphere) {
    const float3 to_centre = minus(make_float3(sphere.x, sphere.y, sphere.z), ray.origin);
    nearest = dot(to_centre, ray.direction);
    outside = fmaf(to_centre.x, to_centre.x, fmaf(to_centre.y, to_centre.y, fmaf(to_centre.z, to_centre.z, -sphere.w)));
    depth = fmaf(nearest, nearest, -outside);
  }
  __device__ __forceinline__ bool hits() const { return depth > 0.0f && nearest > 0.0f && outside > 0.0f; }
};

struct Scene {
  int count;
  const float4* __restrict__ spheres;    // centre, square of the radius
  const float4* __restrict__ materials;  // red, green and blue, each up to 1; one over the radius
};

struct Hit {
  int sphere;  // -1: none
  float t;
};

// The first sphere that a ray meets. `without` is a sphere that is not looked at: the one on which the ray begins.
__device__ __forceinline__ Hit first_hit(const Scene& scene, Ray ray, int without) {
  Hit hit{-1, 1e30f};
#pragma unroll 4
  for (int k = 0; k < scene.count; ++k) {
    const Aim aim(ray, scene.spheres[k]);
    if (aim.hits() && k != without) {
      const float t = aim.nearest - sqrtf(aim.depth);
      if (t < hit.t) hit = {k, t};
    }
  }
  return hit;
}

// Whether any sphere is in a ray's way.
__device__ __forceinline__ bool blocked(const Scene& scene, Ray ray, int without) {
#pragma unroll 4
  for (int k = 0; k < scene.count; ++k)
    if (Aim(ray, scene.spheres[k]).hits() && k != without) return true;
  return false;
}

// From white at the horizon to blue.
__device__ __forceinline__ float3 sky(float3 direction) {
  const float height = fabsf(direction.y);
  return make_float3(fmaf(height, -0.5f, 1.0f), fmaf(height, -0.3f, 1.0f), 1.0f);
}

__device__ __forceinline__ float3 to_light() { return make_float3(0.48f, 0.6f, -0.64f); }

__device__ __forceinline__ float3 normal_at(const Scene& scene, int sphere, float3 point) {
  const float4 s = scene.spheres[sphere];
  return scaled(minus(point, make_float3(s.x, s.y, s.z)), scene.materials[sphere].w);
}

// What a sphere's surface sends back of `diffuse`, the cosine to the light; a fifth of the light comes from everywhere.
__device__ __forceinline__ float3 lit(float4 material, float diffuse) {
  return scaled(make_float3(material.x, material.y, material.z), fmaf(diffuse, 0.8f, 0.2f));
}

// Phong's model with a shadow, and a quarter of what the surface mirrors, which is shaded without shadow.
__device__ __forceinline__ float3 shaded(const Scene& scene, Ray ray, Hit hit) {
  const float3 point = along(ray.origin, hit.t, ray.direction), normal = normal_at(scene, hit.sphere, point);
  const float3 mirrored = along(ray.direction, -2.0f * dot(ray.direction, normal), normal);
  float diffuse = fmaxf(dot(normal, to_light()), 0.0f);
  if (diffuse > 0.0f && blocked(scene, {point, to_light()}, hit.sphere)) diffuse = 0.0f;

  const Hit other = first_hit(scene, {point, mirrored}, hit.sphere);
  float3 reflection = sky(mirrored);
  if (other.sphere >= 0) {
    const float3 there = normal_at(scene, other.sphere, along(point, other.t, mirrored));
    reflection = lit(scene.materials[other.sphere], fmaxf(dot(there, to_light()), 0.0f));
  }

  float highlight = diffuse > 0.0f ? fmaxf(dot(mirrored, to_light()), 0.0f) : 0.0f;
#pragma unroll
  for (int k = 0; k < 5; ++k) highlight *= highlight;  // to the 32nd
  const float3 own = along(make_float3(highlight, highlight, highlight), 0.75f, lit(scene.materials[hit.sphere], diffuse));
  return along(own, 0.25f, reflection);
}

__device__ __forceinline__ unsigned char level(float x) { return (unsigned char)(fmaf(fminf(x, 1.0f), 255.0f, 0.5f)); }

__device__ __forceinline__ uchar4 pixel(float3 colour) {
  return make_uchar4(level(colour.x), level(colour.y), level(colour.z), 255);
}

// A pixel's ray through a square lens at the origin, seeded by the pixel's number. Everything nearer than the plane in focus
// is blurred: whether a ray hits a sphere differs from one pixel to the next.
__device__ __forceinline__ Ray camera_ray(int i, int width, int height, uint32_t seed) {
  constexpr float focus = 20.0f, across = 18.0f, lens = 1.0f;
  const uint32_t random = hash32(uint32_t(i) + seed * 0x9e3779b9u);
  const float3 origin = make_float3(fmaf(float(random & 0xffff), lens / 65536, -lens / 2),
                                    fmaf(float(random >> 16), lens / 65536, -lens / 2), 0.0f);
  const float half_pixel = across / 2 / float(width);
  const float3 way = make_float3(fmaf(float(2 * (i % width) + 1 - width), half_pixel, -origin.x),
                                 fmaf(float(height - 1 - 2 * (i / width)), half_pixel, -origin.y), focus);
  return {origin, scaled(way, 1.0f / sqrtf(dot(way, way)))};
}
