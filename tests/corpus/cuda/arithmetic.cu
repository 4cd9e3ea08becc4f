// Integer and floating-point arithmetic of every width, with the rounding, saturation and carry forms.
#ifdef __CUDACC_RTC__
#include <cuda/std/cstdint>
using namespace cuda::std;
#else
#include <cstdint>
#endif

using s128 = __int128;
using u128 = unsigned __int128;

template <typename T> __global__ void integers(int n, const T* a, const T* b, T* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T x = a[i], y = b[i];
  T r = x * y + (x - y);
  r ^= (x & y) | ~(x >> 3) | (y << 2);
  if (y != 0) r += x / y + x % y;
  r += x < y ? x : y;
  r -= x > y ? x : y;
  out[i] = r;
}
template __global__ void integers<int8_t>(int, const int8_t*, const int8_t*, int8_t*);
template __global__ void integers<uint8_t>(int, const uint8_t*, const uint8_t*, uint8_t*);
template __global__ void integers<int16_t>(int, const int16_t*, const int16_t*, int16_t*);
template __global__ void integers<uint32_t>(int, const uint32_t*, const uint32_t*, uint32_t*);
template __global__ void integers<int64_t>(int, const int64_t*, const int64_t*, int64_t*);
template __global__ void integers<uint64_t>(int, const uint64_t*, const uint64_t*, uint64_t*);
template __global__ void integers<s128>(int, const s128*, const s128*, s128*);
template __global__ void integers<u128>(int, const u128*, const u128*, u128*);

__global__ void bits(const unsigned* a, const unsigned long long* b, unsigned* out) {
  unsigned x = a[threadIdx.x], r = 0;
  unsigned long long y = b[threadIdx.x];
  r += __popc(x) + __popcll(y) + __clz(x) + __clzll(y) + __ffs(x) + __ffsll(y);
  r ^= __brev(x) + (unsigned)__brevll(y) + __byte_perm(x, (unsigned)y, 0x5410);
  r += __funnelshift_l(x, r, 7) + __funnelshift_r(x, r, x) + __funnelshift_lc(x, r, 9) + __funnelshift_rc(x, r, x);
  r += __mulhi((int)x, (int)r) + __umulhi(x, r) + (unsigned)__umul64hi(y, x) + __mul24((int)x, 3) + __umul24(x, r);
  r += __sad((int)x, (int)r, 5u) + __usad(x, r, 5u) + __hadd((int)x, (int)r) + __urhadd(x, r);
  r += __dp4a(x, r, 3u) + (unsigned)__dp4a((int)x, (int)r, 3) + __dp2a_lo(x, r, 1u) + __dp2a_hi(x, r, 1u);
  r += (x >> (y & 31)) ^ (unsigned)((long long)y >> (x & 63)) ^ (x << (r & 31));
  out[threadIdx.x] = r;
}

__global__ void video(const unsigned* a, unsigned* out) {
  unsigned x = a[threadIdx.x], y = a[threadIdx.x + 32], r;
  r = __vadd2(x, y) + __vadd4(x, y) + __vabsdiffu4(x, y) + __vavgu2(x, y) + __vcmpeq4(x, y) + __vmaxs2(x, y);
  r += __vminu4(x, y) + __vsadu4(x, y) + __vseteq2(x, y) + __vabs4(x) + __vneg2(y) + __viaddmax_s32(x, y, r);
  r += __vimax3_s32(x, y, r) + __vimin_s16x2_relu(x, y);
  out[threadIdx.x] = r;
}

__global__ void floats(int n, const float* a, const double* b, float* out, double* out64) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float x = a[i], y = a[i + 1];
    double p = b[i], q = b[i + 1];
    float r = __fadd_rn(x, y) + __fadd_rz(x, y) + __fadd_ru(x, y) + __fmul_rd(x, y) + __fmaf_rz(x, y, 1.5f);
    r += __frcp_rn(x) + __fsqrt_ru(y) + __fdiv_rn(x, y) + __fdividef(x, y) + __frsqrt_rn(x) + __saturatef(x);
    r += fminf(x, y) + fmaxf(x, -y) + fabsf(x) + copysignf(x, y) + truncf(x) + rintf(y) + floorf(x) + ceilf(y);
    r += isnan(x) ? 1.0f : isinf(y) ? 2.0f : 3.0f;
    double s = __dadd_rd(p, q) + __dmul_ru(p, q) + __fma_rz(p, q, 0.1) + p / q + sqrt(p) + __drcp_rz(q) + fmin(p, q);
    s += (double)x + (double)(int)y + (double)(unsigned long long)p;
    r += (float)p + (float)(long long)q + (float)(unsigned char)x + __double2float_rd(q) + __uint2float_rz(i);
    out[i] = r + __int_as_float(__float_as_int(r) & 0x7fffffff);
    out64[i] = s + __longlong_as_double(__double_as_longlong(s) ^ 1) + __hiloint2double(__double2hiint(s), i);
  }
}

__global__ void conversions(const float* a, int* out, short* out16, unsigned char* out8, long long* out64) {
  float x = a[threadIdx.x];
  out[threadIdx.x] = __float2int_rn(x) + __float2int_rz(x) + __float2int_ru(x) + (int)__float2uint_rd(x) + (int)x;
  out16[threadIdx.x] = (short)x;
  out8[threadIdx.x] = (unsigned char)x;
  out64[threadIdx.x] = __float2ll_rd(x) + (long long)__float2ull_rz(x) + __double2ll_rn((double)x);
}
