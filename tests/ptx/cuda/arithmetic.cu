// Integer, single, double, half and 128-bit arithmetic, conversions, intrinsics, math functions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void integers(int *a, unsigned *u, long long *l, unsigned long long *ul, short *s, char *c) {
    int i = threadIdx.x;
    a[0] = a[i] * a[i + 1] + a[i + 2];
    a[1] = a[i] / a[i + 1] - a[i] % a[i + 2];
    a[2] = __mulhi(a[i], a[3]) + __mul24(a[i], a[4]) + __umul24(u[0], u[1]) + __sad(a[1], a[2], u[3]);
    a[3] = __brev(a[i]) ^ __popc(a[4]) ^ __clz(a[5]) ^ __ffs(a[6]) ^ __byte_perm(a[1], a[2], a[3]);
    a[4] = __funnelshift_l(a[i], a[3], a[5]) + __funnelshift_rc(a[i], a[3], a[5]);
    a[5] = (a[i] >> a[6]) + (u[i] >> a[6]) + (a[i] << a[7]) + ~a[7] - abs(a[8]);
    a[6] = min(a[i], a[7]) + max(u[i], u[2]) + (a[1] > 3 ? a[2] : a[3]) + (a[5] & 0xff00) | a[6] ^ 7;
    a[7] = (a[i] & u[i]) ^ (a[3] | u[5]);
    a[8] = __dp4a(a[i], a[3], a[5]) + __vabsdiffs4(a[1], a[2]) + __vadd2(a[1], a[2]) + __vcmpgtu4(a[3], a[4]);
    l[0] = l[i] * l[1] + (long long)a[i] * a[1] + l[2] / l[3] + l[4] % l[5] + (l[3] >> a[3]);
    ul[0] = __umul64hi(ul[i], ul[1]) + __popcll(ul[3]) + __clzll(l[1]) + __brevll(ul[2]) + min(ul[4], ul[5]);
    __int128 q = (__int128)l[i] * l[6] + l[7];
    l[8] = (long long)(q >> 64);
    l[9] = (long long)(q / (l[3] | 1));
    s[i] = s[i + 1] * s[i + 2] + c[i];
    c[i] = (char)(a[i] + s[i]);
    a[9] = (a[i] >> 5) & 31;
    a[10] = (u[i] >> 3) & 127;
}

__global__ void reals(float *f, double *d, __half *h, __nv_bfloat16 *b, int *i, __half2 *h2) {
    int t = threadIdx.x;
    f[0] = f[t] / f[1] + sqrtf(f[2]) + rsqrtf(f[3]) + __fdividef(f[4], f[5]) + __frcp_rn(f[1]);
    f[1] = sinf(f[t]) + cosf(f[1]) + tanf(f[2]) + expf(f[3]) + logf(f[4]) + powf(f[5], f[6]) + erfinvf(f[7]);
    f[2] = __sinf(f[t]) + __cosf(f[1]) + __expf(f[2]) + __logf(f[3]) + exp2f(f[4]) + log2f(f[5]) + tanhf(f[6]);
    f[3] = fmaf(f[t], f[1], f[2]) + __fmaf_rz(f[1], f[2], f[3]) + fabsf(f[4]) - fminf(f[5], f[6]) + floorf(f[7]);
    f[4] = isnan(f[t]) ? copysignf(f[1], f[2]) : isinf(f[3]) ? truncf(f[4]) : nearbyintf(f[5]) + fmodf(f[1], f[3]);
    d[0] = d[t] / d[1] + sqrt(d[2]) + sin(d[3]) + exp(d[4]) + fma(d[5], d[6], d[7]) + pow(d[8], d[9]);
    d[1] = __double2int_rn(d[t]) + __hiloint2double(i[1], i[2]) + __double2hiint(d[3]) + (float)d[4] + rint(d[5]);
    i[0] = (int)f[t] + (unsigned)f[1] + __float_as_int(f[2]) + __float2int_ru(f[3]) + (long long)f[4] + (int)d[t];
    f[5] = (float)i[t] + (float)(unsigned)i[1] + __int_as_float(i[2]) + (float)(long long)d[3] + __saturatef(f[7]);
    h[0] = h[t] * h[1] + __float2half(f[t]) + hsqrt(h[2]) + __int2half_rn(i[3]) + __hmax(h[4], h[5]);
    h2[0] = __hfma2(h2[t], h2[1], __hadd2(h2[2], h2[3]));
    b[0] = b[t] * b[1] + __float2bfloat16(f[t]);
    f[6] = __half2float(h[t]) + __bfloat162float(b[t]) + (h[1] < h[2]) + __low2float(h2[4]);
    f[7] = (f[t] < f[1] || f[2] >= f[3] && !(f[4] == f[5])) ? 1.0f : -0.0f;
}
