// CUDA without CUDA's headers, for clang's own NVPTX back end (`-nocudainc -nocudalib`).
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define tid() __nvvm_read_ptx_sreg_tid_x()
#define bid() __nvvm_read_ptx_sreg_ctaid_x()
#define ntid() __nvvm_read_ptx_sreg_ntid_x()
#define barrier() __syncthreads()
typedef float float4 __attribute__((ext_vector_type(4)));
typedef int int2v __attribute__((ext_vector_type(2)));

__constant__ float weights[16] = {1, 2, 3, 4.5f};
__device__ int total = 5;
__device__ const char text[] = "clang\n";
__device__ long long cells[2][3] = {{1, 2, 3}, {4, 5, 6}};
__device__ int* where = &total;

__global__ void __launch_bounds__(128) scale(float* out, const float* in, float by, int n) {
  for (int i = bid() * ntid() + tid(); i < n; i += ntid() * 64) out[i] = in[i] * by + weights[i & 15];
}

__global__ void reduce(const float* in, float* out) {
  __shared__ float room[128];
  int t = tid();
  room[t] = in[bid() * 128 + t];
  barrier();
  for (int step = 64; step > 0; step >>= 1) {
    if (t < step) room[t] += room[t + step];
    barrier();
  }
  if (t == 0) out[bid()] = room[0];
}

__global__ void interpreter(const int* code, int* data, int n) {
  int acc = tid();
  for (int pc = 0; pc < n; pc++) switch (code[pc]) {
      case 0: acc += data[pc]; break;
      case 1: acc *= 3; break;
      case 2: acc ^= data[acc & 7]; break;
      case 3: data[acc & 7] = acc; break;
      case 4: if (acc < 0) return; break;
      case 5: acc = -acc; break;
      case 6: pc = acc & 3; break;
      case 7: acc = acc / (n + 1) + acc % (n + 2); break;
      default: acc--;
    }
  data[tid()] = acc;
}

struct Item { char tag; double value; short rest[5]; };
struct Bits { unsigned a : 5; int b : 12; unsigned long long c : 40; };

__device__ __attribute__((noinline)) Item change(Item i, float by) {
  i.value *= by;
  i.rest[1] += i.tag;
  return i;
}
__device__ __attribute__((noinline)) int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __attribute__((noinline)) bool both(bool a, char b, unsigned short c) { return a && b > c; }
__device__ __attribute__((weak)) int replaceable(int x) { return x - 1; }

__global__ void calls(Item* items, int n, Bits* bits) {
  int t = tid();
  items[t] = change(items[t + 1], 2.0f);
  items[t].rest[0] = fibonacci(n) + both(n > 3, items[t].tag, n) + replaceable(n) + text[n & 3] + *where;
  bits[t].b += bits[t].a;
  bits[t].c ^= n;
}

typedef int (*Handler)(int);
__device__ int one(int x) { return x + 1; }
__device__ int two(int x) { return x * x; }
__device__ Handler handlers[2] = {one, two};
__global__ void indirect(int* data, int which) { data[tid()] = handlers[which & 1](data[tid()]); }

struct Base {
  __device__ virtual int id(int) const { return 1; }
};
struct Derived : Base {
  int k;
  __device__ int id(int x) const override { return k + x; }
};
__global__ void objects(Base** b, int* out) { out[tid()] = b[tid()]->id(3); }

__global__ void mixed(long long* l, double* d, unsigned char* c, short* s, float4* v, int2v* w, __int128* big) {
  int t = tid();
  l[t] = l[t] * 7 / 3 + cells[t & 1][t % 3] + __builtin_popcountll(l[t]) + __builtin_clz(t | 1) + __builtin_ctz(t | 2);
  d[t] = __builtin_sqrt(d[t]) + __builtin_fma(d[t], 2.0, 1.0) + (double)l[t] + __builtin_fabs(d[t]);
  c[t] = (unsigned char)(c[t] * 3 + (s[t] >> 2));
  s[t] = (short)d[t];
  v[t] = v[t] * 2.0f + v[t + 1];
  w[t] = w[t] << 1;
  big[t] = big[t] * big[t + 1] + (big[t] >> 5);
}

__global__ void atomics(int* i, float* f, unsigned* u, unsigned long long* l) {
  int r = __atomic_fetch_add(i, 1, __ATOMIC_RELAXED) + __atomic_fetch_and(i, 3, __ATOMIC_RELAXED);
  r += __nvvm_atom_max_gen_i(i, 4) + __nvvm_atom_inc_gen_ui(u, 9) + (int)__nvvm_atom_add_gen_f(f, 2.0f);
  r += (int)__nvvm_atom_cas_gen_ll((long long*)l, 1, 2) + __nvvm_atom_xchg_gen_i(i, 5);
  __nvvm_membar_gl();
  i[tid()] = r + __nvvm_shfl_sync_bfly_i32(~0u, r, 1, 31) + __nvvm_vote_ballot_sync(~0u, r > 3);
}

__global__ void assembly(int* p, int n) {
  int r;
  asm("{ .reg .pred q; setp.lt.s32 q, %1, 3; selp.b32 %0, %1, 7, q; }" : "=r"(r) : "r"(n));
  asm volatile("bar.sync 1, 64;" ::: "memory");
  asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(p), "r"(r) : "memory");
  int* room = (int*)__builtin_alloca(64);
  for (int i = 0; i < 16; i++) room[(i * n) & 15] = i;
  p[1] = room[n & 15];
}
