// What sssp.cu and its peer share: the second kernel of a round.
#pragma once

constexpr int UNREACHED = 0x7fffffff;

// Who got a lower cost in this round is to tell its neighbours in the next.
extern "C" __global__ void __launch_bounds__(256)
sssp_update(int vertices, int* __restrict__ mask, int* __restrict__ costs, const int* __restrict__ updating, int* changed) {
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < vertices; v += gridDim.x * blockDim.x) {
    const bool lower = updating[v] < costs[v];
    mask[v] = lower;
    if (lower) {
      costs[v] = updating[v];
      *changed = 1;
    }
  }
}
