// Steps of a small frontier without the host: one block runs them until the frontier outgrows it.
#pragma once

#include <cte/frontier/queue.cuh>

namespace cte {

/// Runs one step after the other in one block, until the frontier is empty, has more than `most` vertices, or `steps` are done.
///
/// Use it if frontiers are small for many steps, as on road graphs, where the launches take longer than the steps. The host goes
/// on with whole grids once it sees that the frontier has grown.
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
/// @tparam Vertex  what the queues hold
/// @param first    the frontier; after an even number of steps, what is left of it
/// @param second   another queue, empty; after an odd number of steps, what is left of the frontier. The queue that does not hold
///                 the frontier is empty in the end
/// @param most     the largest frontier that the block takes; one that is larger is left to the host
/// @param steps    the most steps
/// @param step     called as `step(number, now, next)` by all threads of the block: it appends the new frontier to `next`
/// @return         the number of steps that were done
///
/// **Required.** A grid of one block. A frontier that overflows `capacity` ends the steps, and `*size` exceeds `capacity`. The steps before
/// it are done then, and the frontier that it came of is gone: the host repeats the call from a state that it has kept.
///
/// The call takes 8 bytes of shared memory.
template <class Vertex, class Step>
__device__ int run_in_block(queue<Vertex> first, queue<Vertex> second, unsigned long long most, int steps, Step step) {
    __shared__ unsigned long long size;
    int number = 0;
    for (;; ++number) {
        const queue<Vertex> now = number % 2 == 0 ? first : second, next = number % 2 == 0 ? second : first;
        __syncthreads();
        if (detail::thread_number() == 0) size = *now.size;
        __syncthreads();
        if (size == 0 || size > most || size > now.capacity || number == steps) break;
        step(number, now, next);
        __syncthreads();
        if (detail::thread_number() == 0) *now.size = 0;
    }
    return number;
}

}  // namespace cte
