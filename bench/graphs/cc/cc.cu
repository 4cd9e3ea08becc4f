// Connected components, in the forms that workload.py names. Edges join their ends whichever way they lead.
//
// Following labels from v leads toward the smallest vertex of its component, which is the final label of every vertex in it. Labels only
// decrease, so it is harmless that threads read and write them at the same time.
//
// `plain`, `ccc` and `cte` hook and compress (J. Soman, K. Kishore, P. J. Narayanan, A fast GPU algorithm for graph connectivity, 2010):
// what a round misses, the next one finds. `union` joins the trees of labels at their roots, so that it needs each edge only once
// (J. Jaiganesh, M. Burtscher, A high-performance connected components implementation for GPUs, 2018). `sampled` does so with two edges
// of each vertex, finds the component that most vertices are in, and looks at all edges only of the others (M. Sutton, T. Ben-Nun,
// A. Barak, Optimizing parallel graph connectivity computation via subgraph sampling, 2018).
#include <cte/frontier.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256, LARGE_BLOCK = 1024;

// The larger of two labels gets the smaller one as its own.
__device__ void hook(int ours, int theirs, int* labels, int* changed) {
  if (ours == theirs) return;
  atomicMin(labels + max(ours, theirs), min(ours, theirs));
  if (*changed == 0) *changed = 1;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
cc_hook_plain(int vertices, const int* __restrict__ offsets, const int* __restrict__ neighbors, int* labels, int* changed) {
#pragma ccc for
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < vertices; v += gridDim.x * blockDim.x) {
    int ours = labels[v];
    int first = offsets[v], last = offsets[v + 1];
#pragma ccc for variable
    for (int k = first; k < last; ++k) hook(ours, labels[neighbors[k]], labels, changed);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
cc_hook(int vertices, const int* offsets, const int* neighbors, int* labels, int* changed) {
  const auto join = [=](int u, int, int ours) { hook(ours, labels[u], labels, changed); };
  cte::advance_if<BLOCK, CTE_POLICY>(
      cte::graph{offsets, neighbors}, vertices, [](int) { return true; }, join, [=](int v) { return labels[v]; });
}

// Replaces each label by the root of its chain of labels.
extern "C" __global__ void __launch_bounds__(BLOCK) cc_compress(int vertices, int* labels) {
  const int v = blockIdx.x * BLOCK + threadIdx.x;
  if (v >= vertices) return;
  int label = labels[v];
  for (int next = labels[label]; next != label; next = labels[label]) label = next;
  labels[v] = label;
}

// The root of a tree: a vertex that is its own label. Each vertex on the way there gets the label of the next one.
__device__ int root_of(int v, int* labels) {
  int label = labels[v];
  for (int next = labels[label]; next != label; next = labels[label]) {
    labels[v] = next;
    v = label;
    label = next;
  }
  return label;
}

// Joins the trees of two vertices. Only the label of a root changes here: if it no longer is one, its new label is nearer to the root.
__device__ void join(int ours, int theirs, int* labels) {
  ours = root_of(ours, labels);
  theirs = root_of(theirs, labels);
  while (ours != theirs) {
    const int high = max(ours, theirs);
    ours = min(ours, theirs);
    theirs = atomicCAS(labels + high, high, ours);
    if (theirs == high) return;
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) cc_union(int vertices, const int* offsets, const int* neighbors, int* labels) {
  const auto visit = [=](int u, int, int ours) { join(ours, u, labels); };
  cte::advance_if<BLOCK, CTE_POLICY>(
      cte::graph{offsets, neighbors}, vertices, [](int) { return true; }, visit, [=](int v) { return root_of(v, labels); });
}

// Edge number `place` of each vertex that has more than `place` edges.
extern "C" __global__ void __launch_bounds__(BLOCK)
cc_union_one(int vertices, int place, const int* __restrict__ offsets, const int* __restrict__ neighbors, int* labels) {
  const int v = blockIdx.x * BLOCK + threadIdx.x;
  if (v >= vertices) return;
  const int edge = offsets[v] + place;
  if (edge < offsets[v + 1]) join(v, neighbors[edge], labels);
}

// The label that most of the threads of one block find where they look.
extern "C" __global__ void __launch_bounds__(LARGE_BLOCK)
cc_most_frequent(int vertices, const int* labels, int* most_frequent) {
  __shared__ int found[LARGE_BLOCK];
  __shared__ unsigned long long most;
  const int place = static_cast<int>(static_cast<long long>(vertices) * threadIdx.x / LARGE_BLOCK);
  if (threadIdx.x == 0) most = 0;
  const int label = found[threadIdx.x] = labels[place];
  __syncthreads();
  unsigned times = 0;
  for (const int other : found) times += other == label;
  atomicMax(&most, static_cast<unsigned long long>(times) << 32 | static_cast<unsigned>(label));
  __syncthreads();
  if (threadIdx.x == 0) *most_frequent = static_cast<int>(most);
}

// All edges of the vertices outside the most frequent component: an edge into it is found from its other end.
extern "C" __global__ void __launch_bounds__(BLOCK)
cc_union_others(int vertices, const int* offsets, const int* neighbors, const int* most_frequent, int* labels) {
  const int most = *most_frequent;
  const auto is_other = [=](int v) { return labels[v] != most; };
  const auto visit = [=](int u, int, int ours) { join(ours, u, labels); };
  cte::advance_if<BLOCK, CTE_POLICY>(
      cte::graph{offsets, neighbors}, vertices, is_other, visit, [=](int v) { return root_of(v, labels); });
}
