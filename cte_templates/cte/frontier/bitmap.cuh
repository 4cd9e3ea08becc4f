// A set of vertices, with one bit for each.
#pragma once

#include <cte/version.cuh>

namespace cte {

/// A set of vertices in global memory, with one bit for each: a frontier, the visited vertices, or those in a queue.
///
/// Use it to append each vertex to a queue once (`set` returns true in one thread), and as a frontier if many vertices are active: 32
/// of them take one word, which a warp reads at once.
///
/// A bitmap is a view of `words_for(vertices)` words, all of which are 0 at first.
///
/// @code
/// __global__ void heads(int edges, const int* columns, unsigned* words, int* items, unsigned long long* size, unsigned long long room) {
///     const cte::bitmap seen{words};
///     const cte::queue<int> each_once{items, size, room};
///     const int edge = blockIdx.x * 256 + threadIdx.x;
///     if (edge < edges && seen.set(columns[edge])) each_once.push(columns[edge]);
/// }
/// @endcode
struct bitmap {
    unsigned* words;

    /// The number of words for a set of up to `vertices` vertices.
    __host__ __device__ static constexpr unsigned long long words_for(unsigned long long vertices) { return (vertices + 31) / 32; }

    __device__ bool test(unsigned long long v) const { return words[v / 32] >> v % 32 & 1u; }

    /// Adds `v`. Returns true in one of the threads that add it, and only if it was not there before.
    __device__ bool set(unsigned long long v) const {
        const unsigned bit = 1u << v % 32;
        // A stale word costs at most an atomic operation: a vertex is not removed while it is being added.
        if (words[v / 32] & bit) return false;
        return (atomicOr(words + v / 32, bit) & bit) == 0;
    }

    /// Removes `v`. No thread may call `set` or `test` for `v` at the same time.
    __device__ void clear(unsigned long long v) const { atomicAnd(words + v / 32, ~(1u << v % 32)); }
};

}  // namespace cte
