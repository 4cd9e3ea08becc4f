// A frontier that knows where the edges of its vertices begin, and a step that gives all warps of a grid the same number of them (the
// advance that Gunrock calls LB: Davidson, Baxter, Garland, Owens, IPDPS 2014). The vertices are scanned as they are appended.
#pragma once

#include <cte/block.cuh>
#include <cte/frontier/advance.cuh>
#include <cte/policies/warp.cuh>

namespace cte {

/// A frontier as a list of vertices with the number of edges before each, which `advance_balanced` divides evenly. Vertices without
/// edges are left out.
///
/// Use it if some vertices have so many edges that one block takes a long time for them, or if a frontier has few vertices but many edges.
///
/// Vertices and edges are counted by one atomic operation, in two halves of a word. So a frontier has fewer than 2^32 vertices and fewer
/// than 2^32 edges. Past these bounds, and past `capacity`, some vertices are lost, and `counts[1]` is not 0. The host then repeats the
/// step, from the state before it and with both words 0: with more memory if `vertices_in(counts[0])` is more than `capacity`, and with a
/// `queue` if not, since the edges are too many.
///
/// @code
/// __global__ void odd_rows(int rows, const int* offsets, int* items, unsigned* begins, unsigned long long* counts, unsigned capacity) {
///     const cte::scanned_queue<int, int> odd{offsets, items, begins, counts, capacity};
///     const int row = blockIdx.x * 256 + threadIdx.x;
///     if (row < rows && (offsets[row + 1] - offsets[row]) % 2 != 0) odd.push(row);
/// }
/// @endcode
///
/// @tparam Vertex  what the queue holds: an integer of 32 or 64 bits
/// @tparam Offset  the number of an edge: an integer of 32 or 64 bits
template <class Vertex, class Offset>
struct scanned_queue {
    static_assert(std::is_integral_v<Vertex> && (sizeof(Vertex) == 4 || sizeof(Vertex) == 8), "a queue holds integers of 32 or 64 bits");
    static_assert(std::is_integral_v<Offset> && (sizeof(Offset) == 4 || sizeof(Offset) == 8), "offsets are integers of 32 or 64 bits");

    const Offset* offsets;       // those of the graph
    Vertex* items;               // `capacity` vertices
    unsigned* begins;            // `capacity` numbers: how many edges the vertices before each one have
    unsigned long long* counts;  // two words, 0 at first: vertices and edges (`vertices_in`, `edges_in`), and whether some were lost
    unsigned capacity;

    __host__ __device__ static constexpr unsigned vertices_in(unsigned long long count) { return static_cast<unsigned>(count); }
    __host__ __device__ static constexpr unsigned edges_in(unsigned long long count) { return static_cast<unsigned>(count >> 32); }

    /// Appends `v`, unless it has no edges. Any lanes may call, at any time. Each takes an atomic operation: see `staging`.
    __device__ void push(Vertex v) const {
        const unsigned long long mine = count_for(v);
        if (mine != 0) store(v, mine, atomicAdd(counts, mine), mine);
    }

    /// Appends `v` in lanes where `wanted`. All lanes of a warp call together, for one queue: one atomic operation, unless some are lost.
    __device__ void push_if(bool wanted, Vertex v) const {
        const unsigned long long mine = wanted ? count_for(v) : 0;
        __syncwarp();
        const unsigned long long upto = detail::inclusive_sum(mine);
        const unsigned long long all = detail::shuffle(upto, detail::lanes - 1);
        unsigned long long first = 0;
        if (detail::lane_number() == 0 && all != 0) first = atomicAdd(counts, all);
        first = detail::shuffle(first, 0);
        if (mine != 0) store(v, mine, first, upto);
        __syncwarp();
    }

   private:
    __device__ void lose() const { atomicAdd(counts + 1, 1ull); }

    /// What `v` adds to the count: 0 if it has no edges, or if their number does not fit in 32 bits.
    __device__ unsigned long long count_for(Vertex v) const {
        const auto degree = static_cast<unsigned long long>(offsets[v + 1] - offsets[v]);
        if (degree > ~0u) lose();
        return degree == 0 || degree > ~0u ? 0 : degree << 32 | 1u;
    }

