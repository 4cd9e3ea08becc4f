// Long tasks that the warps of a block share. A warp that has one posts it on a board in shared memory: warps that have finished their own
// tasks take pieces of it before they leave. No barrier is needed. Only the owner waits without a limit, for pieces that others took;
// others wait only for a bounded time, for tasks to be posted.
#pragma once

#include <cte/bundle.cuh>
#include <cte/check.cuh>
#include <cte/tasks.cuh>
#include <cte/warp.cuh>

namespace cte::detail {

/// Whether a closure has no padding and no member with several representations of one value, so that equal closures have equal bytes.
template <class F>
constexpr bool has_no_gaps = std::has_unique_object_representations_v<F>;
template <class F>
constexpr bool has_no_gaps<uniform<F>> = has_no_gaps<F>;
template <class F>
constexpr bool has_no_gaps<without_value<F>> = has_no_gaps<F>;

/// Whether the bytes of a function are compared before another warp runs fine tasks with it: that warp does so only if
/// its own copy has the same bytes (so padding that differs prevents it). Such functions go to the board word by word,
/// which tells the compiler that their pointers may be written through. A `uniform` function is known to be the same;
/// it is compared in debug builds only.
template <class F>
constexpr bool is_compared = !std::is_empty_v<F> && (!is_uniform<F> || (CTE_CHECKS && has_no_gaps<F>));

/// Whether equal bytes mean equal functions. A closure that captures by reference refers to its own thread's variables; it has
/// members of reference type, and so no standard layout.
template <class F>
constexpr bool is_comparable = std::is_standard_layout_v<F> && std::is_trivially_copyable_v<F>;

template <int, class F, bool = is_compared<F> && is_comparable<F>>
struct compared {
    __device__ explicit compared(const F&) {}
};
template <int number, class F>
struct compared<number, F, true> {
    F f;
    __device__ explicit compared(const F& f) : f(f) {}
};

template <class Map, class Reduce>
struct closure_of : compared<0, Map>, compared<1, Reduce> {
    __device__ closure_of(const Map& map, const Reduce& op) : compared<0, Map>(map), compared<1, Reduce>(op) {}
};

/// What another warp needs to know about a task.
template <class Index, class Map, class Reduce, class... D>
struct shared_task {
    alignas(8) alignas(closure_of<Map, Reduce>) closure_of<Map, Reduce> closure;
    alignas(8) Index begin;
    Index end;
    bundle<D...> descriptors;
};

/// A variable whose address identifies the types of a call. Only calls with the same types understand each other's tasks and values.
template <class Task, class T>
__device__ unsigned char kind_of_task;

constexpr int words_of_task = 24;  // each lane carries at most one

/// The largest number of pieces of a task. Without values, more pieces take no memory.
template <class T>
constexpr int pieces_of = is_nothing<T> ? 48 : 16;

/// Whether calls may share their tasks. Larger values and descriptors would take registers, and so warps, from all calls; large blocks have
/// no memory for large values. Without a reduction, fine tasks write to memory: comparing closures would then cost the compiler what it
/// knows about aliasing, which is worth more than the gain that sharing is certain to bring.
template <int BlockDim, class T, class Index, class Map, class Reduce, class... D>
constexpr bool may_share = BlockDim > lanes && sizeof(T) <= (BlockDim > 512 ? 8 : 32) && (0 + ... + sizeof(D)) <= 8 &&
                           sizeof(shared_task<Index, Map, Reduce, D...>) <= words_of_task * 4 &&
                           (is_uniform<Map> || (!is_nothing<T> && is_comparable<Map>)) &&
                           (is_uniform<Reduce> || is_comparable<Reduce>) && (true && ... && std::is_trivially_copyable_v<D>);

/// Which warp has posted which task. All accesses are atomic operations, acquire loads or relaxed loads. Nothing needs
/// initialization: what an earlier block left here does not carry this block's tag, or belongs to a task without pieces left.
template <int BlockDim>
struct board {
    static constexpr int warps = BlockDim / lanes;
    // The block's tag if a task is posted or soon will be; the tag plus 1 if the warp arrived without a task to share.
    unsigned tag[warps];
    unsigned number[warps];            // of the warp's task
    unsigned under_way[warps];         // pieces of it that are not finished
    unsigned long long kind[warps];    // of the call
    unsigned long long ticket[warps];  // the block's tag, the task's number, the number of pieces left to take
    unsigned task[warps][words_of_task];
};

template <int BlockDim>
__device__ __forceinline__ board<BlockDim>& board_of_block() {
    __shared__ board<BlockDim> shared;
    return shared;
}

/// The results of the pieces of a warp's task.
template <int BlockDim, class T>
__device__ __forceinline__ unsigned* values_of_warp(int warp) {
    constexpr int words = pieces_of<T> * ((sizeof(T) + 3) / 4);
    __shared__ unsigned shared[BlockDim / lanes * words];
    return shared + warp * words;
}

__device__ __forceinline__ unsigned address_of(const void* shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }

// Accesses to the board, in PTX. nvcc's functions lose the address space, and generic instructions are slower. The
// functions' fences also make ptxas keep the results of all atomics of a kernel.

/// Acquire load of a word.
__device__ __forceinline__ unsigned look_at(const unsigned* word) {
    unsigned found;
    asm("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(found) : "r"(address_of(word)) : "memory");
    return found;
}
__device__ __forceinline__ unsigned long long look_at(const unsigned long long* word) {
    unsigned long long found;
    asm("ld.acquire.cta.shared.u64 %0, [%1];" : "=l"(found) : "r"(address_of(word)) : "memory");
    return found;
}

/// A cheaper read that orders nothing, for when nothing else is read afterwards. `place` is the word's address in shared memory.
__device__ __forceinline__ unsigned glance_at(unsigned place) {
    unsigned found;
    asm("ld.relaxed.cta.shared.u32 %0, [%1];" : "=r"(found) : "r"(place) : "memory");
    return found;
}

/// Keeps `value` in a register from here on. Otherwise, the compiler would compute it where it is used, and wait there.
__device__ __forceinline__ unsigned known_here(unsigned value) {
    asm("" : "+r"(value) : : "memory");
    return value;
}

/// Release store of a word, as an atomic exchange, because racecheck reports stores.
__device__ __forceinline__ void put(unsigned* word, unsigned value) {
    asm("{ .reg .b32 before; atom.release.cta.shared.exch.b32 before, [%0], %1; }" : : "r"(address_of(word)), "r"(value) : "memory");
}
__device__ __forceinline__ void put(unsigned long long* word, unsigned long long value) {
    asm("{ .reg .b64 before; atom.release.cta.shared.exch.b64 before, [%0], %1; }" : : "r"(address_of(word)), "l"(value) : "memory");
}

__device__ __forceinline__ void count_down(unsigned* word) {
    asm("red.release.cta.shared.add.u32 [%0], %1;" : : "r"(address_of(word)), "r"(-1u) : "memory");
}

/// Decrements a word if it is still `seen`. Returns whether it was.
__device__ __forceinline__ bool count_down_from(unsigned long long* word, unsigned long long seen) {
    unsigned long long found;
    asm("atom.acq_rel.cta.shared.cas.b64 %0, [%1], %2, %3;"
        : "=l"(found)
        : "r"(address_of(word)), "l"(seen), "l"(seen - 1)
        : "memory");
    return found == seen;
}

/// Whether two words may be the address of a thread's local variable.
__device__ __forceinline__ bool may_be_local(unsigned low, unsigned high) {
    int local;
    asm("{ .reg .pred p; isspacep.local p, %1; selp.s32 %0, 1, 0, p; }"
        : "=r"(local)
        : "l"(static_cast<unsigned long long>(high) << 32 | low));
    return local != 0;
}

/// A warp at the board. All lanes of the warp call each function together.
template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
class sharing {
   public:
    using task = shared_task<Index, Map, Reduce, D...>;

    /// A piece of a task: its number, counted down to 1 for the last piece, or the reason why there is none.
    struct part {
        int number;
        Index begin, end;
        bundle<D...> descriptors;
    };
    static constexpr int none_left = 0, other_closure = -1;

    __device__ sharing() : board_(board_of_block<BlockDim>()) {}

    /// Tells other warps that this one has come and has nothing to share.
    __device__ void pass() {
        if (lane_number() == 0) atomicExch(&board_.tag[warp_number()], tag() + 1);
    }

    /// Tells other warps that this one will post a task.
    __device__ void announce() {
        if (lane_number() == 0) {
            atomicExch(&board_.kind[warp_number()], kind());
            atomicExch(&board_.ticket[warp_number()], 0ull);
            put(&board_.tag[warp_number()], tag());
        }
    }

    /// Posts a task, which is the same in all lanes. The warp's previous task is complete.
    __device__ void put_up(const task& mine) {
        const unsigned word = word_of_lane(mine), next = __shfl_down_sync(full_warp, word, 1);
        const bool pair = lane_number() % 2 == 0 && lane_number() + 1 < closure_words;
        const bool alone = __any_sync(full_warp, pair && may_be_local(word, next));
        if (lane_number() < words_of_task) atomicExch(&board_.task[warp_number()][lane_number()], word);
        __syncwarp();
        if (lane_number() == 0) {
            const unsigned some = pieces_in(mine.begin, mine.end);
            atomicExch(&board_.under_way[warp_number()], some);
            atomicExch(&board_.kind[warp_number()], alone ? 0ull : kind());
            const unsigned number = atomicAdd(&board_.number[warp_number()], 1u);
            put(&board_.ticket[warp_number()], static_cast<unsigned long long>(tag()) << 32 | (number & 0xffffffu) << 8 | some);
            put(&board_.tag[warp_number()], tag());
        }
        __syncwarp();
    }

    /// Waits until all pieces of the warp's task are finished; all have been taken. `more`: whether the warp has more tasks to post.
    __device__ void wait(bool more) {
        if (!more) pass();
        while (__shfl_sync(full_warp, lane_number() == 0 ? look_at(&board_.under_way[warp_number()]) : 0, 0) != 0) __nanosleep(32);
        __syncwarp();
    }

    /// The result of the complete task [begin, end), in all lanes.
    __device__ T value(Index begin, Index end, const T& like, Reduce& op) {
        if constexpr (is_nothing<T>) {
            return like;
        } else {
            const int some = pieces_in(begin, end);
            T piece = like;
            if (lane_number() < some) {
                unsigned* const values = values_of_warp<BlockDim, T>(warp_number());
                int at = (some - 1 - lane_number()) * words;
                piece = by_words(like, [&](unsigned) { return look_at(values + at++); });
            }
            return shuffle(reduce_lanes<lanes>(piece, some, op), 0);
        }
    }

    /// Takes the next piece of the task that the warp `target` has posted, if its closure is that of `own`.
    __device__ part take(int target, const task& own) {
        const unsigned closure = word_of_lane(own);
        while (true) {
            unsigned long long seen = 0;
            if (lane_number() == 0) {
                const unsigned long long ticket = look_at(&board_.ticket[target]);
                if (target == warp_number() || (ticket >> 32 == tag() && look_at(&board_.kind[target]) == kind())) seen = ticket;
            }
            const int number = __shfl_sync(full_warp, static_cast<int>(seen & 0xff), 0);
            if (number == 0) return {none_left, 0, 0, own.descriptors};
            __syncwarp();
            const unsigned word = lane_number() < words_of_task ? look_at(&board_.task[target][lane_number()]) : 0;
            const bool same = target == warp_number() || __all_sync(full_warp, word == closure || lane_number() >= closure_words);
            CTE_CHECK((same || !is_uniform<Map>) && "the captures of a cte::uniform function differ in a block");
            __syncwarp();
            // As long as the ticket is the same, what was read belongs to its task.
            const bool got = lane_number() == 0 && same && count_down_from(&board_.ticket[target], seen);
            __syncwarp();
            if (__any_sync(full_warp, got)) {
                int turn = 0;
                const task theirs = by_words(own, [&](unsigned) { return __shfl_sync(full_warp, word, turn++); });
                return {number, start_of(theirs.begin, theirs.end, number), start_of(theirs.begin, theirs.end, number - 1),
                        theirs.descriptors};
            }
            if (!same) return {other_closure, 0, 0, own.descriptors};
        }
    }

    /// Hands in the result of a piece, which lane 0 holds.
    __device__ void hand_in(int target, int number, const T& found) {
        if constexpr (!is_nothing<T>) {
            unsigned* const values = values_of_warp<BlockDim, T>(target);
            int at = (number - 1) * words;
            if (lane_number() == 0) by_words(found, [&](unsigned word) { return atomicExch(values + at++, word); });
        }
        __syncwarp();
        if (lane_number() == 0) count_down(&board_.under_way[target]);
    }

    /// The lane's place among the tags of all warps.
    __device__ unsigned place_of_tags() const { return address_of(&board_.tag[min(lane_number(), warps - 1)]); }

    /// Whether, according to the tags `found`, no warp has anything to share and none is still away. The warp itself has nothing left, so
    /// it need not be left out. Most warps that have not come yet are about to, so this looks again for a while, without `__nanosleep`.
    __device__ bool none_shares(unsigned found) const {
        if constexpr (!awaits) {
            return __all_sync(full_warp, found != tag());
        } else {
#pragma unroll 1
            for (int looks = 0; !__all_sync(full_warp, found == tag() + 1); found = glance_at(place_of_tags())) {
                // A warp that shares tasks in a `scanned` call is not away.
                if (++looks == most_looks || __any_sync(full_warp, found == tag() || found == tag_of(0))) return false;
            }
            return true;
        }
    }

    /// A warp that has posted a task with pieces left; -1 if there is none and none is expected soon. If tasks are `disjoint`, this waits a
    /// little, once, for warps that have not come yet: a warp without a task arrives before those that first read where theirs lie.
    __device__ int find() {
        for (int patience = 16, naps = most_naps; patience >= 0;) {
            const unsigned found = is_other() ? look_at(&board_.tag[lane_number()]) : tag() + 1;
            bool up = found == tag() && look_at(&board_.kind[lane_number()]) == kind(), open = false;
            if (up) {
                const unsigned long long ticket = look_at(&board_.ticket[lane_number()]);
                open = ticket >> 32 == tag() && (ticket & 0xff) != 0;
            }
            const unsigned some = __ballot_sync(full_warp, open);
            if (some != 0) {
                const unsigned above = some & ~lanes_below(warp_number());
                return __ffs(above != 0 ? above : some) - 1;
            }
            if (naps > 0 && __any_sync(full_warp, up)) {
                --naps;
                __nanosleep(64);
                continue;
            }
            // A warp that shares tasks in a `scanned` call is not away.
            const bool absent = awaits && found != tag() && found != tag() + 1 && found != tag_of(0);
            if (!__any_sync(full_warp, absent)) return -1;
            // The absent warps do not call, or only much later.
            if (patience-- == 0 && absent) atomicCAS(&board_.tag[lane_number()], found, tag() + 1);
            __nanosleep(256);
        }
        return -1;
    }

   private:
    using count = std::make_unsigned_t<Index>;
    static constexpr bool awaits = std::is_same_v<Layout, disjoint>;
    static constexpr int pieces = pieces_of<T>, warps = BlockDim / lanes, words = is_nothing<T> ? 0 : (sizeof(T) + 3) / 4;
    static constexpr int last_ones = pieces / 2;
    static constexpr int most_looks = 24;         // without `__nanosleep`
    static constexpr int most_naps = 1 << 14;     // a bound, in case what an earlier block left looks like a task to be posted
    static constexpr int least_unit = 4 * lanes;  // taking a piece costs less than running this many, four turns at a time
    static constexpr int closure_words = std::is_empty_v<decltype(task::closure)> ? 0 : (sizeof(task::closure) + 7) / 8 * 2;

    __device__ bool is_other() const { return lane_number() < warps && lane_number() != warp_number(); }

    __device__ static unsigned long long kind() { return reinterpret_cast<unsigned long long>(&kind_of_task<task, T>); }

    /// A block's tag: an even number.
    __device__ static unsigned tag_of(unsigned block) { return (block + 0x5bd1e995u) * 2; }

    /// This block's tag. If no warp asks which warps have come, all blocks share one tag, which is known before the block's number is.
    __device__ static unsigned tag() {
        return tag_of(awaits ? blockIdx.x * 0x9e3779b1u + blockIdx.y * 0x85ebca6bu + blockIdx.z * 0xc2b2ae35u : 0);
    }

    /// The lane's word of a task.
    __device__ static unsigned word_of_lane(const task& of) {
        unsigned word = 0;
        int turn = 0;
        by_words(of, [&](unsigned of_turn) {
            if (turn++ == lane_number()) word = of_turn;
            return of_turn;
        });
        return word;
    }

    /// The unit of a task's pieces. The last `last_ones` pieces have one unit each, those before have three: small pieces at the end let
    /// warps finish at about the same time.
    __device__ static count unit_of(count size) {
        return (size / (last_ones + 3 * (pieces - last_ones)) / least_unit + 1) * least_unit;
    }

    __device__ static int pieces_in(Index begin, Index end) {
        const count size = size_of(begin, end);
        const int units = static_cast<int>((size - 1) / unit_of(size)) + 1;
        return units <= last_ones ? units : last_ones + (units - last_ones + 2) / 3;
    }

    /// Where a piece begins; pieces are counted down to 1, the last. The task ends where piece 0 would begin.
    __device__ static Index start_of(Index begin, Index end, int piece) {
        const count size = size_of(begin, end), rest = (piece <= last_ones ? piece : 3 * piece - 2 * last_ones) * unit_of(size);
        return rest < size ? static_cast<Index>(static_cast<count>(end) - rest) : begin;
    }

    board<BlockDim>& board_;
};

}  // namespace cte::detail
