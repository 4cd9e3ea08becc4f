// Steps of a small frontier without the host: one block runs them until the frontier outgrows it.
#pragma once

#include <cte/frontier/balanced.cuh>
#include <cte/frontier/queue.cuh>

namespace cte {
namespace detail {

/// What a step from the frontier costs: the vertices of a queue, the edges of a scanned one.
template <class Vertex>
__device__ unsigned long long extent_of(const queue<Vertex>& frontier) {
    return *frontier.size;
}
template <class Vertex, class Offset>
__device__ unsigned long long extent_of(const scanned_queue<Vertex, Offset>& frontier) {
    return frontier.edges_in(*frontier.counts);
}

template <class Vertex>
__device__ bool has_overflowed(const queue<Vertex>& frontier) {
    return *frontier.size > frontier.capacity;
}
template <class Vertex, class Offset>
__device__ bool has_overflowed(const scanned_queue<Vertex, Offset>& frontier) {
    return frontier.counts[1] != 0;
}

template <class Vertex>
__device__ void make_empty(const queue<Vertex>& frontier) {
    *frontier.size = 0;
}
template <class Vertex, class Offset>
__device__ void make_empty(const scanned_queue<Vertex, Offset>& frontier) {
    *frontier.counts = 0;
}

}  // namespace detail

/// Runs one step after another in one block, until the frontier is empty or larger than `most`, or until `steps` steps are done.
///
/// Use it if frontiers are small for many steps, as on road graphs, where the launches take longer than the steps. The host continues with
/// whole grids once it sees that the frontier has grown.
///
/// @code
/// __global__ void levels_of_block(const int* offsets, const int* columns, int* levels, int depth, const cte::queue<int> first,
///                                 const cte::queue<int> second, int* done) {
///     const auto level = [&](int step, cte::queue<int> now, cte::queue<int> next) {
///         const int reached = depth + step + 1;
///         const auto reach = [=](int neighbor, int) {
///             if (levels[neighbor] < 0 && atomicCAS(levels + neighbor, -1, reached) < 0) next.push(neighbor);
///         };
///         cte::advance<256>(cte::graph{offsets, columns}, now, reach);
///     };
///     const int steps = cte::run_in_block(first, second, 1024, 1 << 20, level);
///     if (threadIdx.x == 0) *done = steps;
/// }
/// @endcode
///
/// @tparam Queue   the type of the frontiers: a `queue`, or a `scanned_queue` for `advance_balanced`
/// @param first    the frontier; after an even number of steps, what is left of it
/// @param second   another queue, empty; after an odd number of steps, what is left of the frontier. The queue that does not hold
///                 the frontier is empty in the end
/// @param most     the largest frontier that the block takes, in vertices, or in edges of a `scanned_queue`; one that is larger is left
///                 to the host
/// @param steps the largest number of steps
/// @param step     called as `step(number, now, next)` by all threads of the block: it appends the new frontier to `next`
/// @return         the number of steps that were done
///
/// **Required.** A grid of one block. A frontier that overflows ends the steps: `*size` exceeds `capacity`, or `counts[1]` of a
/// `scanned_queue` is not 0. By then, the step that overflowed has run as well, and the frontier that it started from is gone: the host
/// repeats the call from a state that it has saved.
///
/// The call uses 16 bytes of shared memory.
template <class Queue, class Step>
__device__ int run_in_block(Queue first, Queue second, unsigned long long most, int steps, Step step) {
    __shared__ unsigned long long extent;
    __shared__ bool ends;
    int number = 0;
    for (;; ++number) {
        const Queue now = number % 2 == 0 ? first : second, next = number % 2 == 0 ? second : first;
        __syncthreads();
        if (detail::thread_number() == 0) {
            extent = detail::extent_of(now);
            ends = detail::has_overflowed(now);
        }
        __syncthreads();
        if (extent == 0 || extent > most || ends || number == steps) break;
        step(number, now, next);
        __syncthreads();
        if (detail::thread_number() == 0) detail::make_empty(now);
    }
    return number;
}

}  // namespace cte
