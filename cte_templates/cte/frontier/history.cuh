// The vertices that a block has recently processed (Merrill, Garland, Grimshaw, PPoPP 2012: history culling).
#pragma once

#include <cte/warp.cuh>

#include <type_traits>

namespace cte {

/// A small hash table in shared memory of the vertices that a block has recently processed.
///
/// Use it to drop most duplicates from a frontier, if the ones that remain only cost time and do not change results: a
/// table knows only vertices that the same block has processed, and forgets one as soon as another takes its place. It
/// has no false positives: a vertex that the block sees for the first time is never reported as a duplicate.
///
/// @code
/// __global__ void fewer(const cte::queue<int> found, const cte::queue<int> next) {
///     __shared__ cte::history<int, 1024> met;
///     met.forget();
///     cte::filter<256>(found, next, [&](int v) { return !met.again(v); });
/// }
/// @endcode
///
/// @tparam Vertex  a vertex: an integer of 32 or 64 bits. The value with all bits set is reserved and is not a vertex
/// @tparam Slots   the number of places, a power of two
///
/// A table uses `Slots * sizeof(Vertex)` bytes of shared memory.
template <class Vertex, int Slots>
struct history {
    static_assert(std::is_integral_v<Vertex> && (sizeof(Vertex) == 4 || sizeof(Vertex) == 8), "vertices are integers of 32 or 64 bits");
    static_assert(Slots > 0 && (Slots & (Slots - 1)) == 0, "the number of slots of a cte::history must be a power of two");

    /// Empties the table. All threads of the block call together.
    __device__ void forget() {
        __syncthreads();
        for (int slot = detail::thread_number(); slot < Slots; slot += blockDim.x * blockDim.y * blockDim.z) met[slot] = ~word{0};
        __syncthreads();
    }

    /// Returns whether the table holds `v`, and stores it. If several threads ask about a new vertex at the same time, at least one gets
    /// false.
    __device__ bool again(Vertex v) {
        const word mine = static_cast<word>(v);
        return atomicExch(met + mine % Slots, mine) == mine;
    }

   private:
    using word = std::conditional_t<sizeof(Vertex) == 4, unsigned, unsigned long long>;
    word met[Slots];
};

}  // namespace cte
