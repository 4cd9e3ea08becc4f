// half, bfloat16 and the eight-, six- and four-bit floats.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>

__global__ void halves(const __half* a, const __half2* b, __half* out, __half2* out2, int* flags) {
  int i = threadIdx.x;
  __half x = a[i], y = a[i + 1];
  __half2 p = b[i], q = b[i + 1];
  out[i] = __hadd(x, y) + __hmul(x, y) - __hfma(x, y, x) + __hdiv(x, y) + hsqrt(x) + hsin(y) + hexp2(x) + __habs(y);
  out2[i] = __hfma2(p, q, p) + __hadd2_sat(p, q) + h2rcp(p) + __hmax2(p, q) + __hneg2(q) + __lowhigh2highlow(p);
  flags[i] = __hgt(x, y) + __hisnan(x) + __hbeq2(p, q) + (int)__half2short_rn(x) + __half2int_rz(y) + __heq2_mask(p, q);
  out[i + 64] = __float2half_rz(3.7f) + __int2half_rn(i) + __double2half(2.0) + htanh(x) + __hfma_relu(x, y, x);
}

__global__ void brains(const __nv_bfloat16* a, const __nv_bfloat162* b, __nv_bfloat16* out, __nv_bfloat162* out2) {
  int i = threadIdx.x;
  __nv_bfloat16 x = a[i], y = a[i + 1];
  __nv_bfloat16 fused = y;
#if __CUDA_ARCH__ >= 800
  fused = __hfma_relu(x, y, x);
#endif
  out[i] = x + y * x - x / y + hlog(x) + __hmin(x, y) + __float2bfloat16_rn(1.5f) + fused;
#if __CUDA_ARCH__ >= 800
  out2[i] = __hfma2(b[i], b[i + 1], b[i]) + h2exp(b[i]) + __floats2bfloat162_rn(__bfloat162float(x), 2.0f);
#endif
}

__global__ void tiny(const float* a, __nv_fp8_e4m3* e4, __nv_fp8_e5m2* e5, __nv_fp8x4_e4m3* x4, float* out) {
  int i = threadIdx.x;
  e4[i] = __nv_fp8_e4m3(a[i]);
  e5[i] = __nv_fp8_e5m2(a[i]);
  x4[i] = __nv_fp8x4_e4m3(make_float4(a[i], a[i + 1], a[i + 2], a[i + 3]));
  out[i] = float(e4[i]) + float(e5[i]) + float4(x4[i]).y + float(__half(e4[i + 1]));
  __nv_fp6_e2m3 s(a[i]);
  __nv_fp6_e3m2 t(a[i]);
  __nv_fp4x2_e2m1 u(make_float2(a[i], a[i + 1]));
  __nv_fp8_e8m0 v(a[i]);
  out[i + 32] = float(s) + float(t) + float2(u).x + float(v);
}
