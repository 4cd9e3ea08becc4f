// The index and the owner of each place in a warp's list of fine tasks, found for 32 places at a time, without a search.
#pragma once

#include <cte/listing.cuh>

namespace cte::detail {

/// Each lane marks the place where its task begins; the number of marks up to a place gives the task that the place belongs to. Empty
/// tasks have no mark, so the others are closed up once: lane k then knows the k-th task that is not empty.
template <class Layout, class Index>
class expansion {
   public:
    using list = listing<Layout, Index>;
    using count = typename list::count;
    using place = typename list::place;

    __device__ expansion(Index begin, Index end) : mine(begin, end), busy_(begin < end) {
        const unsigned some = __ballot_sync(full_warp, busy_);
        all_ = some == full_warp;
        slot_ = all_ ? lane_number() : nth_set_bit(some, lane_number()) % lanes;
        if constexpr (!list::contiguous) shift_ = closed_up(static_cast<count>(begin) - mine.first);
    }

    /// `value` of the k-th task that is not empty, in lane k.
    template <class T>
    __device__ T closed_up(const T& value) const {
        return all_ ? value : shuffle(value, slot_);
    }

    /// The task that a place belongs to: its rank among those that are not empty, and the first lane with one of its places.
    struct membership {
        int rank, head;
    };

    /// The task of the place `from + lane`. Called once for each 32 places, in order.
    __device__ membership member_at(place from) {
        const count into = list::between(from, mine.first);
        const unsigned begins = warp_or(busy_ && mine.first >= from && into < lanes ? 1u << into : 0u);
        const unsigned upto = begins & (2u << lane_number()) - 1u;
        const membership found{begun_ + __popc(upto) - 1, 31 - __clz(upto | 1u)};
        begun_ += __popc(begins);
        return found;
    }

    /// The index of the fine task at the place `at`, which belongs to the task `rank`. All lanes call.
    __device__ Index index_at(place at, int rank) const {
        if constexpr (list::contiguous) {
            return at;
        } else {
            return static_cast<Index>(at + shuffle(shift_, rank));
        }
    }

    /// The lane that owns the task `rank`. All lanes call.
    __device__ int owner_of(int rank) const { return all_ ? rank : shuffle(slot_, rank); }

    list mine;

   private:
    bool busy_, all_;
    int slot_, begun_ = 0;
    count shift_ = 0;
};

}  // namespace cte::detail
