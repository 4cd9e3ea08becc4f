// Warp collectives, barriers, cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

__global__ void votes(const int* in, int* out) {
  int x = in[threadIdx.x];
  unsigned all = __activemask();
  int r = __all_sync(all, x > 1) + 2 * __any_sync(all, x > 2) + (int)__ballot_sync(~0u, x > 3);
  r += __shfl_sync(~0u, x, 3) + __shfl_up_sync(~0u, x, 1) + __shfl_down_sync(~0u, x, 2, 16) + __shfl_xor_sync(all, x, 4);
  double d = __shfl_xor_sync(~0u, (double)x, 1);
  r += (int)d + (int)__match_any_sync(~0u, x);
  int all_same;
  r += (int)__match_all_sync(~0u, x, &all_same) + all_same;
#if __CUDA_ARCH__ >= 800
  r += __reduce_add_sync(~0u, x) + (int)__reduce_or_sync(~0u, (unsigned)x) + __reduce_max_sync(~0u, x);
#endif
  __syncwarp();
  __syncwarp(0xff);
  r += __syncthreads_count(x > 1) + __syncthreads_and(x) + __syncthreads_or(x);
  unsigned before = 0;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(before));
  out[threadIdx.x] = r + __fns(before, 0, 2) + (int)before;
}

__global__ void named(int* a) {
  asm volatile("bar.arrive 1, 64;");
  asm volatile("bar.sync 2, %0;" ::"r"(64) : "memory");
  asm volatile("barrier.sync.aligned 3;");
  int n;
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %1, 0; barrier.red.popc.u32 %0, 4, p; }" : "=r"(n) : "r"(a[0]));
  asm volatile("{ .reg .pred p, q; setp.gt.s32 p, %1, 0; bar.red.and.pred q, 5, 96, !p; selp.s32 %0, 1, 0, q; }" : "=r"(a[1]) : "r"(n));
}

__global__ void groups(const float* in, float* out, int n) {
  cg::grid_group grid = cg::this_grid();
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  float v = in[grid.thread_rank()];
  v = cg::reduce(tile, v, cg::plus<float>());
  v += cg::exclusive_scan(tile, v, cg::plus<float>());
  auto some = cg::coalesced_threads();
  v += some.shfl(v, 0) + some.size();
  if (tile.thread_rank() == 0) atomicAdd(out, v);
  block.sync();
  auto parts = cg::labeled_partition(tile, n & 3);
  out[block.thread_rank()] = parts.size() + parts.meta_group_size();
  grid.sync();
  out[1] = tile.any(v > 0) + tile.match_any(n);
}
