// OpenCL C for clang's NVPTX back end.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef struct { float x; int tags[3]; } Particle;

__constant int lookup[8] = {1, 1, 2, 3, 5, 8, 13, 21};

int group(void) { return __nvvm_read_ptx_sreg_ctaid_x(); }
int item(void) { return __nvvm_read_ptx_sreg_tid_x(); }

__kernel void saxpy(__global const float* restrict x, __global float* restrict y, float a, int n) {
  int i = group() * 64 + item();
  if (i < n) y[i] = a * x[i] + y[i];
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void blocks(__global const float4* in, __global float4* out, __local float4* room) {
  int i = item();
  room[i] = in[group() * 64 + i];
  __syncthreads();
  out[group() * 64 + i] = room[63 - i].wzyx + (float4)(1, 2, 3, 4);
}

__kernel void particles(__global Particle* p, Particle bias, int n) {
  __private int history[16];
  for (int i = 0; i < 16; ++i) history[i] = lookup[i & 7] * n;
  Particle q = p[item()];
  q.x += bias.x;
  q.tags[n % 3] += history[n & 15];
  p[item()] = q;
}

__kernel void vectors(__global uchar16* c, __global short8* s, __global double2* d, __global ulong3* l) {
  c[item()] += c[item() + 1];
  s[item()] = s[item()] > (short8)(3) ? s[item()] : (short8)(5);
  d[item()] = d[item()] * d[item()].yx;
  l[item()].y ^= l[item()].z;
}

__kernel void escaped(__global uint* out, float x0, float y0, float step, uint most) {
  float cx = x0 + item() * step, cy = y0 + group() * step, x = 0, y = 0;
  uint n = 0;
  while (x * x + y * y < 4.0f && n < most) {
    float t = x * x - y * y + cx;
    y = 2 * x * y + cy;
    x = t;
    ++n;
  }
  out[group() * 64 + item()] = n;
}
