// Kernels with what the emulator does not run (textures, surfaces, `new`, functions of doubles), or runs as the pass does
// (calls through pointers). The program prints a sum for each kernel.
#include <cuda_bf16.h>
#include <cuda/atomic>
#include <cuda/std/optional>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#define CHECK(call)                                                                        \
  do {                                                                                     \
    cudaError_t failed = (call);                                                           \
    if (failed != cudaSuccess) {                                                           \
      printf("%s: %s\n", #call, cudaGetErrorString(failed));                               \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

__device__ __forceinline__ unsigned hash32(unsigned x) {
  x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; return x ^ x >> 16;
}
#define TASKS for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)

// --- textures

extern "C" __global__ void fetch(int n, cudaTextureObject_t t, unsigned* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned x = hash32(i);
#pragma ccc if
    if (x % 5 == 1) {
      unsigned s = 0;
      for (unsigned k = 0; k < x % 29; k++) s = s * 3 + tex1Dfetch<unsigned>(t, (x + s) % 4096);
      out[i] = s;
    }
  }
}

extern "C" __global__ void march(int n, cudaTextureObject_t t, float* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned h = hash32(i);
    float x = (h & 255) * 0.25f, y = (h >> 8 & 255) * 0.25f, d = 0.0f, sum = 0.0f;
    float dx = (h >> 16 & 15) * 0.1f - 0.7f, dy = (h >> 20 & 15) * 0.1f - 0.7f;
#pragma ccc while
    while (sum < 6.0f && d < 40.0f) {
      float v = tex2D<float>(t, x + dx * d, y + dy * d);
      sum += v * v;
      d += 0.5f + v;
    }
    out[i] = sum + d;
  }
}

extern "C" __global__ void volume(int n, cudaTextureObject_t t, float4* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned h = hash32(i);
    float4 c = make_float4(0, 0, 0, 0);
    if (h % 3 != 0) {
      float x = (h & 15) / 16.0f, y = (h >> 4 & 15) / 16.0f;
#pragma ccc for variable
      for (int k = 0; k < (int)(h >> 8 & 31); k++) {
        float4 s = tex3D<float4>(t, x, y, k / 32.0f);
#pragma ccc if
        if (s.w > 0.5f) {
          float4 g = tex3DLod<float4>(t, y, x, s.w, 0.0f);
          atomicAdd(&out[i].x, floorf(g.x * 8));
          atomicAdd(&out[i].y, floorf(g.y * 8));
        }
      }
    }
    out[i].z = c.x + 1.0f;
  }
}

extern "C" __global__ void gather(int n, cudaTextureObject_t t, unsigned* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned h = hash32(i), r = 1;
#pragma ccc if
    if (h & 1) {
      for (int k = 0; k < (int)(h >> 4 & 7); k++) {
        float4 g = tex2Dgather<float4>(t, (h >> 8 & 63) + k, h >> 16 & 63, k & 3 ? 0 : 0);
        r = r * 31 + __float_as_uint(g.x + g.w);
      }
    }
    out[i] = r;
  }
}

// --- surfaces

extern "C" __global__ void draw(int n, int w, cudaSurfaceObject_t s, unsigned* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned h = hash32(i);
    int x = i % w, y = i / w;
#pragma ccc if
    if (h % 4 == 2) {
      unsigned v;
      surf2Dread(&v, s, x * 4, y);
      for (unsigned k = 0; k < h % 23; k++) v = v * 5 + k;
      surf2Dwrite(v, s, x * 4, y);
    }
    out[i] = h;
  }
}

extern "C" __global__ void draw_and_read(int n, int w, cudaSurfaceObject_t s, unsigned* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned h = hash32(i);
    int x = i % w, y = i / w;
#pragma ccc if
    if (h % 4 == 2) {
      unsigned v = h;
      for (unsigned k = 0; k < h % 23; k++) v = v * 5 + k;
      surf2Dwrite(v, s, x * 4, y);
    }
    unsigned u;
    surf2Dread(&u, s, x * 4, y);
    out[i] = u + 1;
  }
}

extern "C" __global__ void read_and_draw(int n, int w, cudaSurfaceObject_t s, unsigned* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned h = hash32(i);
    int x = i % w, y = i / w;
#pragma ccc if
    if (h % 4 == 2) {
      unsigned v, a = h;
      surf2Dread(&v, s, x * 4, y);
      for (unsigned k = 0; k < h % 23; k++) a = a * 5 + v;
      out[i] = a;
    }
    surf2Dwrite(h, s, x * 4, y);
  }
}

// --- virtual calls and calls through pointers

struct Shape {
  __device__ virtual unsigned area(unsigned x) const = 0;
  __device__ virtual int steps(unsigned x) const { return x % 7; }
};
struct Disk : Shape {
  unsigned r;
  __device__ Disk(unsigned r) : r(r) {}
  __device__ unsigned area(unsigned x) const override {
    unsigned s = r;
    for (unsigned k = 0; k < x % 17; k++) s = s * 3 + (x >> k);
    return s;
  }
};
struct Box : Shape {
  unsigned a, b;
  __device__ Box(unsigned a, unsigned b) : a(a), b(b) {}
  __device__ unsigned area(unsigned x) const override { return a * b ^ x; }
  __device__ int steps(unsigned x) const override { return x % 19; }
};
__device__ unsigned char room[64 * 32];
__device__ Shape* shapes[64];

