// Meant for relocatable code: names from elsewhere, names for elsewhere.
extern __device__ int elsewhere(int, const float*);
extern __device__ float shared_table[16];
extern __constant__ int limits[4];
__device__ float own_table[8] = {0, 1, 2, 3, 4, 5, 6, 7};
__device__ int for_others(int x, double y) { return x + (int)y; }
static __device__ __noinline__ int private_one(int x) { return x * 3; }
__device__ __attribute__((weak)) float overridable(float x) { return x; }
template <typename T> __device__ __noinline__ T generic(T x) { return x + T(1); }
struct Node {
  Node* next;
  int (*visit)(const Node*, int);
};
__device__ int visited(const Node* n, int depth) { return n->next ? n->visit(n->next, depth + 1) : depth; }
__device__ Node tail = {nullptr, visited}, head = {&tail, visited};

__global__ void kernel(float* out, int n) {
  out[threadIdx.x] = elsewhere(n, shared_table) + own_table[n & 7] + for_others(n, 2.0) + private_one(limits[n & 3]);
  out[threadIdx.x + 32] = overridable(generic(2.5f)) + generic(n) + head.visit(&head, 0);
}
