// A frontier of two levels of priority (A. Davidson, S. Baxter, M. Garland, J. D. Owens, Work-efficient parallel GPU methods for
// single-source shortest paths, IPDPS 2014).
#pragma once

#include <cte/frontier/advance.cuh>

namespace cte {

/// Two queues: vertices whose priority is below `bound`, which are next, and a pile of others for later.
///
/// Use it for shortest paths: vertices that are still far are likely to come nearer before their turn, and need not tell their neighbors
/// each time. Once `near` stays empty, the host raises `bound`, and `split` partitions the pile again.
///
/// @code
/// __global__ void relax(const int* offsets, const int* columns, int* levels, const cte::queue<int> now,
///                       const cte::near_far<int, int> next) {
///     const auto nearer = [=](int neighbor, int, int reached) {
///         if (reached + 1 < atomicMin(levels + neighbor, reached + 1)) next.push(neighbor, reached + 1);
///     };
///     cte::advance<256>(cte::graph{offsets, columns}, now, nearer, [=](int v) { return levels[v]; });
/// }
/// @endcode
///
/// @tparam Vertex    what the queues hold: an integer of 32 or 64 bits
/// @tparam Priority  what is compared, such as a distance: the smallest comes first
/// @tparam Near      the type of the near queue: `queue`, or `scanned_queue` for `advance_balanced`
template <class Vertex, class Priority, class Near = queue<Vertex>>
struct near_far {
    Near near;
    queue<Vertex> far;
    Priority bound;

    /// Appends `v` to the queue that its priority belongs to. Any lanes may call, at any time.
    __device__ void push(Vertex v, Priority priority) const {
        const bool is_near = priority < bound;
        if constexpr (std::is_same_v<Near, queue<Vertex>>) {
            // Member by member: a choice between the queues would put them into local memory.
            const queue<Vertex> to{is_near ? near.items : far.items, is_near ? near.size : far.size,
                                   is_near ? near.capacity : far.capacity};
            to.push(v);
        } else if (is_near) {
            near.push(v);
        } else {
            far.push(v);
        }
    }
};

/// Partitions a pile of far vertices at a new bound: those that `keep(v)` accepts go to `next.near` if their priority is below
/// `next.bound`, and to `next.far` if not.
///
/// Use it between two bounds. Vertices whose priority has since dropped below the previous bound have been in the near queue: `keep`
/// must reject them. To remove duplicates in the pile as well, `keep` can mark the vertices that it has accepted.
///
/// @code
/// __global__ void sort_pile(const int* levels, const cte::queue<int> pile, const cte::near_far<int, int> next, int settled) {
///     cte::split<256>(pile, next, [=](int v) { return levels[v] >= settled; }, [=](int v) { return levels[v]; });
/// }
/// @endcode
///
/// @tparam BlockDim    threads of the block: a multiple of 32, up to 1024
/// @param pile         the far vertices of the previous bound; not the queue `next.far`. Nothing may be appended to it meanwhile
/// @param next         the queues, and the new bound
/// @param keep         called once for each vertex, by one lane. It contains no barrier
/// @param priority_of  returns the current priority of a vertex; called for those that are kept
///
/// **Required.** All threads of a one-dimensional grid of any size call together.
///
/// The call uses no shared memory, and at most two atomic operations per 32 vertices, unless a `scanned_queue` loses some.
template <int BlockDim, class Vertex, class Priority, class Near, class Keep, class PriorityOf>
__device__ __forceinline__ void split(queue<Vertex> pile, near_far<Vertex, Priority, Near> next, Keep keep, PriorityOf priority_of) {
    detail::each_block_of<BlockDim>(pile.length(), [&](bool is_there, unsigned long long place) {
        const Vertex v = is_there ? pile.items[place] : Vertex{};
        const bool stays = is_there && keep(v), is_near = stays && priority_of(v) < next.bound;
        __syncwarp();
        next.near.push_if(is_near, v);
        next.far.push_if(stays && !is_near, v);
    });
}

}  // namespace cte
