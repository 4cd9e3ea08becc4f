// A frontier of two levels of priority (A. Davidson, S. Baxter, M. Garland, J. D. Owens, Work-efficient parallel GPU methods for
// single-source shortest paths, IPDPS 2014).
#pragma once

#include <cte/frontier/advance.cuh>

namespace cte {

/// Two queues: vertices whose priority is below `bound`, which are next, and a pile of others for later.
///
/// Use it for shortest paths: vertices that are still far are likely to come nearer before their turn, and need not tell their
/// neighbors each time. Once `near` stays empty, the host raises `bound`, and `split` sorts the pile anew.
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
/// @tparam Priority  what is compared, such as a distance: the least is first
template <class Vertex, class Priority>
struct near_far {
    queue<Vertex> near, far;
    Priority bound;

    /// Appends `v` to the queue that its priority belongs to. Any lanes may call, at any time.
    __device__ void push(Vertex v, Priority priority) const {
        const queue<Vertex>& to = priority < bound ? near : far;
        to.push(v);
    }
};

/// Sorts a pile of far vertices by a new bound: those that `keep(v)` says to keep go to `next.near` if they are below
/// `next.bound`, and to `next.far` if not.
///
/// Use it between two bounds. Vertices that have come below the bound of before have been near since: `keep` drops them, and
/// what the pile holds twice.
///
/// @code
/// __global__ void sort_pile(const int* levels, const cte::queue<int> pile, const cte::near_far<int, int> next, int settled) {
///     cte::split<256>(pile, next, [=](int v) { return levels[v] >= settled; }, [=](int v) { return levels[v]; });
/// }
/// @endcode
///
/// @tparam BlockDim    threads of the block: a multiple of 32, up to 1024
/// @param pile         the far vertices of the bound before; not the queue `next.far`. Nobody may append to it meanwhile
/// @param next         the queues, and the new bound
/// @param keep         called once for each vertex, by one lane. It contains no barrier
/// @param priority_of  gives the priority that a vertex has today; called for those that stay
///
/// **Required.** All threads of a grid of one dimension call together, with any number of blocks.
///
/// The call takes no shared memory, and two atomic operations for each warp at most.
template <int BlockDim, class Vertex, class Priority, class Keep, class PriorityOf>
__device__ __forceinline__ void split(queue<Vertex> pile, near_far<Vertex, Priority> next, Keep keep, PriorityOf priority_of) {
    detail::each_block_of<BlockDim>(pile.length(), [&](bool is_there, unsigned long long place) {
        const Vertex v = is_there ? pile.items[place] : Vertex{};
        const bool stays = is_there && keep(v), is_near = stays && priority_of(v) < next.bound;
        __syncwarp();
        next.near.push_if(is_near, v);
        next.far.push_if(stays && !is_near, v);
    });
}

}  // namespace cte
