// Atomics of every kind, type, scope and order.
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ unsigned results[64];

__global__ void classic(int* i, unsigned* u, unsigned long long* l, float* f, double* d, long long* sl) {
  __shared__ int si;
  __shared__ float sf;
  __shared__ unsigned long long sl64;
  si = 0;
  sf = 0;
  sl64 = 0;
  __syncthreads();
  int r = atomicAdd(i, 1) + atomicSub(i, 2) + atomicMin(i, 3) + atomicMax(i, 4) + atomicAnd(i, 5) + atomicOr(i, 6);
  r += atomicXor(i, 7) + atomicExch(i, 8) + atomicCAS(i, 9, 10) + (int)atomicInc(u, 11) + (int)atomicDec(u, 12);
  r += (int)atomicAdd(u, 3u) + (int)atomicMax(u, 2u) + (int)atomicAdd(l, 1ull) + (int)atomicCAS(l, 1ull, 2ull);
  r += (int)atomicMin(sl, -3ll) + (int)atomicExch(f, 2.0f) + (int)atomicAdd(f, 1.0f) + (int)atomicAdd(d, 1.0);
  atomicAdd(i + 1, r);
  atomicAdd(f + 1, 2.0f);
  atomicMax(u + 1, 3u);
  atomicAnd(l + 1, 5ull);
  atomicAdd(&si, r);
  atomicAdd(&sf, 1.0f);
  atomicXor(&sl64, 3ull);
  atomicExch(&results[threadIdx.x & 63], 3u);
  r += atomicAdd(&si, 1) + (int)atomicCAS(&sl64, 1ull, 2ull) + (int)atomicAdd(&sf, 2.0f);
#if __CUDA_ARCH__ >= 600
  r += atomicAdd_block(i, 1) + atomicAdd_system(i, 1) + atomicCAS_block(i, 1, 2);
#endif
  i[threadIdx.x] = r;
}

__global__ void halves(__half* h, __half2* h2, __nv_bfloat16* b, __nv_bfloat162* b2, unsigned short* s) {
  h[1] = atomicAdd(h, __float2half(1.0f));
  h2[1] = atomicAdd(h2, __floats2half2_rn(1.0f, 2.0f));
  b[1] = atomicAdd(b, __float2bfloat16(1.0f));
  b2[1] = atomicAdd(b2, __floats2bfloat162_rn(1.0f, 2.0f));
  s[1] = atomicCAS(s, (unsigned short)1, (unsigned short)2);
#if __CUDA_ARCH__ >= 900
  float4 f4 = atomicAdd(reinterpret_cast<float4*>(h + 64), make_float4(1, 2, 3, 4));
  h[2] = __float2half(f4.x + f4.w);
#endif
}

template <cuda::thread_scope Scope> __device__ int ordered(int* p) {
  cuda::atomic_ref<int, Scope> a(*p);
  int r = a.load(cuda::memory_order_acquire) + a.load(cuda::memory_order_relaxed) + a.load();
  a.store(1, cuda::memory_order_release);
  a.store(2);
  r += a.fetch_add(3, cuda::memory_order_acq_rel) + a.fetch_or(4, cuda::memory_order_relaxed) + a.exchange(5);
  r += a.fetch_max(9) + a.fetch_sub(2, cuda::memory_order_release);
  int expected = r;
  a.compare_exchange_strong(expected, 7);
  a.compare_exchange_weak(expected, 8, cuda::memory_order_acquire, cuda::memory_order_relaxed);
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, Scope);
  cuda::atomic_thread_fence(cuda::memory_order_acquire, Scope);
  return r + expected;
}

__global__ void scopes(int* p, double* d, long long* l) {
  p[0] = ordered<cuda::thread_scope_thread>(p + 1) + ordered<cuda::thread_scope_block>(p + 2);
  p[3] = ordered<cuda::thread_scope_device>(p + 4) + ordered<cuda::thread_scope_system>(p + 5);
  cuda::atomic_ref<double, cuda::thread_scope_device> ad(*d);
  d[1] = ad.fetch_add(2.0) + ad.fetch_min(1.0);
  cuda::atomic_ref<long long, cuda::thread_scope_block> al(*l);
  l[1] = al.fetch_and(3) + al.fetch_xor(9);
  __threadfence_block();
  __threadfence();
  __threadfence_system();
}

// A spin lock with inline assembly that names its orders and scopes.
__global__ void locked(int* lock, int* data) {
  int taken;
  do {
    asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(taken) : "l"(lock) : "memory");
  } while (taken != 0);
  data[0] += 1;
  asm volatile("red.release.gpu.global.and.b32 [%0], 0;" ::"l"(lock) : "memory");
  asm volatile("fence.acq_rel.sys; fence.sc.cta; membar.gl;" ::: "memory");
  asm volatile("{ .reg .b32 t; ld.relaxed.cta.global.b32 t, [%0]; st.release.sys.global.b32 [%0+4], t; }" ::"l"(data));
}
