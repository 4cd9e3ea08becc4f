// State spaces, vector accesses, cache operators, volatile, restrict, constants, local arrays, dynamic shared memory.
#ifdef __CUDACC_RTC__
#include <cuda/std/cstdint>
using namespace cuda::std;
#else
#include <cstdint>
#endif

struct __align__(16) Pixel {
  float r, g, b, a;
};
struct Flags {
  unsigned kind : 3;
  int level : 11;
  unsigned long long rest : 50;
};
struct Packed {
  char c;
  double d;
  short s[3];
};

__constant__ float table[37] = {1.0f, -2.5f, 3.25f};
__constant__ Packed packed[2] = {{'a', 2.0, {1, 2, 3}}, {'b', -1.0, {4, 5, 6}}};
__device__ int counter = 42;
__device__ const char* words[] = {"alpha", "beta\n", "g\"amma\\"};
__device__ int* pointer = &counter;
__device__ double matrix[3][4] = {{1, 2}, {3}, {4, 5, 6, 7}};
__managed__ int shared_with_host = 7;
static __device__ volatile int flag;
extern __shared__ unsigned char dynamic[];
namespace outer { namespace { __device__ int hidden[4] = {1, 2, 3, 4}; } __device__ long long seen = -1; }

__global__ void spaces(const float* __restrict__ in, float* __restrict__ out, int n, Pixel tint, Flags* flags) {
  __shared__ float tile[32][33];
  __shared__ alignas(128) Pixel pixels[8];
  int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[y * n + x] * table[x];
  if (x < 8) pixels[x] = tint;
  __syncthreads();
  float4 v = reinterpret_cast<const float4*>(in)[x];
  double2 w = reinterpret_cast<const double2*>(in)[y];
  uchar4 u = reinterpret_cast<const uchar4*>(in)[x + y];
  short2 t = *reinterpret_cast<short2*>(dynamic + 4 * x);
  reinterpret_cast<float4*>(out)[x] = make_float4(v.w, v.z, v.y, tile[x][y] + pixels[x & 7].g);
  reinterpret_cast<double2*>(out)[y + 64] = make_double2(w.y, w.x);
  out[x] = u.x + u.y + u.z + t.x + t.y + (float)packed[x & 1].s[y % 3];
  flags[x].level = flags[x].level + 3;
  flags[x].kind ^= flags[y].kind;
  flags[x].rest += 5;
}

__global__ void locals(int n, int* out) {
  int stack[40];
  for (int i = 0; i < n; ++i) stack[(i * 7) % 40] = i * n;
  int sum = 0;
  for (int i = 0; i < 40; ++i) sum += stack[(i + n) % 40];
  out[threadIdx.x] = sum + counter + *pointer + outer::hidden[n & 3] + (int)outer::seen + shared_with_host;
  flag = sum;
  while (flag != 3) counter = words[n % 3][sum & 3] + (int)matrix[n % 3][sum & 3];
}

__global__ void cached(const int* p, const double4* q, int* out, double* out64) {
  int i = threadIdx.x;
  int r = __ldg(p + i) + __ldcg(p + i) + __ldca(p + i) + __ldcs(p + i) + __ldlu(p + i) + __ldcv(p + i);
  __stwb(out + i, r);
  __stcg(out + i + 32, r);
  __stcs(out + i + 64, r);
  __stwt(out + i + 96, r);
  double4 d = q[i];
  out64[i] = d.x + d.y + d.z + d.w;
}

__global__ void spaces_of(void* p, int* out, const __grid_constant__ Pixel whole) {
  out[0] = __isGlobal(p) + 2 * __isShared(p) + 4 * __isLocal(p) + 8 * __isConstant(p);
  out[1] = (int)__cvta_generic_to_global(p) + (int)__cvta_generic_to_shared(dynamic);
  const Pixel* w = &whole;
  out[2] = (int)(&w->r)[threadIdx.x & 3];
}

extern "C" __global__ void unaligned(const char* from, char* to, Packed by_value) {
  Packed copy = by_value;
  memcpy(to, from, 23);
  memset(to + 32, 7, 45);
  copy.d += from[3];
  *reinterpret_cast<Packed*>(to + 128) = copy;
}
