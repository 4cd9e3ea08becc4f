// Drops vertices from a frontier.
#pragma once

#include <cte/frontier/advance.cuh>

namespace cte {

/// Appends the vertices of a queue for which `keep(v)` holds to another queue, with at most one atomic operation per 32 vertices.
///
/// Use it to make a frontier of what a step without atomic operations left, which may hold a vertex several times. With a
/// `bitmap`, `keep` drops all duplicates; with a `history`, most of them, without global memory.
///
/// @code
/// __global__ void unique(const cte::queue<int> found, const cte::queue<int> next, const cte::bitmap seen) {
///     cte::filter<256>(found, next, [=](int v) { return seen.set(v); });
/// }
/// @endcode
///
/// @tparam BlockDim  threads of the block: a multiple of 32, up to 1024
/// @param from       the vertices. Nothing may be appended to it meanwhile
/// @param to         another queue
/// @param keep       called once for each vertex, by one lane. It contains no barrier
///
/// **Required.** All threads of a one-dimensional grid of any size call together.
///
/// The call uses no shared memory. The order of the vertices is lost.
template <int BlockDim, class Vertex, class Keep>
__device__ __forceinline__ void filter(queue<Vertex> from, queue<Vertex> to, Keep keep) {
    detail::each_block_of<BlockDim>(from.length(), [&](bool is_there, unsigned long long place) {
        const Vertex v = is_there ? from.items[place] : Vertex{};
        const bool stays = is_there && keep(v);
        __syncwarp();
        to.push_if(stays, v);
    });
}

}  // namespace cte
