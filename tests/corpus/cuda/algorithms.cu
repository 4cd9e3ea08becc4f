// Whole small programs: a tree walk, a hash table, a graph step, n-body, a scan, a stencil, matrix product, Mandelbrot.
#ifdef __CUDACC_RTC__
#include <cuda/std/cstdint>
using namespace cuda::std;
#else
#include <cstdint>
#endif

__global__ void mandelbrot(int w, int h, float scale, unsigned char* out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  float cr = x * scale - 2.0f, ci = y * scale - 1.0f, zr = 0, zi = 0;
  int k = 0;
  for (; k < 255 && zr * zr + zi * zi < 4.0f; ++k) {
    float t = zr * zr - zi * zi + cr;
    zi = 2.0f * zr * zi + ci;
    zr = t;
  }
  out[y * w + x] = (unsigned char)k;
}

template <int Tile> __global__ void product(const float* a, const float* b, float* c, int n) {
  __shared__ float sa[Tile][Tile], sb[Tile][Tile];
  int row = blockIdx.y * Tile + threadIdx.y, col = blockIdx.x * Tile + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n; t += Tile) {
    sa[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
    sb[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
    __syncthreads();
    for (int k = 0; k < Tile; ++k) sum += sa[threadIdx.y][k] * sb[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}
template __global__ void product<16>(const float*, const float*, float*, int);

struct Slot { unsigned key, value; };
__global__ void inserted(Slot* table, unsigned mask, const unsigned* keys, int n, int* lost) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned k = keys[i], h = k * 2654435761u;
  for (unsigned probe = 0; probe <= mask; ++probe) {
    Slot& s = table[(h + probe) & mask];
    unsigned old = atomicCAS(&s.key, 0xffffffffu, k);
    if (old == 0xffffffffu || old == k) {
      s.value = i;
      return;
    }
  }
  atomicAdd(lost, 1);
}

__global__ void breadth(const int* starts, const int* edges, const int* front, int size, int* next, int* count, int* level, int depth) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size) return;
  int v = front[i];
  for (int e = starts[v]; e < starts[v + 1]; ++e)
    if (atomicCAS(&level[edges[e]], -1, depth) == -1) next[atomicAdd(count, 1)] = edges[e];
}

struct Tree { int left, right; float split; int axis; };
__global__ void nearest(const Tree* nodes, const float3* points, float3 q, float* out) {
  int stack[32], top = 0;
  stack[top++] = 0;
  float best = 1e30f;
  while (top > 0) {
    const Tree t = nodes[stack[--top]];
    if (t.axis < 0) {
      float3 p = points[t.left];
      float d = (p.x - q.x) * (p.x - q.x) + (p.y - q.y) * (p.y - q.y) + (p.z - q.z) * (p.z - q.z);
      best = fminf(best, d);
      continue;
    }
    float side = (t.axis == 0 ? q.x : t.axis == 1 ? q.y : q.z) - t.split;
    if (side * side < best && top < 31) stack[top++] = side < 0 ? t.right : t.left;
    stack[top++] = side < 0 ? t.left : t.right;
  }
  out[threadIdx.x] = best;
}

__global__ void bodies(const float4* p, float4* v, int n, float dt) {
  extern __shared__ float4 cache[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = p[i], a = {0, 0, 0, 0};
  for (int base = 0; base < n; base += blockDim.x) {
    cache[threadIdx.x] = p[base + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < blockDim.x; ++j) {
      float dx = cache[j].x - me.x, dy = cache[j].y - me.y, dz = cache[j].z - me.z;
      float inv = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-6f), s = cache[j].w * inv * inv * inv;
      a.x += dx * s, a.y += dy * s, a.z += dz * s;
    }
    __syncthreads();
  }
  v[i].x += a.x * dt, v[i].y += a.y * dt, v[i].z += a.z * dt;
}

__global__ void stencil(const double* __restrict__ in, double* __restrict__ out, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || x >= nx - 1 || y < 1 || y >= ny - 1) return;
  size_t plane = (size_t)nx * ny, at = (size_t)y * nx + x + plane;
  for (int z = 1; z < nz - 1; ++z, at += plane)
    out[at] = in[at] * -6.0 + in[at - 1] + in[at + 1] + in[at - nx] + in[at + nx] + in[at - plane] + in[at + plane];
}

__global__ void digest(const uint8_t* text, int n, uint64_t* out) {
  uint64_t h = 0xcbf29ce484222325ull, s[4] = {1, 2, 3, 4};
  for (int i = threadIdx.x; i < n; i += 32) {
    h = (h ^ text[i]) * 0x100000001b3ull;
    s[i & 3] = (s[i & 3] << 13 | s[i & 3] >> 51) + h;
  }
  out[threadIdx.x] = h ^ s[0] ^ s[1] ^ s[2] ^ s[3];
}
