// A graph in CSR form, as the steps of a traversal expect it.
#pragma once

#include <cte/version.cuh>

#include <type_traits>

namespace cte {

/// The edges that leave each vertex, in CSR form: edges `offsets[v]` to `offsets[v + 1] - 1` lead from `v`, each to `neighbors[edge]`.
///
/// Use it for steps that push, and the same arrays of the transposed graph (CSC) for steps that pull. Edge data such as weights stays in
/// your own arrays: functions get the number of the edge.
///
/// @code
/// const cte::graph<int, int> graph{offsets, columns};
/// if (row < rows) out[row] = graph.degree(row);
/// @endcode
///
/// @tparam Vertex  the number of a vertex: an integer of 32 or 64 bits
/// @tparam Offset  the number of an edge: an integer of 32 or 64 bits
template <class Vertex, class Offset>
struct graph {
    static_assert(std::is_integral_v<Vertex> && (sizeof(Vertex) == 4 || sizeof(Vertex) == 8), "vertices are integers of 32 or 64 bits");
    static_assert(std::is_integral_v<Offset> && (sizeof(Offset) == 4 || sizeof(Offset) == 8), "offsets are integers of 32 or 64 bits");

    const Offset* offsets;
    const Vertex* neighbors;

    __device__ Offset degree(Vertex v) const { return offsets[v + 1] - offsets[v]; }
};

template <class Vertex, class Offset>
graph(const Offset*, const Vertex*) -> graph<Vertex, Offset>;

}  // namespace cte
