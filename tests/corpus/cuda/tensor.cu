// Matrix instructions through wmma and inline assembly: every shape and type that the target has.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

template <int M, int N, int K, typename In, typename Acc, typename A, typename B>
__device__ void product(const In* a, const In* b, Acc* c) {
  wmma::fragment<wmma::matrix_a, M, N, K, In, A> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, In, B> fb;
  wmma::fragment<wmma::accumulator, M, N, K, Acc> fc;
  wmma::fill_fragment(fc, Acc(0));
  wmma::load_matrix_sync(fa, a, K);
  wmma::load_matrix_sync(fb, b, K);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, N, wmma::mem_row_major);
}

using Row = wmma::row_major;
using Col = wmma::col_major;

__global__ void classic(const __half* h, float* f, __half* hh, const signed char* s8, const unsigned char* u8, int* i) {
  product<16, 16, 16, __half, float, Row, Col>(h, h, f);
  product<32, 8, 16, __half, __half, Col, Col>(h, h, hh);
  product<8, 32, 16, __half, float, Row, Row>(h, h, f + 256);
  product<16, 16, 16, signed char, int, Row, Col>(s8, s8, i);
  product<8, 32, 16, unsigned char, int, Row, Col>(u8, u8, i + 256);
#if __CUDA_ARCH__ >= 800
  product<16, 16, 16, __nv_bfloat16, float, Row, Col>((const __nv_bfloat16*)h, (const __nv_bfloat16*)h, f + 512);
  product<8, 8, 4, double, double, Row, Col>((const double*)h, (const double*)h, (double*)f);
#endif
}

#if __CUDA_ARCH__ >= 800
__global__ void tf32(const float* a, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, Row> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, Col> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  wmma::load_matrix_sync(fa, a, 8);
  wmma::load_matrix_sync(fb, a, 8);
  for (auto& x : fa.x) x = wmma::__float_to_tf32(x);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_col_major);
}
#endif

__global__ void assembly(const unsigned* g, unsigned* out) {
  __shared__ alignas(16) unsigned tile[256];
  tile[threadIdx.x] = g[threadIdx.x];
  __syncthreads();
  unsigned where = (unsigned)__cvta_generic_to_shared(tile + 4 * (threadIdx.x & 31));
  unsigned a[4], b[2], c[4] = {0, 0, 0, 0}, t;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(where));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2+16];" : "=r"(b[0]), "=r"(b[1]) : "r"(where));
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(a[0]));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4,%5}, {%0,%1}, %6, 0x0;"
               : "+r"(c[0]), "+r"(c[1]) : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]), "r"(t));
#endif
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(where), "r"(c[0]), "r"(c[1]) : "memory");
#endif
  out[threadIdx.x] = a[0] + a[3] + b[1] + c[0] + c[3] + t;
}
