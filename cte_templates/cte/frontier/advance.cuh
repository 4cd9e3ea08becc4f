// A step along the edges that leave a frontier: from the vertices of a queue, or from those that a test finds.
#pragma once

#include <cte/for_each.cuh>
#include <cte/frontier/graph.cuh>
#include <cte/frontier/queue.cuh>

namespace cte {
namespace detail {

/// Calls `run(is_there, place)` for each place in [0, count), a block of them at a time. All threads of the grid call together; all
/// threads of a block make the same number of calls, which policies with `whole_block` need.
template <int BlockDim, class Count, class Run>
__device__ __forceinline__ void each_block_of(Count count, Run run) {
    static_assert(BlockDim % lanes == 0 && BlockDim >= lanes && BlockDim <= 1024,
                  "BlockDim is the number of threads of the block: a multiple of 32, up to 1024");
    using place = std::make_unsigned_t<Count>;
    using wide = unsigned long long;
    const place bound = static_cast<place>(count), most = ~place{0};
    const wide begin = static_cast<wide>(blockIdx.x) * BlockDim, threads = static_cast<wide>(gridDim.x) * BlockDim;
    if (begin >= bound) return;  // a grid may have more threads than `Count` has values
    const place stride = threads < most ? static_cast<place>(threads) : most;
    // What is left is counted: the place past the last one may not fit the type.
    for (place first = static_cast<place>(begin);; first += stride) {
        const place left = bound - first, mine = static_cast<place>(thread_number());
        run(mine < left, static_cast<Count>(first + mine));
        if (left <= stride) break;
    }
}

/// Visits the edges [begin, end) of the vertices `source`, in the threads that have one; others have no edges. `is_uniform`: `visit` has
/// the same captures in all threads of the block, and keeps them as long as any thread is in a call with it.
template <int BlockDim, class Policy, bool is_uniform, class Vertex, class Offset, class Visit, class... Describe>
__device__ __forceinline__ void visit_edges(const Vertex* neighbors, bool has_one, Vertex source, Offset begin, Offset end, Visit& visit,
                                            Describe&... describe) {
    const auto along = [=](Offset edge, const auto&... described) { visit(neighbors[edge], edge, described...); };
    const auto call = [&](const auto&... described) {
        __syncwarp();  // policies share edges among lanes only if all of these run together
        if constexpr (is_uniform) {
            for_each<BlockDim, disjoint, Policy>(begin, end, uniform(along), described...);
        } else {
            for_each<BlockDim, disjoint, Policy>(begin, end, along, described...);
        }
    };
    call((has_one ? describe(source) : std::decay_t<decltype(describe(source))>{})...);
}

/// Visits the neighbors of the vertices `source` of the threads that have one.
template <int BlockDim, class Policy, class Vertex, class Offset, class Visit, class... Describe>
__device__ __forceinline__ void visit_neighbors(const graph<Vertex, Offset>& graph, bool has_one, Vertex source, Visit& visit,
                                                Describe&... describe) {
    Offset begin = 0, end = 0;
    if (has_one) {
        begin = graph.offsets[source];
        end = graph.offsets[source + 1];
    }
    visit_edges<BlockDim, Policy, true>(graph.neighbors, has_one, source, begin, end, visit, describe...);
}

}  // namespace detail

/// Describes a vertex by its number: `visit` gets the source of each edge.
struct itself {
    template <class Vertex>
    __device__ Vertex operator()(Vertex v) const {
        return v;
    }
};

/// Visits all neighbors of the vertices in a queue: `visit(neighbor, edge, described...)` for each edge that leaves them.
///
/// Use it for a step that pushes from a compacted frontier. The threads of the grid share the vertices, and the lanes share the
/// edges as `Policy` says.
///
/// @code
/// __global__ void level(const int* offsets, const int* columns, int* levels, int depth, const cte::queue<int> now,
///                       const cte::queue<int> next) {
///     const auto reach = [=](int neighbor, int) {
///         if (levels[neighbor] < 0 && atomicCAS(levels + neighbor, -1, depth + 1) < 0) next.push(neighbor);
///     };
///     cte::advance<256>(cte::graph{offsets, columns}, now, reach);
/// }
/// @endcode
///
/// @tparam BlockDim  threads of the block: a multiple of 32, up to 1024
/// @tparam Policy    which lanes visit what: one of cte/policies/*.cuh, or your own (cte/policy.cuh)
/// @param graph      the edges
/// @param from       the queue of vertices; one that is in it twice is visited twice. Nothing may be appended to it meanwhile
/// @param visit      called once for each edge of each vertex, by any lane, in any order. It contains no barrier; its captures are the
///                   same in all threads of the block
/// @param describe   each returns, for a vertex, what `visit` needs to know about it, such as its distance: read once per vertex instead of
///                   once per edge. `itself` returns its number. What they return is trivially copyable and default-constructible. With
///                   more than 8 bytes of it in all, `automatic` shares no long tasks with other warps
///
/// **Required.** All threads of a one-dimensional grid of any size call together. Before the threads of a block call
/// again with other captures, they synchronize (`__syncthreads()`): warps take parts of one another's tasks.
///
/// **Shared memory and registers** are those of `for_each` with the policy; the loop over the frontier uses a few more registers.
template <int BlockDim, class Policy = automatic, class Vertex, class Offset, class Visit, class... Describe>
__device__ __forceinline__ void advance(graph<Vertex, Offset> graph, queue<Vertex> from, Visit visit, Describe... describe) {
    const Vertex* const items = from.items;
    detail::each_block_of<BlockDim>(from.length(), [&](bool is_there, unsigned long long place) {
        detail::visit_neighbors<BlockDim, Policy>(graph, is_there, is_there ? items[place] : Vertex{}, visit, describe...);
    });
}

/// The same from the vertices of [0, vertices) for which `active(v)` is true: every vertex tests itself.
///
/// Use it if the frontier is a `bitmap` or an array of states, and no queue is built from it.
///
/// @code
/// __global__ void level(int rows, const int* offsets, const int* columns, int* levels, int depth) {
///     const auto is_new = [=](int v) { return levels[v] == depth; };
///     const auto reach = [=](int neighbor, int) {
///         if (levels[neighbor] < 0) levels[neighbor] = depth + 1;
///     };
///     cte::advance_if<256>(cte::graph{offsets, columns}, rows, is_new, reach);
/// }
/// @endcode
///
/// @param vertices  the number of vertices
/// @param active    called once for each vertex, by one lane
///
/// See `advance` for everything else.
template <int BlockDim, class Policy = automatic, class Vertex, class Offset, class Active, class Visit, class... Describe>
__device__ __forceinline__ void advance_if(graph<Vertex, Offset> graph, Vertex vertices, Active active, Visit visit,
                                           Describe... describe) {
    detail::each_block_of<BlockDim>(vertices, [&](bool is_there, Vertex v) {
        const bool has_one = is_there && active(v);
        detail::visit_neighbors<BlockDim, Policy>(graph, has_one, v, visit, describe...);
    });
}

}  // namespace cte
