// Algorithms as seen from one vertex (F. Khorasani, High performance vertex-centric graph analytics on GPUs, 2016).
#pragma once

#include <cte/frontier/advance.cuh>
#include <cte/frontier/bitmap.cuh>

namespace cte {

/// An algorithm as seen from one vertex: what it begins with, what each of its edges contributes, and what it becomes.
///
/// Use it to write an algorithm once and to run it from any frontier: `step` takes all vertices or those of a queue, and `step_if` those of
/// a bitmap or those that pass a test. Each vertex is written by one thread, without atomic operations, and its edges are reduced in
/// order: floating-point sums are the same in every run. A vertex has to look again once a vertex that it looks at has
/// changed: `advance` follows the edges that leave the changed vertices, and so finds those that have to look again.
///
/// @code
/// __global__ void shorten(int rows, const int* offsets, const int* sources, const int* lengths, int* distances,
///                         const cte::bitmap active, const cte::queue<int> nearer) {
///     const auto own = [=](int v) { return distances[v]; };
///     const auto through = [=](int u, int edge) { return distances[u] + lengths[edge]; };
///     const auto accept = [=](int v, int distance) {
///         const bool is_nearer = distance < distances[v];
///         if (is_nearer) distances[v] = distance;
///         return is_nearer;
///     };
///     const cte::vertex_program shortest{own, through, cte::minimum{}, accept};
///     cte::step_if<256>(shortest, cte::graph{offsets, sources}, rows, active, nearer);
/// }
/// @endcode
///
/// @tparam Init    `init(v)` returns the first operand of the reduction, used once: called by one lane. What it returns is trivially
///                 copyable and default-constructible
/// @tparam Visit   `visit(neighbor, edge)` returns the value of an edge: called once for each, by any lane and in any order
/// @tparam Reduce  an associative operator; it need not commute
/// @tparam Update  `update(v, result)` stores what the vertex becomes, and returns true if it has changed: called by one lane
template <class Init, class Visit, class Reduce, class Update>
struct vertex_program {
    Init init;
    Visit visit;
    Reduce reduce;
    Update update;
};

template <class Init, class Visit, class Reduce, class Update>
vertex_program(Init, Visit, Reduce, Update) -> vertex_program<Init, Visit, Reduce, Update>;

namespace detail {

template <class Vertex>
__device__ bool is_in(const bitmap& active, Vertex v) {
    return active.test(v);
}
template <class Active, class Vertex>
__device__ bool is_in(const Active& active, Vertex v) {
    return active(v);
}

/// Passes on the vertices that have changed. All lanes of a warp call together.
template <class Vertex>
__device__ void tell(const queue<Vertex>& changed, bool has_changed, Vertex v) {
    changed.push_if(has_changed, v);
}
template <class Vertex>
__device__ void tell(const bitmap& changed, bool has_changed, Vertex v) {
    if (has_changed) changed.set(v);
}
template <class Vertex>
__device__ void tell(int* changed, bool has_changed, Vertex) {
    if (has_changed && *changed == 0) *changed = 1;
}
template <class Changed, class Vertex>
__device__ void tell(const Changed& changed, bool has_changed, Vertex v) {
    if (has_changed) changed(v);
}

/// Runs a program for the vertices `v` of the threads whose vertex is active, along the edges from `begin` to `end`.
template <int BlockDim, class Layout, class Policy, class Program, class Vertex, class Offset, class Changed>
__device__ __forceinline__ void run_program(const Program& program, const graph<Vertex, Offset>& graph, bool is_active, Vertex v,
                                            Offset begin, Offset end, const Changed& changed) {
    using value = std::decay_t<decltype(program.init(v))>;
    const auto along = [neighbors = graph.neighbors, visit = program.visit](Offset edge) { return visit(neighbors[edge], edge); };
    const value first = is_active ? program.init(v) : value{};
    __syncwarp();  // policies share edges among lanes only if all of these run together
    const value result = for_each_index<BlockDim, Layout, Policy>(begin, end, along, program.reduce, first);
    const bool has_changed = is_active && program.update(v, result);
    __syncwarp();
    tell(changed, has_changed, v);
}

}  // namespace detail

/// Runs a program for all vertices of [0, vertices).
///
/// Use it if most vertices are active, as in PageRank.
///
/// @code
/// __global__ void smallest_label(int rows, const int* offsets, const int* columns, const int* labels, int* next, int* changed) {
///     const auto own = [=](int v) { return labels[v]; };
///     const auto theirs = [=](int u, int) { return labels[u]; };
///     const auto accept = [=](int v, int label) {
///         next[v] = label;
///         return label != labels[v];
///     };
///     cte::step<256>(cte::vertex_program{own, theirs, cte::minimum{}, accept}, cte::graph{offsets, columns}, rows, changed);
/// }
/// @endcode
///
/// @tparam BlockDim  threads of the block: a multiple of 32, up to 1024
/// @tparam Policy    which lanes visit what: one of cte/policies/*.cuh, or your own (cte/policy.cuh)
/// @param program    a `vertex_program`
/// @param graph      the edges that each vertex looks at: usually those that lead to it (CSC)
/// @param vertices   the number of vertices
/// @param changed    gets the vertices that have changed: another `queue` or `bitmap`, an `int*` to a flag that becomes 1, or a function of
///                   the vertex
///
/// **Required.** All threads of a one-dimensional grid of any size call together. `update` may write what `visit` reads
/// if the result is correct with the old and with the new value, as minima are; otherwise it writes another array, as in the
/// example. The requirements for `visit` and `reduce` are those of `for_each_index`.
///
/// **Shared memory and registers** are those of `for_each_index` with the policy; the loop over the vertices uses a few more registers.
template <int BlockDim, class Policy = automatic, class Program, class Vertex, class Offset, class Changed>
__device__ __forceinline__ void step(Program program, graph<Vertex, Offset> graph, Vertex vertices, Changed changed) {
    detail::each_block_of<BlockDim>(vertices, [&](bool is_there, Vertex v) {
        const Offset begin = graph.offsets[is_there ? v : vertices], end = is_there ? graph.offsets[v + 1] : begin;
        detail::run_program<BlockDim, scanned, Policy>(program, graph, is_there, v, begin, end, changed);
    });
}

/// The same for the vertices in a queue.
///
/// @param from  the queue: no vertex is in it twice, and nothing may be appended to it meanwhile
///
/// See `step` for everything else.
template <int BlockDim, class Policy = automatic, class Program, class Vertex, class Offset, class Changed>
__device__ __forceinline__ void step(Program program, graph<Vertex, Offset> graph, queue<Vertex> from, Changed changed) {
    detail::each_block_of<BlockDim>(from.length(), [&](bool is_there, unsigned long long place) {
        const Vertex v = is_there ? from.items[place] : Vertex{};
        const Offset begin = is_there ? graph.offsets[v] : Offset{}, end = is_there ? graph.offsets[v + 1] : begin;
        detail::run_program<BlockDim, disjoint, Policy>(program, graph, is_there, v, begin, end, changed);
    });
}

/// The same for the vertices of [0, vertices) that are active.
///
/// @param active  a `bitmap`, or a function `active(v)`, called once for each vertex, by one lane
///
/// See `step` for everything else.
template <int BlockDim, class Policy = automatic, class Program, class Vertex, class Offset, class Active, class Changed>
__device__ __forceinline__ void step_if(Program program, graph<Vertex, Offset> graph, Vertex vertices, Active active, Changed changed) {
    detail::each_block_of<BlockDim>(vertices, [&](bool is_there, Vertex v) {
        const bool is_active = is_there && detail::is_in(active, v);
        const Offset begin = is_active ? graph.offsets[v] : Offset{}, end = is_active ? graph.offsets[v + 1] : begin;
        detail::run_program<BlockDim, disjoint, Policy>(program, graph, is_active, v, begin, end, changed);
    });
}

}  // namespace cte