extern "C" __global__ void make_shapes() {
  int i = threadIdx.x;
  if (i & 1) shapes[i] = new (room + i * 32) Disk(i);
  else shapes[i] = new (room + i * 32) Box(i, i + 3);
}

extern "C" __global__ void areas(int n, unsigned* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned x = hash32(i);
#pragma ccc if
    if (x % 3 == 1) out[i] = shapes[x >> 8 & 63]->area(x);
  }
}

extern "C" __global__ void many_areas(int n, unsigned* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned x = hash32(i), s = 0;
    const Shape* shape = shapes[x >> 8 & 63];
    int steps = shape->steps(x);
#pragma ccc while
    for (int k = 0; k < steps; k++) s = s * 7 + shape->area(x + s);
    out[i] = s;
  }
}

typedef unsigned (*Function)(unsigned);
__device__ unsigned twice(unsigned x) { return x * 2; }
__device__ unsigned spin(unsigned x) {
  while (x & 12) x = x * 5 + 1;
  return x;
}
__device__ Function functions[2] = {twice, spin};

extern "C" __global__ void through_pointers(int n, unsigned* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned x = hash32(i);
#pragma ccc if
    if (x & 2) {
      for (unsigned k = 0; k < (x >> 3 & 7); k++) x = functions[x >> 5 & 1](x) + k;
      out[i] = x;
    }
  }
}

// --- numbers and libraries

extern "C" __global__ void brains(int n, __nv_bfloat162* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned h = hash32(i);
    __nv_bfloat162 v = __floats2bfloat162_rn((h & 15) * 0.25f, (h >> 4 & 15) * 0.125f);
#pragma ccc if
    if (h % 3 == 0) {
      for (unsigned k = 0; k < (h >> 8 & 15); k++) v = __hfma2(v, __float2bfloat162_rn(0.75f), __hmax2(v, __float2bfloat162_rn(0.5f)));
      out[i] = v;
    }
  }
}

extern "C" __global__ void functions_of_doubles(int n, double* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned h = hash32(i);
    double x = h * 1e-9, s = 0;
#pragma ccc while
    while (s < (h >> 20 & 63)) {
      s += 1.0 + fabs(sin(x)) + pow(x, 0.3) * 0.01 + erf(x) * 0.1;
      x = x * 1.01 + 0.1;
    }
    out[i] = s;
  }
}

extern "C" __global__ void with_references(int n, unsigned* bins, unsigned* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned h = hash32(i);
#pragma ccc if
    if (h % 3 == 0) {
      unsigned x = h;
      for (unsigned k = 0; k < (h >> 8 & 15); k++) x = x * 5 + k;
      cuda::atomic_ref<unsigned, cuda::thread_scope_device> bin(bins[x & 63]);
      bin.fetch_add(1, cuda::memory_order_relaxed);
      out[i] = x;
    }
  }
}

__device__ cuda::std::optional<unsigned> found(unsigned x) {
  if (x % 3 == 0) return x * 5;
  if (x % 7 == 0) return cuda::std::nullopt;
  for (int k = 0; k < 9; k++) x = x * 3 + 1;
  return x;
}

extern "C" __global__ void optionals(int n, unsigned* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned h = hash32(i), s = 0;
#pragma ccc while
    while (auto v = found(h)) {
      s += *v;
      if (s % 5 == 2) break;
      h = h * 1664525u + 1013904223u;
    }
    out[i] = s;
  }
}

struct Node { unsigned value; Node* next; };
extern "C" __global__ void lists(int n, unsigned* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned h = hash32(i);
#pragma ccc if
    if (h % 16 == 0) {
      Node* head = nullptr;
      for (unsigned k = 0; k < (h >> 8 & 7); k++) head = new Node{h * k, head};
      unsigned s = 0;
      while (head) { Node* next = head->next; s = s * 3 + head->value; delete head; head = next; }
      out[i] = s;
    }
  }
}

__managed__ unsigned long long total;
__constant__ unsigned table[64];
extern "C" __global__ void tables(int n, unsigned* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned h = hash32(i);
#pragma ccc if
    if (h & 1) {
      unsigned s = 0;
      for (unsigned k = 0; k < (h >> 8 & 15); k++) s = s * 3 + table[(h >> k) & 63];
      atomicAdd(&total, (unsigned long long)s);
      out[i] = s;
    }
  }
}

extern "C" __global__ void says(int n, unsigned* out) {
#pragma ccc for block(128)
  TASKS {
    unsigned h = hash32(i);
#pragma ccc if
    if (h % 999 == 0) {
      for (unsigned k = 0; k < (h >> 8 & 15); k++) h = h * 3 + k;
      printf("at %d %u\n", i, h);
      out[i] = h;
    }
  }
}

