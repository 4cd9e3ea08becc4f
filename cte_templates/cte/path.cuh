// Merge path: a walk through a list of tasks and the list of all their fine tasks. Each step takes a fine task if the current task has
// one left, else the task's end. Equal pieces of the walk are equal work, whatever the sizes (Merrill, Garland, SC 2016).
#pragma once

#include <cte/block.cuh>

namespace cte::detail {

/// A thread's piece of the walk: at most `Steps` steps.
template <class T, int Steps>
class path_piece {
   public:
    partial<T> open;  // the values after the last end

    __device__ explicit path_piece(const T& init) : open{init}, lead_{init} {}

    __device__ bool closes() const { return ends_ != 0; }

    /// Takes `steps` steps. At the first, the next end is that of `task` and the next fine task is `place`. `result_of` makes the
    /// results of tasks that lie in the piece.
    template <class count, class BoundOf, class ValueOf, class Reduce, class ResultOf>
    __device__ void walk(int task, count place, int steps, BoundOf bound_of, ValueOf value_of, Reduce& op, ResultOf result_of) {
        count bound = steps > 0 ? bound_of(task) : 0;
#pragma unroll
        for (int k = 0; k < Steps; ++k) {
            if (k < steps) {
                if (place < bound) {
                    open.append(value_of(place), op);
                    ++place;
                } else {
                    if (ends_ == 0) {
                        lead_ = open;
                    } else {
                        result_[k].value = result_of(open);
                    }
                    ends_ |= 1u << k;
                    open.some = false;
                    ++task;
                    if (k + 1 < steps) bound = bound_of(task);
                }
            }
        }
    }

    /// Calls `first(task, reduction)` for the first task that ended in the piece, if any, and `put(task, result)` for the others.
    /// `preceding` was open before the piece.
    template <class Reduce, class First, class Put>
    __device__ void finish(int task, const partial<T>& preceding, Reduce& op, First first, Put put) const {
        if (ends_ == 0) return;
        first(task, joined(preceding, lead_, op));
        const unsigned others = ends_ & (ends_ - 1);
#pragma unroll
        for (int k = 1; k < Steps; ++k) {
            if (others >> k & 1u) put(++task, result_[k].value);
        }
    }

   private:
    partial<T> lead_;  // the first task that ended
    slot<T> result_[Steps];
    unsigned ends_ = 0;
};

}  // namespace cte::detail
