// A step against the edges: vertices that wait look for one neighbor, and stop at the first.
#pragma once

#include <cte/any.cuh>
#include <cte/frontier/advance.cuh>

namespace cte {

/// Calls `found(v)` for each vertex of [0, vertices) for which `waits(v)` is true and that has a neighbor for which
/// `has(neighbor, edge)` is true.
///
/// Use it for a step that pulls, if much of the graph is in the frontier: a vertex stops at its first hit, and only one thread writes its
/// data. `graph` holds the edges that lead to each vertex.
///
/// @code
/// __global__ void level(int rows, const int* offsets, const int* columns, int* levels, int depth) {
///     const auto is_open = [=](int v) { return levels[v] < 0; };
///     const auto is_new = [=](int neighbor, int) { return levels[neighbor] == depth; };
///     cte::pull<256>(cte::graph{offsets, columns}, rows, is_open, is_new, [=](int v) { levels[v] = depth + 1; });
/// }
/// @endcode
///
/// @tparam BlockDim  threads of the block: a multiple of 32, up to 1024
/// @tparam Policy    one of those that `any` takes
/// @param graph      the edges that lead to each vertex (CSC)
/// @param vertices   the number of vertices
/// @param waits      called once for each vertex, by one lane
/// @param has        returns a `bool`, without side effects; its captures are the same in all lanes of the warp, and in all threads of the
///                   block with `thread_warp_block`
/// @param found      called by one lane for each vertex that found a neighbor; `queue::push` is allowed there
///
/// **Required.** All threads of a one-dimensional grid of any size call together. `found` may write what `has`
/// reads, if the result is correct with the old and with the new value, as in the example.
///
/// **Shared memory and registers** are those of `any` with the policy; the loop over the vertices uses a few more registers.
template <int BlockDim, class Policy = automatic, class Vertex, class Offset, class Waits, class Has, class Found>
__device__ __forceinline__ void pull(graph<Vertex, Offset> graph, Vertex vertices, Waits waits, Has has, Found found) {
    const auto hits = [neighbors = graph.neighbors, has](Offset edge) { return has(neighbors[edge], edge); };
    detail::each_block_of<BlockDim>(vertices, [&](bool is_there, Vertex v) {
        Offset begin = 0, end = 0;
        if (is_there && waits(v)) {
            begin = graph.offsets[v];
            end = graph.offsets[v + 1];
        }
        __syncwarp();
        if (any<BlockDim, disjoint, Policy>(begin, end, hits)) found(v);
        __syncwarp();
    });
}

}  // namespace cte
