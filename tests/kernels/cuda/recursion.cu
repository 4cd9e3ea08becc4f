// Functions that call themselves at their end. nvcc makes loops of them, inlines them for some targets, and leaves the
// call where a structure is returned.
struct List {
  const int* next;
  int* visited;
  short limit;
};
struct Place {
  int at, depth;
};

#pragma ccc recursive chunk(1)
__device__ __noinline__ void walk(const int* next, int* visited, int at, int depth) {
  atomicAdd(visited + at, depth);
  if (depth < 20 && next[at] >= 0) walk(next, visited, next[at], depth + 1);
}

#pragma ccc recursive chunk(1)
__device__ __noinline__ int find(const int* next, int at, int depth) {
  if (depth > 20 || next[at] < 0) return depth * 3 + at;
  return find(next, next[at], depth + 1);
}

#pragma ccc recursive chunk(1)
__device__ __noinline__ Place last(List list, Place from) {
  if (from.depth < list.limit && list.next[from.at] >= 0) return last(list, Place{list.next[from.at], from.depth + 1});
  return from;
}

// A byte, a half and a double among the parameters, and two ways to go on.
#pragma ccc recursive chunk(1)
__device__ __noinline__ float blend(const int* next, int at, signed char sign, unsigned short half, double scale) {
  if (half > 300 || next[at] < 0) return sign * (float)scale + half;
  if (next[at] & 1) return blend(next, next[at], -sign, half + 17, scale * 0.5);
  return blend(next, next[at], sign + 3, half + 40, scale + at);
}

// Local memory of the function's own, beside a loop: each lane may keep it.
#pragma ccc recursive chunk(1)
__device__ __noinline__ int shuffled(const int* next, int at, int depth) {
  int own[4];
  for (int k = 0; k < 4; ++k) own[k] = (at >> k) & 3;
  int turn = own[at & 3];
  if (depth > 20 || next[at] < 0) return depth * 5 + turn;
  return shuffled(next, next[at], depth + 1 + turn);
}

#define FOR_EACH _Pragma("ccc for") for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x)
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(128) name(const int* __restrict__ next, int* out, int n)

KERNEL(walks) {
  FOR_EACH if (next[i] > 3) walk(next, out, next[i], 0);
}
KERNEL(finds) {
  FOR_EACH out[i] = find(next, i, 0);
}
KERNEL(lasts) {
  FOR_EACH {
    List list{next, out, short(n < 9 ? 3 : 15)};
    Place end = last(list, Place{i, 0});
    out[i] = end.at + 1000 * end.depth;
  }
}
KERNEL(blends) {
  FOR_EACH out[i] = __float_as_int(blend(next, i, 3, 1, 0.25));
}
KERNEL(shuffles) {
  FOR_EACH out[i] = shuffled(next, i, 0);
}

#pragma ccc grid
KERNEL(finds_by_block) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) out[i] = find(next, i, 1);
}
