// Clusters, distributed shared memory, mbarriers, bulk copies: sm_90 and later.
#include <cooperative_groups.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;

__global__ void __cluster_dims__(2, 1, 1) clustered(int *out, const int *in) {
    __shared__ alignas(16) int tile[128];
    __shared__ alignas(16) char storage[sizeof(cuda::barrier<cuda::thread_scope_block>)];
    auto &barrier = reinterpret_cast<cuda::barrier<cuda::thread_scope_block> &>(storage);
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    cuda::barrier<cuda::thread_scope_block>::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(tile, in, cuda::aligned_size_t<16>(sizeof(tile)), barrier);
        token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof(tile));
    } else {
        token = barrier.arrive();
    }
    barrier.wait(std::move(token));
    int *other = cluster.map_shared_rank(tile, cluster.block_rank() ^ 1);
    cluster.sync();
    out[threadIdx.x] = other[threadIdx.x];
    cluster.sync();
}

__global__ void __block_size__((128, 1, 1)) sized(const __grid_constant__ int n, int *p) { p[threadIdx.x] = n; }
