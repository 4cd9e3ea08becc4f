// Betweenness of all vertices for the shortest paths from one (U. Brandes, A faster algorithm for betweenness centrality, 2001), one
// launch for each level: forward to count the paths, backward to sum the dependencies. The forms are those that workload.py names.
//
// paths[v] is the number of shortest paths to v; parallel edges count separately. In the backward pass, the values of the next level
// are final when a level reads them, and levels do not change any more.
#include <cte/frontier.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256;
using Size = unsigned long long;

// Every vertex tests itself.
extern "C" __global__ void __launch_bounds__(BLOCK)
bc_forward_plain(int vertices, int depth, const int* __restrict__ offsets, const int* __restrict__ neighbors, int* levels,
                 double* paths, int* changed) {
#pragma ccc for
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < vertices; v += gridDim.x * blockDim.x) {
#pragma ccc if
    if (levels[v] == depth) {
      double ours = paths[v];
      int first = offsets[v], last = offsets[v + 1];
#pragma ccc for variable
      for (int k = first; k < last; ++k) {
        int u = neighbors[k], level = levels[u];
        if (level < 0) {
          levels[u] = level = depth + 1;
          if (*changed == 0) *changed = 1;
        }
        if (level == depth + 1) atomicAdd(paths + u, ours);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
bc_backward_plain(int vertices, int depth, const int* __restrict__ offsets, const int* __restrict__ neighbors,
                  const int* __restrict__ levels, const double* __restrict__ paths, double* dependencies) {
#pragma ccc for
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < vertices; v += gridDim.x * blockDim.x) {
#pragma ccc if
    if (levels[v] == depth) {
      double ours = paths[v], sum = 0;
      int first = offsets[v], last = offsets[v + 1];
#pragma ccc for variable
      for (int k = first; k < last; ++k) {
        int u = neighbors[k];
        if (levels[u] == depth + 1) sum += ours / paths[u] * (1 + dependencies[u]);
      }
      dependencies[v] = sum;
    }
  }
}

// The same test, and the edges of a warp's vertices shared by its lanes.
extern "C" __global__ void __launch_bounds__(BLOCK)
bc_forward_status(int vertices, int depth, const int* offsets, const int* neighbors, int* levels, double* paths, int* changed) {
  const auto is_new = [=](int v) { return levels[v] == depth; };
  const auto count = [=](int u, int, double ours) {
    int level = levels[u];
    if (level < 0) {
      levels[u] = level = depth + 1;
      if (*changed == 0) *changed = 1;
    }
    if (level == depth + 1) atomicAdd(paths + u, ours);
  };
  cte::advance_if<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, vertices, is_new, count, [=](int v) { return paths[v]; });
}

// The test reads a bit in place of a word. `spent` is the mask of the previous level, which is not read any more: it is cleared for
// the level after next.
extern "C" __global__ void __launch_bounds__(BLOCK)
bc_forward_mask(int vertices, int depth, const int* offsets, const int* neighbors, int* levels, double* paths, unsigned* now,
                unsigned* next, unsigned* spent, int* changed) {
  const cte::bitmap active{now}, reached{next};
  const auto is_new = [=](int v) {
    if (v % 32 == 0) spent[v / 32] = 0;
    return active.test(v);
  };
  const auto count = [=](int u, int, double ours) {
    int level = levels[u];
    if (level < 0) {
      levels[u] = level = depth + 1;
      if (reached.set(u) && *changed == 0) *changed = 1;
    }
    if (level == depth + 1) atomicAdd(paths + u, ours);
  };
  cte::advance_if<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, vertices, is_new, count, [=](int v) { return paths[v]; });
}

__device__ auto depends(int depth, const int* levels, const double* paths, double* dependencies) {
  return [=](int u, int, int v) {
    if (levels[u] == depth + 1) atomicAdd(dependencies + v, paths[v] / paths[u] * (1 + dependencies[u]));
  };
}

extern "C" __global__ void __launch_bounds__(BLOCK)
bc_backward_status(int vertices, int depth, const int* offsets, const int* neighbors, const int* levels, const double* paths,
                   double* dependencies) {
  const auto is_here = [=](int v) { return levels[v] == depth; };
  cte::advance_if<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, vertices, is_here, depends(depth, levels, paths, dependencies),
                                     cte::itself{});
}

// One queue holds all levels in order: a level's vertices are `now_size` from `begin` on, and those of the next level follow.
extern "C" __global__ void __launch_bounds__(BLOCK)
bc_forward_queue(int depth, const int* offsets, const int* neighbors, int* levels, double* paths, int* order, Size begin,
                 Size* now_size, Size* next_size, Size vertices) {
  const Size end = begin + *now_size;
  const cte::queue<int> now{order + begin, now_size, vertices - begin}, next{order + end, next_size, vertices - end};
  const auto count = [=](int u, int, double ours) {
    int level = levels[u];
    if (level < 0) level = atomicCAS(levels + u, -1, depth + 1);
    if (level < 0) next.push(u);
    if (level < 0 || level == depth + 1) atomicAdd(paths + u, ours);
  };
  cte::advance<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, now, count, [=](int v) { return paths[v]; });
}

extern "C" __global__ void __launch_bounds__(BLOCK)
bc_backward_queue(int depth, const int* offsets, const int* neighbors, const int* levels, const double* paths, double* dependencies,
                  int* order, Size begin, Size* now_size, Size vertices) {
  const cte::queue<int> now{order + begin, now_size, vertices - begin};
  cte::advance<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, now, depends(depth, levels, paths, dependencies), cte::itself{});
}

// The same queue, which knows where the edges of its vertices begin: all warps take the same number of edges.
__device__ auto frontier_from(const int* offsets, int* order, unsigned* begins, Size begin, Size* counts, Size vertices) {
  return cte::scanned_queue<int, int>{offsets, order + begin, begins + begin, counts, static_cast<unsigned>(vertices - begin)};
}

extern "C" __global__ void __launch_bounds__(BLOCK)
bc_forward_balanced(int depth, const int* offsets, const int* neighbors, int* levels, double* paths, int* order, unsigned* begins,
                    Size begin, Size* now_counts, Size* next_counts, Size vertices) {
  __shared__ cte::staging<BLOCK, int> staged;
  const auto now = frontier_from(offsets, order, begins, begin, now_counts, vertices);
  const auto next = frontier_from(offsets, order, begins, begin + now.vertices_in(*now_counts), next_counts, vertices);
  staged.clear();
  const auto count = [=](int u, int, double ours) {
    int level = levels[u];
    if (level < 0) level = atomicCAS(levels + u, -1, depth + 1);
    if (level < 0) staged.push(u, next);
    if (level < 0 || level == depth + 1) atomicAdd(paths + u, ours);
  };
  cte::advance_balanced<BLOCK>(cte::graph{offsets, neighbors}, now, count, [=](int v) { return paths[v]; });
  staged.flush(next);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
bc_backward_balanced(int depth, const int* offsets, const int* neighbors, const int* levels, const double* paths,
                     double* dependencies, int* order, unsigned* begins, Size begin, Size* now_counts, Size vertices) {
  const auto now = frontier_from(offsets, order, begins, begin, now_counts, vertices);
  cte::advance_balanced<BLOCK>(cte::graph{offsets, neighbors}, now, depends(depth, levels, paths, dependencies), cte::itself{});
}
