// Switches, jump tables, loops, early returns, printf, assertions, traps, recursion, function pointers, virtual calls.
#include <cassert>
#include <cstdio>

struct Shape {
    __device__ virtual float area(float x) const { return x; }
    __device__ virtual ~Shape() {}
};
struct Circle : Shape {
    __device__ float area(float x) const override { return 3.14159f * x * x; }
};
struct Square : Shape {
    __device__ float area(float x) const override { return x * x; }
};

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__device__ int twice(int x) { return 2 * x; }
__device__ int thrice(int x) { return 3 * x; }
typedef int (*Unary)(int);
__device__ Unary unary[2] = {twice, thrice};

struct Big {
    int v[9];
    double d;
};
__device__ __noinline__ Big make(Big b, int n) {
    b.v[n & 7] += n;
    b.d *= 2;
    return b;
}

__global__ void switches(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = in[i];
    switch (x) {
        case 0: out[i] = x * 7; break;
        case 1: out[i] = in[x + 4] ^ 3; break;
        case 2: out[i] = out[i + 1] - 5;
        case 3: out[i] += 9; break;
        case 4: out[i] = __popc(x + i); break;
        case 5: out[i] = __clz(i); break;
        case 6: out[i] = in[i + 17] / (i + 1); break;
        case 7: out[i] = in[i + 9] % (i + 3); break;
        case 8: out[i] = fibonacci(x + i); break;
        case 9: printf("%d of %d %f\n", i, n, (double)x); break;
        default: out[i] = unary[x & 1](i);
    }
}

__global__ void calls(float *out, int kind, Big b) {
    Circle circle;
    Square square;
    Shape *shape = kind & 1 ? (Shape *)&circle : (Shape *)&square;
    out[threadIdx.x] = shape->area(out[threadIdx.x]);
    Big c = make(b, threadIdx.x);
    out[threadIdx.x + 32] = c.v[threadIdx.x & 7] + c.d;
    assert(c.d > 0);
    if (c.d == 42) __trap();
    int *heap = (int *)malloc(16);
    heap[threadIdx.x & 3] = kind;
    out[0] += heap[1];
    free(heap);
}
