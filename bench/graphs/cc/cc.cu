// Connected components by hooking and compressing (J. Soman, K. Kishore, P. J. Narayanan, A fast GPU algorithm for graph
// connectivity, 2010), in the forms that workload.py names. Edges join their ends whichever way they lead.
//
// Following labels from v leads toward the smallest vertex of its component, which is the final label of every vertex in it. Labels only
// decrease, so it is harmless that threads read and write them at the same time: what a round misses, the next one finds.
#include <cte/frontier.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256;

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
