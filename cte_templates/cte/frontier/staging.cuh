// What a warp appends to a frontier, collected in shared memory.
#pragma once

#include <cte/check.cuh>
#include <cte/frontier/queue.cuh>

namespace cte {
namespace detail {

/// How many vertices a warp holds back by default: 64 to 256, within 16 KiB per block.
template <int BlockDim, class Vertex>
constexpr int held_back = [] {
    constexpr int fitting = 16384 / (BlockDim / lanes * static_cast<int>(sizeof(Vertex))) / lanes * lanes;
    return fitting < 256 ? fitting : 256;
}();

}  // namespace detail

/// Collects what the warps of a block append, in shared memory, and appends it to a queue 32 vertices at a time.
///
/// Use it if a step appends many vertices. All blocks of a grid increment one counter of the queue: a call of `queue::push` performs an
/// atomic operation there and waits for it, however few lanes append together. `staging::push` performs one in shared memory.
///
/// @code
/// __global__ void level(const int* offsets, const int* columns, int* levels, int depth, const cte::queue<int> now,
///                       const cte::queue<int> next) {
///     __shared__ cte::staging<256, int> staged;
///     staged.clear();
///     const auto reach = [=](int neighbor, int) {
///         if (levels[neighbor] < 0 && atomicCAS(levels + neighbor, -1, depth + 1) < 0) staged.push(neighbor, next);
///     };
///     cte::advance<256>(cte::graph{offsets, columns}, now, reach);
///     staged.flush(next);
/// }
/// @endcode
///
/// @tparam BlockDim  threads of the block: a multiple of 32, up to 1024
/// @tparam Vertex    what the queue holds: an integer of 32 or 64 bits
/// @tparam Places    how many vertices a warp can hold back, a multiple of 32; what it appends past them goes to the queue at once. By
///                   default, as many as fit in 16 KiB per block, up to 256
///
/// **Required.** One object for a block, in shared memory, and one queue between `clear` and `flush`. Each warp calls
/// `clear` before its first `push` and `flush` after its last one, with all lanes.
///
/// An object uses `BlockDim / 32 * Places * sizeof(Vertex)` bytes of shared memory, and some for its counters. A block has 48 KiB for all
/// `__shared__` variables, those of policies included.
template <int BlockDim, class Vertex, int Places = detail::held_back<BlockDim, Vertex>>
struct staging {
    static_assert(std::is_integral_v<Vertex> && (sizeof(Vertex) == 4 || sizeof(Vertex) == 8), "a queue holds integers of 32 or 64 bits");
    static_assert(BlockDim % detail::lanes == 0 && BlockDim >= detail::lanes && BlockDim <= 1024,
                  "BlockDim is the number of threads of the block: a multiple of 32, up to 1024");
    static_assert(Places >= detail::lanes && Places % detail::lanes == 0, "a warp holds back a multiple of 32 vertices");

    /// Discards what this warp holds. The warp calls before its first `push`.
    __device__ void clear() {
        CTE_CHECK(blockDim.x * blockDim.y * blockDim.z == BlockDim);
        __syncwarp();
        if (detail::lane_number() == 0) counts[detail::warp_number()] = 0;
        __syncwarp();
    }

    /// Appends `v`, now or by `flush`. Any lanes may call, at any time, even from within the function passed to `for_each`.
    template <class Queue>
    __device__ void push(Vertex v, const Queue& to) {
        const int warp = detail::warp_number();
        const unsigned place = atomicAdd(counts + warp, 1u);
        if (place < Places) {
            items[warp][place] = v;
        } else {
            atomicMin(counts + warp, static_cast<unsigned>(Places));  // however often it is called, the count does not wrap
            to.push(v);
        }
    }

    /// Appends what this warp holds to the queue. All lanes of the warp call together.
    template <class Queue>
    __device__ void flush(const Queue& to) {
        __syncwarp();
        const int warp = detail::warp_number(), lane = detail::lane_number();
        const unsigned pushed = counts[warp], held = pushed < Places ? pushed : Places;
        for (unsigned first = 0; first < held; first += detail::lanes) {
            const unsigned place = first + lane;
            to.push_if(place < held, place < held ? items[warp][place] : Vertex{});
        }
        clear();
    }

   private:
    Vertex items[BlockDim / detail::lanes][Places];
    unsigned counts[BlockDim / detail::lanes];
};

}  // namespace cte
