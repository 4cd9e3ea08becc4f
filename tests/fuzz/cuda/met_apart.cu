// Lanes leave the first loop apart, and the second one, in the in-lane form, ran apart at the same time: ptxas' code for votes of
// some lanes then waited for ever (docs/decisions/0030-lanes-meet-to-vote.md). Drawn by tests/fuzz, seed 5000055.
__device__ __forceinline__ unsigned hash32(unsigned x) {
  x ^= x >> 16; x *= 0x7feb352dU; x ^= x >> 15; x *= 0x846ca68bU; return x ^ x >> 16;
}
__device__ __noinline__ unsigned far(unsigned x, unsigned y) {
  unsigned r = y;
  for (unsigned q = 0; q < (x & 7u); q++) r = hash32(r) + q;
  return r;
}
__device__ __noinline__ unsigned who(unsigned x) { return hash32(x + threadIdx.x); }
extern "C" __global__ void met_apart(int n, int trips, unsigned items, const unsigned* a, const float* f, unsigned* __restrict__ out, unsigned* inner, unsigned* map, unsigned* __restrict__ mine, unsigned* __restrict__ count, unsigned* flag, unsigned* totals, unsigned long long* sums, float* fsums, double* __restrict__ dsums, unsigned* __restrict__ extremes, float* reals, unsigned* ring, unsigned long long* queue) {
  unsigned linear = threadIdx.x, size = blockDim.x;
  unsigned all = gridDim.x * size, me = blockIdx.x * size + linear;
#pragma ccc for block(64)
#pragma unroll 2
  for (int k = trips; k > 0; k--) {
    unsigned at = (me + (unsigned)(k - 1) * all) * 2u + 0u;
    unsigned first = a[at % items]; float real = f[at % items];
    signed char v1 = (signed char)((unsigned)k);
    atomicMin(&count[32u + ((((unsigned)k % (3u | 1u))) & 15u)], __float_as_uint((float)((unsigned)n & 0xffffu)));
    unsigned v4 = (hash32(min(37u, (unsigned)at)) + first) & 15u;
    unsigned v3 = (((unsigned)v1 > (unsigned)v1 ? (unsigned)v1 : (unsigned)v1 * 3u)) & 63u, v5 = v3 + v4;
#pragma ccc for variable independent hoist chunk(1)
    for (int v2 = (int)v4 - 1; v2 >= 0; --v2) {
      unsigned v7 = (unsigned)((a[((unsigned)k) % items] % (min((unsigned)v2, (unsigned)v1) | 1u)));
      unsigned long long v8 = ((unsigned long long)((((unsigned)v1 & 4u) ? (unsigned)v1 + 5u : gridDim.x)) * (~70u));
      unsigned v6 = 0u;
#pragma ccc while independent
      for (; ((v7 >> 5 & 3u) != 2u) && v6 < 3u; v7 = v7 * 1664525u + (v7 >> 7) + 12345u) {
        v6++;
        unsigned v11 = (hash32(hash32((unsigned)first)) + first) & 3u;
        unsigned v10 = ((unsigned)v8) & 63u, v12 = v10 + v11;
#pragma ccc for variable independent
        for (unsigned char v9 = 0; v9 != (unsigned char)v11; v9++) {
          atomicAdd(&count[at & 15u], (unsigned)at);
          int v13 = (int)(__popc(gridDim.x));
          atomicAdd(&count[at & 15u], (a[((unsigned)v8) % items] & min((unsigned)v2, 86u)));
        }
        v8 = ((unsigned long long)(hash32(25u)) * (((unsigned)n | (unsigned)v6)));
      }
      inner[(at * 2u + 0u) * 16u + ((unsigned)v2)] = (unsigned)v7;
#pragma ccc if independent
      if ((hash32((((unsigned)first & 4u) ? (unsigned)first + 5u : gridDim.x) ^ first) & 15u) < 5u) {
        inner[(at * 2u + 1u) * 16u + ((unsigned)v2)] = far(47u, 5u);
        atomicAdd(&count[at & 15u], (((unsigned)v1 - (unsigned)k) + min((unsigned)k, 29u)));
        atomicAdd(&count[at & 15u], a[(__float_as_uint((float)real)) % items]);
      }
      atomicAnd(&count[64u + ((a[((unsigned)at) % items]) & 15u)], ((unsigned)k << ((unsigned)v1 & 31u)));
    }
    short v14 = (short)(who((22u << ((unsigned)v1 & 31u))));
    unsigned v15 = (46u / (10u | 1u));
#pragma unroll 2
    for (unsigned v16 = 0u; v16 < ((a[(22u) % items]) & 1u); v16++) {
      v15 = __float_as_uint(fminf((float)real, (float)((unsigned)v15 & 0xffffu)));
    }
    if (((unsigned)at + first) % 37u == 3u) continue;
  }
#pragma ccc for block(64)
  for (int k = trips; k > 0; k--) {
    unsigned at = (me + (unsigned)(k - 1) * all) * 2u + 0u;
    unsigned first = a[at % items]; float real = f[at % items];
    atomicMax(&count[16u + (((29u - (unsigned)n)) & 15u)], (64u & (unsigned)first));
    unsigned char v17 = (unsigned char)((min((unsigned)at, (unsigned)n) & (63u + 67u)));
#pragma ccc if independent
    if ((hash32(a[((unsigned)v17) % items] ^ first) & 15u) < 5u) {
      double v18 = (double)((float)real);
      out[at * 12u + 4u] = (hash32(2u) | (unsigned)v17);
      float v19 = (float)((float)v18);
      out[at * 12u + 5u] = a[(a[((unsigned)n) % items]) % items];
    } else
#pragma ccc if independent
    if ((hash32(((unsigned)k ^ (unsigned)v17) ^ first) & 15u) < 5u && (min((unsigned)k, (unsigned)k)) > (((unsigned)first / ((unsigned)n | 1u)))) {
      unsigned v22 = (hash32(a[((unsigned)k) % items]) + first) & 15u;
      unsigned v21 = (__float_as_uint((float)real)) & 63u, v23 = v21 + v22;
#pragma ccc for variable independent chunk(9)
      for (unsigned long long v20 = v21; v20 < v23; ++v20) {
        unsigned long long v24 = ((unsigned long long)(((unsigned)v20 | 7u)) * ((unsigned)v17));
        atomicAdd(&count[at & 15u], (unsigned)first);
      }
      out[at * 12u + 6u] = (((unsigned)at & (unsigned)first) / ((((unsigned)first & 4u) ? (unsigned)first + 5u : (threadIdx.x & 31)) | 1u));
    } else
#pragma ccc if independent
    if ((hash32(((threadIdx.x & 31) > (unsigned)at ? (threadIdx.x & 31) : (unsigned)at * 3u) ^ first) & 15u) < 5u) {
      out[at * 12u + 7u] = 76u;
      unsigned short v25 = (unsigned short)((__float_as_uint((float)((threadIdx.x & 31) & 0xffffu)) / ((gridDim.x >> 3) | 1u)));
    } else
#pragma ccc if independent
    if ((hash32(((unsigned)v17 + (unsigned)k) ^ first) & 15u) < 5u) {
      unsigned v26 = (unsigned)((far((unsigned)v17, 5u) << ((((unsigned)at & 4u) ? (unsigned)at + 5u : (unsigned)first) & 31u)));
      switch ((((unsigned)n >> 3)) & 7u) {
        case 0: {
          v26 = ((unsigned)n - (unsigned)v17);
        break; }
        case 1: {
          v26 = ((unsigned)first ^ 23u);
        break; }
        case 2: {
          v26 = (unsigned)(((unsigned)n % (((unsigned)k & threadIdx.x) | 1u)));
          v26 = __float_as_uint((float)(6u & 0xffffu));
        }
        default: break;
      }
      atomicSub(&count[0u + ((((unsigned)n ^ (unsigned)first)) & 15u)], ((unsigned)first * (unsigned)at));
    }
#pragma ccc else independent
    else {
      out[at * 12u + 8u] = (((unsigned)first + 48u) * 2654435761u);
      out[at * 12u + 9u] = a[(((unsigned)first << ((unsigned)v17 & 31u))) % items];
#pragma ccc if independent
      {
        unsigned v27 = 61u;
        for (unsigned v28 = 0u; v28 < (((((unsigned)v17 & 4u) ? (unsigned)v17 + 5u : (unsigned)first)) & 1u); v28++) {
          v27 = __float_as_uint((float)real);
        }
        v27 = (unsigned)((((unsigned)first ^ 57u) << (((unsigned)n * 2654435761u) & 31u)));
        atomicSub(&count[0u + ((__clz((unsigned)v27)) & 15u)], (unsigned)n);
        ((unsigned char*)&out[at * 12u + 10u])[3] = (unsigned char)(__float_as_uint(((float)((unsigned)v27 & 0xffffu) > (float)((unsigned)k & 0xffffu) ? (float)((unsigned)v27 & 0xffffu) : (float)((unsigned)k & 0xffffu))));
      }
      out[at * 12u + 11u] = a[((((unsigned)first & 4u) ? (unsigned)first + 5u : (unsigned)n)) % items];
    }
    int v29 = (int)((unsigned)at);
    if ((((unsigned)v17 - (unsigned)k) + first) % 5u == 3u) break;
  }
}