template <class T> static void sum(const char* name, const T* data, size_t count) {
  std::vector<unsigned> host(count * sizeof(T) / 4);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host.data(), data, host.size() * 4, cudaMemcpyDeviceToHost));
  unsigned s = 0;
  for (unsigned each : host) s = s * 31 + each;
  printf("%s %u\n", name, s);
  CHECK(cudaMemset((void*)data, 0, host.size() * 4));
}

int main() {
  const int n = 100003, w = 317, h = 316;
  CHECK(cudaSetDevice(0));
  unsigned* out;
  CHECK(cudaMalloc(&out, 16 * (n + 8)));
  CHECK(cudaMemset(out, 0, 16 * (n + 8)));
  std::vector<unsigned> data(w * h * 4);
  for (size_t i = 0; i < data.size(); i++) data[i] = i * 2654435761u >> 3;
  CHECK(cudaMemcpyToSymbol(table, data.data(), sizeof table));

  unsigned* linear;
  CHECK(cudaMalloc(&linear, 4096 * 4));
  CHECK(cudaMemcpy(linear, data.data(), 4096 * 4, cudaMemcpyHostToDevice));
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeLinear;
  what.res.linear.devPtr = linear;
  what.res.linear.desc = cudaCreateChannelDesc<unsigned>();
  what.res.linear.sizeInBytes = 4096 * 4;
  cudaTextureDesc how = {};
  cudaTextureObject_t words, plane, space;
  CHECK(cudaCreateTextureObject(&words, &what, &how, nullptr));

  std::vector<float> values(w * h * 4);
  for (size_t i = 0; i < values.size(); i++) values[i] = (data[i] >> 8 & 1023) / 1024.0f;
  cudaArray_t flat, cube, drawn;
  cudaChannelFormatDesc one = cudaCreateChannelDesc<float>(), four = cudaCreateChannelDesc<float4>();
  CHECK(cudaMallocArray(&flat, &one, 64, 64, cudaArrayTextureGather));
  CHECK(cudaMemcpy2DToArray(flat, 0, 0, values.data(), 256, 256, 64, cudaMemcpyHostToDevice));
  what = {};
  what.resType = cudaResourceTypeArray;
  what.res.array.array = flat;
  how.filterMode = cudaFilterModeLinear;
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  CHECK(cudaCreateTextureObject(&plane, &what, &how, nullptr));
  cudaExtent size = make_cudaExtent(16, 16, 16);
  CHECK(cudaMalloc3DArray(&cube, &four, size));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(values.data(), 256, 16, 16);
  copy.dstArray = cube;
  copy.extent = size;
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  what.res.array.array = cube;
  how.normalizedCoords = 1;
  CHECK(cudaCreateTextureObject(&space, &what, &how, nullptr));
  cudaChannelFormatDesc word = cudaCreateChannelDesc<unsigned>();
  CHECK(cudaMallocArray(&drawn, &word, w, h, cudaArraySurfaceLoadStore));
  cudaSurfaceObject_t surface;
  what.res.array.array = drawn;
  CHECK(cudaCreateSurfaceObject(&surface, &what));
  auto reset = [&] { CHECK(cudaMemcpy2DToArray(drawn, 0, 0, data.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice)); };
  auto picture = [&](const char* name) {
    CHECK(cudaMemcpy2DFromArray(out, w * 4, drawn, 0, 0, w * 4, h, cudaMemcpyDeviceToDevice));
    sum(name, out, n);
  };
  const int grid = 31, block = 128, m = w * h - 5;

  fetch<<<grid, block>>>(n, words, out); sum("fetch", out, n);
  march<<<grid, block>>>(n, plane, (float*)out); sum("march", out, n);
  volume<<<grid, block>>>(n / 4, space, (float4*)out); sum("volume", out, n);
  gather<<<grid, block>>>(n, plane, out); sum("gather", out, n);
  reset(); draw<<<grid, block>>>(m, w, surface, out); sum("draw", out, n); picture("draw_picture");
  reset(); draw_and_read<<<grid, block>>>(m, w, surface, out); sum("draw_and_read", out, n); picture("draw_and_read_picture");
  reset(); read_and_draw<<<grid, block>>>(m, w, surface, out); sum("read_and_draw", out, n); picture("read_and_draw_picture");
  make_shapes<<<1, 64>>>();
  areas<<<grid, block>>>(n, out); sum("areas", out, n);
  many_areas<<<grid, block>>>(n, out); sum("many_areas", out, n);
  through_pointers<<<grid, block>>>(n, out); sum("through_pointers", out, n);
  brains<<<grid, block>>>(n, (__nv_bfloat162*)out); sum("brains", out, n);
  functions_of_doubles<<<grid, block>>>(n / 2, (double*)out); sum("functions_of_doubles", out, n);
  with_references<<<grid, block>>>(n, out + n, out); sum("with_references", out, n + 64);
  optionals<<<grid, block>>>(n, out); sum("optionals", out, n);
  lists<<<grid, block>>>(n, out); sum("lists", out, n);
  tables<<<grid, block>>>(n, out); sum("tables", out, n);
  printf("total %llu\n", total);
  says<<<grid, block>>>(n, out); sum("says", out, n);
  return 0;
}
