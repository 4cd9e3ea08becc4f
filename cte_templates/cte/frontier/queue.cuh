// A frontier as a list of vertices, to which all threads of a grid append.
#pragma once

#include <cte/warp.cuh>

#include <type_traits>

namespace cte {

/// A frontier as a list of vertices in global memory. The lanes of a warp that append together share one atomic operation.
///
/// Use it if few vertices are active: the cost of a step then depends only on its vertices and their edges. With a `bitmap` or an array of
/// states, a step looks at every vertex, but no vertex needs a position in a list, and the threads do not all update one counter.
///
/// A queue is a view: pass the pointers as parameters of the kernel. `size` counts every vertex that a step tries to append. If that is
/// more than `capacity`, those past it were not stored: the host sees `*size > capacity`, and repeats the step, from the state before it,
/// with more memory. A vertex may be appended more than once, unless a `bitmap` or an atomic operation of your own shows which call is the
/// first; in that case, a capacity equal to the number of vertices is always enough.
///
/// @code
/// __global__ void odd_rows(int rows, const int* offsets, int* items, unsigned long long* size, unsigned long long capacity) {
///     const cte::queue<int> odd{items, size, capacity};
///     const int row = blockIdx.x * 256 + threadIdx.x;
///     if (row < rows && (offsets[row + 1] - offsets[row]) % 2 != 0) odd.push(row);
/// }
/// @endcode
///
/// @tparam Vertex  what the queue holds: an integer of 32 or 64 bits
template <class Vertex>
struct queue {
    static_assert(std::is_integral_v<Vertex> && (sizeof(Vertex) == 4 || sizeof(Vertex) == 8), "a queue holds integers of 32 or 64 bits");

    Vertex* items;
    unsigned long long* size;
    unsigned long long capacity;

    /// Appends `v`. Any lanes may call, at any time, even from within the function passed to `for_each`: lanes that
    /// happen to append to this queue together share an atomic operation.
    __device__ void push(Vertex v) const {
        // If the compiler has merged several calls into one, lanes may have different queues.
        append(v, __match_any_sync(__activemask(), reinterpret_cast<unsigned long long>(size)));
    }

    /// Appends `v` in lanes where `wanted`. All lanes of a warp call together, for one queue: one atomic operation.
    __device__ void push_if(bool wanted, Vertex v) const {
        const unsigned some = __ballot_sync(detail::full_warp, wanted);
        if (wanted) append(v, some);
        __syncwarp();
    }

    /// The number of vertices that are stored. Nothing may be appended meanwhile.
    __device__ unsigned long long length() const { return *size < capacity ? *size : capacity; }

   private:
    /// All lanes in `together` call it together.
    __device__ void append(Vertex v, unsigned together) const {
        const int leader = __ffs(together) - 1, lane = detail::lane_number();
        unsigned long long first = 0;
        if (lane == leader) first = atomicAdd(size, static_cast<unsigned long long>(__popc(together)));
        const unsigned long long place = detail::shuffle(first, leader, together) + __popc(together & detail::lanes_below(lane));
        if (place < capacity) items[place] = v;
    }
};

}  // namespace cte
