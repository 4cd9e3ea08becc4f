// A reduction over the neighbors of each vertex.
#pragma once

#include <cte/frontier/advance.cuh>

namespace cte {

/// Reduces the values of the edges of each vertex of [0, vertices), and calls `store(v, result)`.
///
/// Use it if all vertices are active, as in PageRank: no atomic operations, and results of floating-point sums are the same in
/// every run. `graph` holds the edges that lead to each vertex, or those that leave it.
///
/// @code
/// __global__ void heaviest(int rows, const int* offsets, const int* columns, const float* values, float* out) {
///     const auto weight = [=](int, int edge) { return values[edge]; };
///     const auto store = [=](int v, float most) { out[v] = most; };
///     cte::reduce_neighbors<256>(cte::graph{offsets, columns}, rows, weight, cte::maximum{}, 0.0f, store);
/// }
/// @endcode
///
/// @tparam BlockDim  threads of the block: a multiple of 32, up to 1024
/// @tparam Policy    one of cte/policies/*.cuh, or your own (cte/policy.cuh)
/// @param graph      the edges
/// @param vertices   the number of vertices
/// @param map        returns the value of an edge: `map(neighbor, edge)`, called once for each, by any lane and in any order
/// @param reduce     an associative operator; it need not commute
/// @param init       the first operand, used once
/// @param store      called once for each vertex, by one lane
///
/// **Required.** All threads of a one-dimensional grid of any size call together. The requirements for `map` and `reduce`
/// are those of `for_each_index`.
///
/// **Shared memory and registers** are those of `for_each_index` with the policy; the loop over the vertices uses a few more registers.
template <int BlockDim, class Policy = automatic, class Vertex, class Offset, class Map, class Reduce, class T, class Store>
__device__ __forceinline__ void reduce_neighbors(graph<Vertex, Offset> graph, Vertex vertices, Map map, Reduce reduce, T init,
                                                 Store store) {
    const auto along = [neighbors = graph.neighbors, map](Offset edge) { return map(neighbors[edge], edge); };
    detail::each_block_of<BlockDim>(vertices, [&](bool is_there, Vertex v) {
        const Offset begin = graph.offsets[is_there ? v : vertices], end = is_there ? graph.offsets[v + 1] : begin;
        const T result = for_each_index<BlockDim, scanned, Policy>(begin, end, along, reduce, init);
        if (is_there) store(v, result);
        __syncwarp();
    });
}

}  // namespace cte
