// Merge path: the walk through a list of tasks and the list of all their fine tasks, which takes a fine task while the current task
// has one, and the task's end otherwise. Equal pieces of the walk are equal work, whatever the sizes (Merrill, Garland, SC 2016).
#pragma once

#include <cte/block.cuh>

namespace cte::detail {

/// A thread's piece of the walk: at most `Steps` steps.
template <class T, int Steps>
class path_piece {
   public:
    partial<T> open;  // what stands behind the last end

    __device__ explicit path_piece(const T& init) : open{init} {}

    __device__ bool closes() const { return ends_ != 0; }

    /// Takes `steps` steps from where the next end is that of `task` and the next fine task is `place`.
    template <class count, class BehindOf, class ValueOf, class Reduce>
    __device__ void walk(int task, count place, int steps, BehindOf behind_of, ValueOf value_of, Reduce& op) {
        count behind = steps > 0 ? behind_of(task) : 0;
#pragma unroll
        for (int k = 0; k < Steps; ++k) {
            if (k < steps) {
                if (place < behind) {
                    open.append(value_of(place), op);
                    ++place;
                } else {
                    ended_[k].value = open.value;
                    ends_ |= 1u << k;
                    if (open.some) filled_ |= 1u << k;
                    open.some = false;
                    ++task;
                    if (k + 1 < steps) behind = behind_of(task);
                }
            }
        }
    }

    /// Calls `put(task, reduction)` for all tasks that ended; `ahead` stood open ahead of the piece.
    template <class Reduce, class Put>
    __device__ void finish(int task, partial<T> ahead, Reduce& op, Put put) const {
#pragma unroll
        for (int k = 0; k < Steps; ++k) {
            if (ends_ >> k & 1u) {
                put(task, joined(ahead, partial<T>{ended_[k].value, (filled_ >> k & 1u) != 0}, op));
                ahead.some = false;
                ++task;
            }
        }
    }

   private:
    slot<T> ended_[Steps];
    unsigned ends_ = 0, filled_ = 0;
};

}  // namespace cte::detail
