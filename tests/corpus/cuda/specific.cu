// What only one architecture's own target (the suffix a or f) has: wgmma on 90a, tcgen05 on 100a and 110a, block scaling on 12xa.

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
__global__ void __launch_bounds__(128) warpgroup(float* out, unsigned long long a, unsigned long long b) {
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b), "r"(1));
  asm volatile("wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;" ::: "memory");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
#endif
#if (__CUDA_ARCH__ == 1000 || __CUDA_ARCH__ == 1030 || __CUDA_ARCH__ == 1100) && (defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__))
__global__ void __launch_bounds__(128) fifth(unsigned* out, unsigned long long a, unsigned long long b, unsigned idesc) {
  __shared__ unsigned address;
  __shared__ alignas(8) unsigned long long bar;
  if (threadIdx.x < 32)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;"
                 ::"r"((unsigned)__cvta_generic_to_shared(&address)) : "memory");
  __syncthreads();
  unsigned t = address, d[8];
  if (threadIdx.x == 0) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0;\n tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }"
                 ::"r"(t), "l"(a), "l"(b), "r"(idesc), "r"(1) : "memory");
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                 ::"r"((unsigned)__cvta_generic_to_shared(&bar)) : "memory");
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];\n tcgen05.wait::ld.sync.aligned;"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]), "=r"(d[4]), "=r"(d[5]), "=r"(d[6]), "=r"(d[7]) : "r"(t));
  asm volatile("tcgen05.st.sync.aligned.16x64b.x1.b32 [%0], {%1};\n tcgen05.wait::st.sync.aligned;" ::"r"(t), "r"(d[0]));
  asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(t), "l"(a));
  if (threadIdx.x < 32) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(t));
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  out[threadIdx.x] = d[0] + d[7];
}
#endif
#if (__CUDA_ARCH__ == 1200 || __CUDA_ARCH__ == 1210) && (defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__))
__global__ void scaled(const unsigned* a, float* out) {
  float d[4] = {};
  unsigned x = a[threadIdx.x], s = a[0];
  asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0 "
               "{%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3}, %5, {0, 0}, %5, {0, 0};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(x), "r"(s));
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
#endif

// Present for every target, so that no file is empty.
__global__ void elected(int* out, const float* a) {
  float2 sum = make_float2(a[0], a[1]);
#if __CUDA_ARCH__ >= 900
  unsigned leader;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }" : "=r"(leader));
  if (leader) out[0] = 1;
#endif
#if __CUDA_ARCH__ >= 1000
  unsigned long long packed;
  asm("{ .reg .b64 x; mov.b64 x, {%1, %2}; fma.rn.f32x2 %0, x, x, x; }" : "=l"(packed) : "f"(sum.x), "f"(sum.y));
  out[2] = (int)packed;
#endif
  out[1] = (int)(sum.x + sum.y);
}
