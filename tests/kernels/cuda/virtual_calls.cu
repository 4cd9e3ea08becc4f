// Calls of virtual functions and through tables of functions, whose targets are in this file.
#include <new>

struct Shape {
    __device__ virtual unsigned area(unsigned x) const = 0;
    __device__ virtual int steps(unsigned x) const { return x % 5; }
};
struct Disk : Shape {
    unsigned r;
    __device__ explicit Disk(unsigned r) : r(r) {}
    __device__ unsigned area(unsigned x) const override {
        unsigned s = r;
        for (unsigned k = 0; k < x % 7; k++) s = s * 3 + (x >> k);
        return s;
    }
};
struct Box : Shape {
    unsigned a, b;
    __device__ Box(unsigned a, unsigned b) : a(a), b(b) {}
    __device__ unsigned area(unsigned x) const override { return a * b ^ x; }
    __device__ int steps(unsigned x) const override { return x % 9; }
};
struct Pair : Shape {  // calls virtual functions itself
    const Shape *first, *second;
    __device__ Pair(const Shape* first, const Shape* second) : first(first), second(second) {}
    __device__ unsigned area(unsigned x) const override { return first->area(x) + 2 * second->area(x + 1); }
};

#define SHAPES                                                                                  \
    __shared__ __align__(8) unsigned char room[12 * 24];                                        \
    __shared__ const Shape* shapes[12];                                                         \
    if (threadIdx.x < 12) {                                                                     \
        unsigned t = threadIdx.x;                                                               \
        if (t % 3 == 0) shapes[t] = new (room + t * 24) Disk(t);                                \
        else if (t % 3 == 1) shapes[t] = new (room + t * 24) Box(t, t + 3);                     \
        else shapes[t] = new (room + t * 24) Pair((Shape*)(room + t * 24 - 48), (Shape*)(room + t * 24 - 24)); \
    }                                                                                           \
    __syncthreads();
#define TASKS for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)

extern "C" __global__ void of_a_path(int n, const unsigned* a, unsigned* out) {
    SHAPES
#pragma ccc for block(64)
    TASKS {
        unsigned x = a[i];
#pragma ccc if
        if (x % 3 == 1) out[i] = shapes[(x >> 8) % 12]->area(x);
    }
}

extern "C" __global__ void of_a_loop(int n, const unsigned* __restrict__ a, unsigned* __restrict__ out) {
    SHAPES
#pragma ccc for block(64)
    TASKS {
        unsigned x = a[i], s = 0;
        const Shape* shape = shapes[(x >> 8) % 12];
        int steps = shape->steps(x);
#pragma ccc while independent
        for (int k = 0; k < steps; k++) s = s * 7 + shape->area(x + s);
        out[i] = s;
    }
}

typedef unsigned (*Function)(unsigned);
__device__ unsigned twice(unsigned x) { return x * 2; }
__device__ unsigned spin(unsigned x) {
    while (x & 12) x = x * 5 + 1;
    return x;
}
__device__ Function table[2] = {twice, spin};

extern "C" __global__ void of_a_table(int n, const unsigned* a, unsigned* out) {
#pragma ccc for block(64)
    TASKS {
        unsigned x = a[i];
#pragma ccc if
        if (x & 2) {
            for (unsigned k = 0; k < (x >> 3 & 7); k++) x = table[x >> 5 & 1](x) + k;
            out[i] = x;
        }
    }
}

#pragma ccc grid block(64)
extern "C" __global__ void of_a_grid(int n, const unsigned* a, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i];
#pragma ccc if
    if (x & 2) {
        for (unsigned k = 0; k < (x >> 3 & 7); k++) x = table[x >> 5 & 1](x) + k;
        out[i] = x;
    }
}

// Targets for which the calls have to be refused.

typedef int (*Action)(int, int*);
__device__ int index_of(int x, int* p) { return *p + x + threadIdx.x; }
__device__ int half_of(int x, int* p) { return *p + x / 2; }
__device__ Action actions[2] = {index_of, half_of};

extern "C" __global__ void that_reads_its_thread(int n, int* a, int* out) {
#pragma ccc for block(64)
    TASKS {
#pragma ccc if
        if (a[i] & 1) out[i] = actions[a[i] >> 1 & 1](i, a);
    }
}

typedef long long (*Meeting)(long long);
__device__ long long meet(long long x) {
    __syncthreads();
    return x;
}
__device__ long long pass(long long x) { return x + 1; }
__device__ Meeting meetings[2] = {meet, pass};

extern "C" __global__ void that_may_meet(int n, const int* a, long long* out) {
#pragma ccc for block(64)
    TASKS {
#pragma ccc if
        if (a[i] & 1) out[i] = meetings[a[i] >> 1 & 1](i);
    }
}
