// Inline assembly in the manners that programs write it: scopes, labels, shadowed names, comments, odd spacing, number forms.
__global__ void nested(const int* in, int* out) {
  int x = in[threadIdx.x], r, s;
  asm("{\n\t.reg .pred p;\n\t.reg .b32 t<3>, u;\n\tsetp.lt.s32 p, %1, 010;\n\t@p mov.b32 t0, 0x1fU;\n\t@!p mov.b32 t0, 0b101;\n"
      "\t{ .reg .s64 t0; cvt.s64.s32 t0, %1; shl.b64 t0, t0, 3; cvt.u32.u64 u, t0; }\n\tadd.u32 %0,t0,u; // trailing\n}"
      : "=r"(r) : "r"(x));
  asm volatile("{ .reg .pred q;\nmov.u32 %0, 0;\nAGAIN_%=: add.u32 %0, %0, 1; /* a loop */ setp.ne.u32 q, %0, %1;\n@q bra.uni AGAIN_%=; }"
               : "=r"(s) : "r"(x & 15));
  asm volatile("{ .reg .pred p; .reg .pred q; setp.eq.and.s32 p|q, %1, 3, 1; @p add.s32 %0, %0, 1; @!q sub.s32 %0, %0, 2; }" : "+r"(s) : "r"(r));
  asm volatile("{ .reg .v2 .b32 pair; ld.global.v2.b32 {%0, %1}, [%2+8]; }" : "=r"(r), "=r"(s) : "l"(in));
  out[threadIdx.x] = r + s;
}

__global__ void operands(const float* in, float* out, unsigned long long* wide) {
  float x = in[threadIdx.x], y;
  double d;
  asm("fma.rn.ftz.sat.f32 %0, %1, 0f3F000000, 0F40490FDB;" : "=f"(y) : "f"(x));
  asm("add.rz.f64 %0, 0d3FF0000000000000, 0D4000000000000000;" : "=d"(d));
  asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; mov.b32 %0, {hi, lo}; }" : "=f"(y) : "f"(y));
  unsigned lo, hi;
  asm("mov.b64 {%0, %1}, %2;" : "=r"(lo), "=r"(hi) : "d"(d));
  asm("mov.b64 {_, %0}, %1;" : "=r"(hi) : "d"(d));
  asm("lop3.b32 %0, %1, %2, 17, 0x96;" : "=r"(lo) : "r"(lo), "r"(hi));
  asm("prmt.b32.f4e %0, %1, %2, 1;" : "=r"(hi) : "r"(lo), "r"(hi));
  asm("shf.r.wrap.b32 %0, %1, %2, 5; bfe.u32 %0, %0, 3, 7; bfi.b32 %0, %1, %0, 2, 4; bfind.shiftamt.u32 %1, %0;" : "+r"(lo), "+r"(hi) : "r"(3));
  asm("add.cc.u32 %0, %0, %1; addc.cc.u32 %1, %1, 0; addc.u32 %0, 0, 0; mad.lo.cc.u32 %0, %0, %1, 5; madc.hi.u32 %1, %0, %1, 0;" : "+r"(lo), "+r"(hi));
  asm("{ .reg .u64 c; sub.cc.u64 c, %0, 1; subc.u64 %0, c, 0; mul.hi.u64 %0, %0, c; }" : "+l"(wide[0]));
  asm("vadd.s32.u32.s32.sat.max %0, %1.b0, %2.h1, %0;" : "+r"(lo) : "r"(lo), "r"(hi));
  asm("vmad.s32.s32.u32.shr7 %0, %1.h0, %2.b3, %0;" : "+r"(lo) : "r"(lo), "r"(hi));
  asm("slct.u32.s32 %0, %0, %1, -1; sad.u32 %0, %0, %1, 4; cnot.b32 %1, %0; bmsk.clamp.b32 %0, %1, 3; szext.wrap.s32 %0, %0, 9;" : "+r"(lo), "+r"(hi));
  asm("{ .reg .pred p; testp.subnormal.f32 p, %1; selp.f32 %0, %1, 0f00000000, p; }" : "=f"(y) : "f"(x));
  asm("sin.approx.f32 %0, %1; ex2.approx.ftz.f32 %0, %0; tanh.approx.f32 %0, %0; rcp.approx.ftz.f32 %0, %0; lg2.approx.f32 %0, %0;" : "=f"(y) : "f"(y));
  asm("set.gt.u32.f32 %0, %1, 0f00000000; set.le.and.f32.f32 %2, %1, %1, 1;" : "=r"(lo), "+f"(x), "=f"(y));
  out[threadIdx.x] = y + (float)d + (float)(lo ^ hi);
  unsigned t;
  asm volatile("mov.u32 %0, %%smid; " : "=r"(t));
  asm volatile("{ .reg .b64 g; mov.u64 g, %%globaltimer; st.global.u64 [%0], g; mov.u32 %1, %%laneid; }" ::"l"(wide), "r"(t));
  asm volatile("mov.u32 %0, %%nwarpid; mov.u32 %0, %%envreg3; mov.u32 %0, %%dynamic_smem_size; mov.u32 %0, WARP_SZ; pmevent 7;" : "=r"(t));
  wide[1] = t;
}

__global__ void hints(const int* in, int* out, const long2* in2) {
  int a, b;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.b32 %0, [%1];" : "=r"(a) : "l"(in));
  asm volatile("ld.volatile.global.b32 %0, [%1];" : "=r"(b) : "l"(in + 1));
  asm volatile("st.global.wt.b32 [%0], %1;" ::"l"(out), "r"(a) : "memory");
  asm volatile("prefetch.global.L2 [%0]; prefetchu.L1 [%0];" ::"l"(in));
  asm volatile("{ .reg .pred p; isspacep.global p, %0; @p st.b32 [%0], 1; }" ::"l"(out));
  asm volatile("ldu.global.b32 %0, [%1+-4];" : "=r"(b) : "l"(in + 2));
#if __CUDA_ARCH__ >= 800
  asm volatile("{ .reg .b64 pol; createpolicy.fractional.L2::evict_first.b64 pol, 1.0; ld.global.L2::cache_hint.b32 %0, [%1], pol; }" : "=r"(a) : "l"(in));
  asm volatile("discard.global.L2 [%0], 128; applypriority.global.L2::evict_normal [%0], 128;" ::"l"(out));
#endif
#if __CUDA_ARCH__ >= 1000
  long2 v[2];
  asm volatile("ld.global.v4.b64 {%0, %1, %2, %3}, [%4];" : "=l"(v[0].x), "=l"(v[0].y), "=l"(v[1].x), "=l"(v[1].y) : "l"(in2));
  out[9] = (int)(v[0].x + v[1].y);
#endif
  out[threadIdx.x] = a + b;
}
