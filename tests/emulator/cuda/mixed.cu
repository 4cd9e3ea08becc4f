// What compilers make of ordinary CUDA C++: run by the emulator from several builds.
struct Item { int key; short weight; unsigned char flags; double value; };

__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

__device__ __noinline__ unsigned long long mix(unsigned long long x) {
  x ^= x >> 33; x *= 0xff51afd7ed558ccdULL; x ^= x >> 29;
  return (x << 17) | (x >> 47);
}

extern "C" __global__ void integers(int n, const int* a, long long* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = a[i], w = a[(i + 1) % n];
  int scratch[8];
  for (int k = 0; k < 8; ++k) scratch[k] = v * (k + 1) ^ w >> k;
  long long sum = scratch[(v & 7)] + (long long)scratch[w & 7] * 3;
  sum += w != 0 ? v / w + v % w : -1;
  sum += (unsigned)v / 7u + __popc(v) + __clz(w) + __ffs(v) + __brev((unsigned)v) % 1000;
  sum += (long long)((unsigned long long)mix(v) % 1000003ULL) + __mulhi(v, w) + (long long)__umul64hi(mix(w), mix(v)) % 97;
  sum += min(v, w) * 5 - max(v, w) + abs(w) + (v > w ? v << 3 : w >> 2);
  switch (v & 7) { case 0: sum += 11; break; case 1: sum -= 5; case 2: sum *= 3; break; case 5: sum ^= 0xff; break; default: sum += w; }
  sum += ackermann(v & 1, w & 3);
  out[i] = sum;
}

extern "C" __global__ void floats(int n, const float* x, const double* y, float* out, double* wide) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = x[i];
  double b = y[i];
  float f = sinf(a) + cosf(a * 3.0f) + expf(a * 0.1f) + logf(fabsf(a) + 1.0f) + sqrtf(fabsf(a)) + powf(fabsf(a) + 0.5f, 1.3f);
  f += floorf(a) + rintf(a * 2.5f) + fmodf(a, 0.7f) + tanhf(a) + atan2f(a, 2.0f) + (float)(int)a + a / 3.0f;
  double d = sin(b) + exp(b * 0.1) + log(fabs(b) + 1.0) + sqrt(fabs(b)) + pow(fabs(b) + 0.5, 1.3) + b / 3.0 + fma(b, b, -1.0);
  d += floor(b) + (double)(long long)(b * 1e6) + cbrt(b) + erf(b);
  out[i] = f;
  wide[i] = d;
}

extern "C" __global__ void block_sums(int n, const int* a, int* sums, int* histogram, Item* items) {
  extern __shared__ int cells[];
  __shared__ int parts[32];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  int v = i < n ? a[i] & 1023 : 0;
  for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
  if ((t & 31) == 0) parts[t >> 5] = v;
  cells[t] = i < n ? a[i] & 15 : 0;
  __syncthreads();
  if (t == 0) { int total = 0; for (int w = 0; w < (blockDim.x + 31) / 32; ++w) total += parts[w]; sums[blockIdx.x] = total; }
  if (i < n) {
    atomicAdd(&histogram[cells[blockDim.x - 1 - t]], 1);
    Item item = items[i];
    item.key += cells[t ^ 1]; item.weight = (short)(item.weight * 3); item.flags ^= 0x5a; item.value *= 1.5;
    items[i] = item;
    unsigned same = __match_any_sync(__activemask(), cells[t]);
    atomicMax(&histogram[16], __popc(same & __ballot_sync(__activemask(), cells[t] > 7)));
  }
}
