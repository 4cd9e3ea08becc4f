// Votes, shuffles, matches, barriers, cooperative groups, asynchronous copies, textures, surfaces, inline assembly.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <mma.h>
namespace cg = cooperative_groups;

__global__ void collectives(int *a, double *d, unsigned long long *clock) {
    __shared__ int s[512];
    int t = threadIdx.x;
    unsigned m = __ballot_sync(0xffffffff, a[t] > 3);
    a[1] = __all_sync(m, a[t]) + __any_sync(m, a[t + 1]) + __activemask() + __popc(m);
    a[2] = __shfl_sync(m, a[t], 3) + __shfl_up_sync(m, a[t], 1) + __shfl_down_sync(m, a[t], 1, 8) + __shfl_xor_sync(m, a[t], 1);
    d[2] = __shfl_sync(m, d[t], 3);
    int all;
    a[3] = __match_any_sync(m, a[t]) + __match_all_sync(m, d[t], &all);
    a[4] = all;
    a[5] = __syncthreads_count(a[t]) + __syncthreads_or(a[t + 1]) + __syncthreads_and(a[t + 2]);
    __syncwarp();
    __syncwarp(m);
#if __CUDA_ARCH__ >= 800
    a[6] = __reduce_add_sync(m, a[t]) + __reduce_max_sync(m, (unsigned)a[t]);
    __pipeline_memcpy_async(&s[t], &a[t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
#endif
    s[t] += 1;
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(cg::this_thread_block());
    a[7] = tile.shfl(s[t], 2) + tile.any(s[1]);
    clock[t] = clock64() + threadIdx.y * blockDim.z + gridDim.x + warpSize;
    __nanosleep(20);
    int x, y;
    asm("{ .reg .pred p, q; .reg .b32 r<3>; setp.ne.and.s32 p|q, %1, 0, 1; @p mov.u32 r0, %%laneid;\n"
        " @!p add.s32 r0, %1, -3; // a comment\n"
        " mov.b32 r1, r0; .reg .b64 wide; mov.b64 wide, {r1, r0}; mov.b64 {%0, r2}, wide; }" : "=r"(x) : "r"(a[t]));
    asm volatile("mov.u32 %0, %%lanemask_lt; /* a block\n comment */" : "=r"(y));
    asm volatile("// ccc if.begin 3 name=odd flag file=a file with blanks.cu" ::: "memory");
    a[t] = x + y;
    asm volatile("// ccc if.end 3" ::: "memory");
}

template <typename T, int N> __global__ void templated(T *p, cudaTextureObject_t tex, cudaSurfaceObject_t surf) {
    T sum = 0;
#pragma unroll 1
    for (int k = 0; k < N; k++) sum += p[k * threadIdx.x] + (T)tex2D<float>(tex, k, sum) + (T)tex1Dfetch<int>(tex, k);
    float4 texel = tex3D<float4>(tex, 1, 2, 3);
    surf2Dwrite<float>((float)sum + texel.y, surf, 4 * threadIdx.x, 1);
    p[threadIdx.x] = sum + (T)surf2Dread<int>(surf, 4, 5);
}
template __global__ void templated<int, 5>(int *, cudaTextureObject_t, cudaSurfaceObject_t);
template __global__ void templated<double, 9>(double *, cudaTextureObject_t, cudaSurfaceObject_t);

__global__ void matrices(const __half *a, const __half *b, float *c) {
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
