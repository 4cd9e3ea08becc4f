// Every state space, vectors, atomics, volatile and ordered accesses, local arrays, initialised globals, alignment.
#include <cuda/atomic>
#include <cuda_fp16.h>

__device__ int counter = 7;
__device__ const char text[] = "a string with a \"quote\" and a \\ backslash";
__device__ float table[2][3] = {{1.0f, 2.0f, 3.0f}, {4.5f, -5.0f, 6.0f}};
__device__ int *pointer = &counter;
__device__ double doubles[3] = {1.0, 0.1, -2e300};
__managed__ int managed;
__constant__ int constants[16] = {1, 2, 3};
struct __align__(16) Pair16 {
    float x, y, z, w;
};
__device__ Pair16 aligned;
struct Mixed {
    char c;
    short s;
    int *p;
    long long l;
};
__device__ Mixed mixed = {1, -2, &counter, 1LL << 40};
extern __shared__ float dynamic[];

__global__ __launch_bounds__(256, 2) void spaces(float4 *v, int *i, double *d, unsigned long long *l,
                                                 const float *__restrict__ r, Mixed by_value) {
    __shared__ int fixed[256];
    __shared__ __align__(16) double wide[4];
    int t = threadIdx.x;
    fixed[t] = i[t];
    dynamic[t] = r[t];
    wide[t & 3] = d[t];
    __syncthreads();
    int scratch[10];
    for (int k = 0; k < 10; k++) scratch[k] = fixed[(t + k) & 255];
    float4 a = v[t];
    a.x += dynamic[255 - t] + table[t & 1][i[0] % 3] + constants[t & 15];
    v[t + 1] = a;
    i[t] = scratch[i[t] % 10] + text[t & 31] + by_value.s;
    mixed.l += by_value.l;
    atomicAdd(&i[3], t);
    atomicAdd(&fixed[1], t);
    atomicAdd(d, 1.5);
    atomicAdd((float *)v, 1.5f);
    atomicCAS(l, 3ull, 4ull);
    atomicExch(&i[4], t);
    i[5] = atomicMax(&i[6], t);
    atomicAnd(&counter, t);
    atomicInc((unsigned *)&managed, 17);
    atomicAdd_block(&i[8], 1);
    atomicAdd_system(&i[9], 1);
    ((volatile int *)i)[t + 512] = ((volatile int *)i)[t];
    cuda::atomic_ref<int, cuda::thread_scope_device> ref(i[10]);
    ref.store(ref.load(cuda::memory_order_acquire) + 1, cuda::memory_order_release);
    ref.fetch_add(2, cuda::memory_order_acq_rel);
    __threadfence();
    __threadfence_block();
    *pointer = aligned.x;
    d[t] = wide[t & 1] + __ldcg(&d[t + 4]) + __ldg(&d[t + 5]) + __ldcs(&d[2]) + doubles[t & 1];
    __stcs(&i[7], 4);
    ((short *)i)[7] = ((unsigned char *)i)[3];
    l[9] = (unsigned long long)&fixed[t] + __isShared(i);
    i[t + 3] = ((int2 *)i)[t].x;
    ((short4 *)v)[t] = make_short4(1, t, 3, 4);
}
