// Asynchronous copies, mbarriers, tensor copies, clusters: libcu++'s barriers, pipelines and cuda::ptx.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>
#include <cuda.h>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void copied(const int* in, int* out, int n) {
  extern __shared__ int tile[];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier barrier;
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&barrier, block.size());
  block.sync();
  cuda::memcpy_async(block, tile, in, cuda::aligned_size_t<16>(sizeof(int) * block.size()), barrier);
  barrier.arrive_and_wait();
  auto token = barrier.arrive();
  out[threadIdx.x] = tile[n % 64];
  barrier.wait(std::move(token));
}

__global__ void piped(const float4* in, float4* out, int n) {
  __shared__ float4 stages[2][64];
  auto pipe = cuda::make_pipeline();
  for (int i = 0; i < n; ++i) {
    pipe.producer_acquire();
    cuda::memcpy_async(&stages[i & 1][threadIdx.x], &in[i * 64 + threadIdx.x], sizeof(float4), pipe);
    pipe.producer_commit();
    cuda::pipeline_consumer_wait_prior<1>(pipe);
    out[i * 64 + threadIdx.x] = stages[i & 1][threadIdx.x];
    pipe.consumer_release();
  }
}

#if __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(2, 1, 1) tensor(const __grid_constant__ CUtensorMap map, int* out, const int* in) {
  __shared__ alignas(128) int tile[256];
  __shared__ alignas(8) uint64_t bar;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  cluster.sync();
  const int32_t at[2] = {(int)blockIdx.x * 16, 0};
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &map, at, &bar);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile + 128, in, 512, &bar);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 1024);
  }
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, 0)) {
  }
  int* theirs = cluster.map_shared_rank(tile, cluster.block_rank() ^ 1);
  out[threadIdx.x] = theirs[threadIdx.x] + tile[threadIdx.x];
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, at, tile);
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, out, tile, 512);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    uint64_t remote, policy;
    unsigned rank;
    asm volatile("mapa.u64 %0, %1, 1;" : "=l"(remote) : "l"(out));
    asm volatile("getctarank.u64 %0, %1;" : "=r"(rank) : "l"(remote));
    out[300] = (int)rank;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 0.5;" : "=l"(policy));
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
    asm volatile("griddepcontrol.launch_dependents; griddepcontrol.wait;" ::: "memory");
  }
  ptx::barrier_cluster_arrive(ptx::sem_release);
  ptx::barrier_cluster_wait();
}
#endif