    /// Stores `v`. `mine` is its own count, `first` the counter before this group of appends, and `upto` the count of the group up to and
    /// including `v`. A sum that is less than a part of it has wrapped.
    __device__ void store(Vertex v, unsigned long long mine, unsigned long long first, unsigned long long upto) const {
        const unsigned long long end = first + upto, begin = end - mine;
        if (upto < mine || end < upto || vertices_in(begin) >= capacity) return lose();
        items[vertices_in(begin)] = v;
        begins[vertices_in(begin)] = edges_in(begin);
    }
};

/// Visits all neighbors of the vertices in a `scanned_queue`: `visit(neighbor, edge, described...)` for each edge that leaves them. The
/// warps of the grid take equal parts of the edges, whichever vertices these leave.
///
/// Use it for a step that pushes from a frontier with very long lists of neighbors, which `advance` leaves to the warps of a block. A
/// warp searches for its first vertex; no part of the frontier is prepared by another kernel.
///
/// @code
/// __global__ void level(const int* offsets, const int* columns, int* levels, int depth, const cte::scanned_queue<int, int> now,
///                       const cte::scanned_queue<int, int> next) {
///     __shared__ cte::staging<256, int> staged;
///     staged.clear();
///     const auto reach = [=](int neighbor, int) {
///         if (levels[neighbor] < 0 && atomicCAS(levels + neighbor, -1, depth + 1) < 0) staged.push(neighbor, next);
///     };
///     cte::advance_balanced<256>(cte::graph{offsets, columns}, now, reach);
///     staged.flush(next);
/// }
/// @endcode
///
/// @tparam BlockDim      threads of the block: a multiple of 32, up to 1024
/// @tparam EdgesPerLane  a warp takes up to `32 * EdgesPerLane` edges per search; fewer if the grid has warps to spare
/// @tparam Policy        which lanes of a warp visit what: a policy without `whole_block`
/// @param graph          the edges; its offsets are those of the queue
/// @param from           the queue of vertices; one that is in it twice is visited twice. Nothing may be appended to it meanwhile. If the
///                       queue lost vertices, nothing is visited
/// @param visit          called once for each edge of each vertex, by any lane, in any order; its captures are the same in all lanes of
///                       the warp
/// @param describe       as in `advance`; called by each warp that visits edges of the vertex
///
/// **Required.** All lanes of a warp call together, in a one-dimensional grid of any size. For a large frontier, about
/// `edges / (EdgesPerLane * BlockDim)` blocks are best; for a small one, as many as are resident at once, but no more than one lane per
/// edge.
///
/// **Shared memory and registers** are those of `for_each` with the policy; the search and the loop over the vertices use some more
/// registers.
template <int BlockDim, int EdgesPerLane = 8, class Policy = warp, class Vertex, class Offset, class Visit, class... Describe>
__device__ __forceinline__ void advance_balanced(graph<Vertex, Offset> graph, scanned_queue<Vertex, Offset> from, Visit visit,
                                                 Describe... describe) {
    static_assert(!Policy::whole_block,
                  "cte::advance_balanced needs a policy without whole_block: the warps of a block make different numbers of calls");
    static_assert(EdgesPerLane > 0, "cte::advance_balanced: a lane visits at least one edge at a time");
    using wide = unsigned long long;
    const wide count = *from.counts;
    if (from.counts[1] != 0) return;
    const unsigned vertices = from.vertices_in(count);
    const wide edges = from.edges_in(count), warps = static_cast<wide>(gridDim.x) * (BlockDim / detail::lanes);
    const wide share = (edges + warps * detail::lanes - 1) / (warps * detail::lanes);
    const wide tile = (share < EdgesPerLane ? share : EdgesPerLane) * detail::lanes;
    const wide warp = static_cast<wide>(blockIdx.x) * (BlockDim / detail::lanes) + detail::warp_number();
    for (wide first = warp * tile; first < edges; first += warps * tile) {
        const wide last = first + tile < edges ? first + tile : edges;
        // The first vertex has edges at or before `first`; 64 bits, since there may be 2^32 - 1 vertices.
        wide at = detail::warp_partition_point(wide{0}, wide{vertices}, [&](wide i) { return from.begins[i] <= first; }) - 1;
        for (bool goes_on = true; goes_on; at += detail::lanes) {
            const wide mine = at + detail::lane_number();
            const wide opens = mine < vertices ? from.begins[mine] : edges;
            const bool has_one = opens < last;
            Vertex source{};
            Offset begin = 0, end = 0;
            if (has_one) {
                source = from.items[mine];
                const wide closes = mine + 1 < vertices ? from.begins[mine + 1] : edges;
                const Offset origin = graph.offsets[source];
                begin = origin + static_cast<Offset>(first > opens ? first - opens : 0);
                end = origin + static_cast<Offset>((closes < last ? closes : last) - opens);
            }
            goes_on = __all_sync(detail::full_warp, has_one);
            detail::visit_edges<BlockDim, Policy, false>(graph.neighbors, has_one, source, begin, end, visit, describe...);
        }
    }
}

}  // namespace cte
