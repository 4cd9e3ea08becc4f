// A block lists the fine tasks of all its threads, and each warp runs an equal, contiguous part of the list. The block scans the sizes
// once; after that there is no barrier until all parts are done.
//
// A warp takes its part a strip at a time. It maps the strip into shared memory, with neighboring lanes on neighboring indices, and
// reduces it from there, with neighboring values in one lane. Marks (a bit where a task begins) show which task a value belongs to.
#pragma once

#include <cte/block.cuh>
#include <cte/policies/sub_warp.cuh>

namespace cte {

namespace detail {

template <int BlockDim, class T>
struct block_memory {
    static constexpr int warps = BlockDim / lanes;
    static constexpr int per_lane = staged_per_thread<BlockDim, T>(BlockDim * 16 + (BlockDim + warps) * sizeof(T));
    listing_memory<BlockDim> lister;
    // By the number of the task among those that are not empty: its first place, and the difference of its indices and places.
    unsigned long long first[BlockDim], shift[BlockDim];
    unsigned marks[warps][per_lane + 1];
    values_of<T, BlockDim * per_lane> values;
    // The reduction of each task within the part where it begins; then, for each part, that of the task that began before the part.
    values_of<T, BlockDim + warps> results;
};

/// One warp's part of the list.
template <int BlockDim, bool Direct, class T, class count>
class block_part {
   public:
    using memory = block_memory<BlockDim, T>;
    static constexpr int per_lane = memory::per_lane;

    __device__ block_part(memory& shared, const block_listing<count>& mine, count from)
        : marks_(shared.marks[warp_number()]),
          first_(reinterpret_cast<const count*>(shared.first)),
          busy_(mine.busy),
          from_(from),
          task_(warp_partition_point(0, mine.busy, [&](int task) { return first_[task] < from; }) - 1),
          begun_before_(task_) {}

    /// Marks where tasks begin within the next `length` places.
    __device__ void mark(int length) {
        const int lane = lane_number();
        if (lane <= per_lane) marks_[lane] = 0;
        __syncwarp();
        for (int task = task_ + 1 + lane; task < busy_ && first_[task] - from_ < length; task += lanes) {
            const unsigned place = static_cast<unsigned>(first_[task] - from_);
            atomicOr(marks_ + place / lanes, 1u << place % lanes);
        }
        __syncwarp();
    }

    /// Calls `run(turn, place, task)` in the lane that has the place. Returns the last place's task, which means nothing if `Direct`.
    template <class Run>
    __device__ int visit(int length, Run run) const {
        const int lane = lane_number();
        int begun = task_;
#pragma unroll
        for (int turn = 0; turn < per_lane; ++turn) {
            const int place = turn * lanes + lane;
            int task = 0;
            if constexpr (!Direct) {
                const unsigned marks = marks_[turn];
                task = begun + __popc(marks & (2u << lane) - 1u);
                begun += __popc(marks);
            }
            if (place < length) run(turn, from_ + place, task);
        }
        return begun;
    }

    /// Reduces `values[0 .. length)` by task. Tasks that end here go to `results`, the task of the last place to `carry`. Returns
    /// the latter.
    template <class Reduce>
    __device__ int reduce(const T* values, int length, T* results, partial<T>& carry, Reduce& op) {
        const int lane = lane_number(), from = lane * per_lane;
        const int here = length - from < per_lane ? length - from : per_lane;
        const unsigned mine = here > 0 ? (1u << here) - 1u : 0u;
        const unsigned begins = __funnelshift_r(marks_[from / lanes], marks_[from / lanes + 1], from % lanes) & mine;
        const int begun = inclusive_sum(__popc(begins));
        const int ending = task_ + begun - __popc(begins);  // the task that ends where the lane's first one begins
        T open = here > 0 ? values[from] : carry.value;  // after the last beginning, or all values if there is none
        partial<T> lead = carry;                         // before the first beginning
        lead.some = false;
        int task = ending + (begins & 1u);
#pragma unroll
        for (int k = 1; k < per_lane; ++k) {
            if (mine >> k & 1u) {
                if (begins >> k & 1u) {
                    if (task == ending) {
                        lead = {open, true};
                    } else {
                        results[task] = open;
                    }
                    ++task;
                    open = values[from + k];
                } else {
                    open = op(open, values[from + k]);
                }
            }
        }
        const int reach = same_segment_below(__ballot_sync(full_warp, begins != 0));
        if (lane == 0 && begins == 0 && carry.some) open = op(carry.value, open);
        // All lanes below one with values also have values, so only the beginnings of tasks matter.
#pragma unroll
        for (int distance = 1; distance < lanes; distance *= 2) {
            const T left = shuffle_up(open, distance);
            if (distance <= reach) open = op(left, open);
        }
        const T left = shuffle_up(open, 1);
        if (begins != 0) {
            lead = joined(lane == 0 ? carry : partial<T>{left, true}, lead, op);
            if (lead.some) put(results, ending, lead.value);
        }
        carry = {shuffle(open, (length - 1) / per_lane), true};
        return task_ + shuffle(begun, lanes - 1);
    }

    /// Stores what is open at the end of the part.
    __device__ void close(const partial<T>& carry, T* results) const {
        if (lane_number() == 0 && carry.some) put(results, task_, carry.value);
    }

    /// Moves on by `length` places, of which the last belongs to `task`.
    __device__ void advance(int length, int task) {
        from_ += length;
        task_ = task;
        __syncwarp();
    }

   private:
    __device__ void put(T* results, int task, const T& value) const {
        results[task == begun_before_ ? BlockDim + warp_number() : task] = value;
    }

    unsigned* const marks_;
    const count* const first_;
    const int busy_;
    count from_;
    int task_;  // the task of the place before the next one
    const int begun_before_;
};

}  // namespace detail

/// A policy: a block lists the fine tasks of all its threads, and each warp runs an equal, contiguous part of the list.
///
/// Use it if the whole block calls, some tasks have more than a thousand fine tasks, and few tasks are empty.
///
/// @code
/// __shared__ cte::storage_for<256, cte::block, float> shared;
/// const auto value = [=](int i) { return values[i]; };
/// const float sum = cte::for_each_index<256, cte::scanned, cte::block>(shared, begin, end, value, cte::plus{}, 0.0f);
/// if (row < rows) out[row] = sum;
/// @endcode
///
/// All threads of the block call together: the policy contains barriers. It keeps the contract of cte/policy.cuh. In the reference
/// kernel (bench/cte_registers.py), a call uses 12672 bytes of shared memory (at most 44 kilobytes) and 40 registers. Descriptors
/// take shared memory of their own: one of each type per thread.
struct block {
    template <int BlockDim, class T, class... Call>
    using temp = detail::block_memory<BlockDim, T>;
    static constexpr bool whole_block = true;

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(temp<BlockDim, T>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        detail::enter_block<BlockDim>();
        if (detail::block_overflows<BlockDim, Layout>(begin, end)) {
            detail::nothing none;
            return sub_warp<detail::lanes>::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
        }
        return reduce_countable<BlockDim, Layout>(shared, begin, end, map, op, init, descriptors...);
    }

    /// The same for tasks whose fine tasks `Index` can count. The block has passed a barrier since `shared` was last used.
    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce_countable(temp<BlockDim, T>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                                         const D&... descriptors) {
        using namespace detail;
        using count = std::make_unsigned_t<Index>;
        constexpr bool direct = std::is_same_v<Layout, scanned> && sizeof...(D) == 0;  // the owner of a place is never needed
        const count size = begin < end ? static_cast<count>(end - begin) : 0;
        const block_listing<count> mine = shared.lister.list(size);
        const count shift = static_cast<count>(begin) - mine.first;
        if constexpr (direct && is_nothing<T>) {
            for (count place = thread_number(); place < mine.total; place += BlockDim) map(static_cast<Index>(shift + place));
            __syncthreads();
            return init;
        } else {
            auto& columns = descriptor_storage<BlockDim, D...>();
            if (size != 0) {
                reinterpret_cast<count*>(shared.first)[mine.rank] = mine.first;
                if (!direct) reinterpret_cast<count*>(shared.shift)[mine.rank] = shift;
                columns.put(mine.rank, descriptors...);
            }
            __syncthreads();
            const count part = mine.total == 0 ? 0 : ((mine.total - 1) / BlockDim + 1) * lanes;
            run_part<BlockDim, direct, T, Index>(shared, mine, part, shift, map, op, init, columns);
            __syncthreads();
            T result = init;
            if constexpr (!is_nothing<T>) {
                if (size != 0) result = op(init, collected(shared.results.begin(), mine, part, BlockDim, op));
            }
            __syncthreads();
            return result;
        }
    }

   private:
    template <int BlockDim, bool Direct, class T, class Index, class count, class Map, class Reduce, class Columns>
    __device__ static void run_part(temp<BlockDim, T>& shared, const detail::block_listing<count>& mine, count part, count shift,
                                    Map& map, Reduce& op, const T& init, Columns& columns) {
        using namespace detail;
        constexpr int per_lane = temp<BlockDim, T>::per_lane, strip = per_lane * lanes;
        const int warp = warp_number(), lane = lane_number();
        count from = warp * part;
        if (from >= mine.total) return;
        const count bound = mine.total - from < part ? mine.total : from + part;
        block_part<BlockDim, Direct, T, count> places(shared, mine, from);
        const count* const shifts = reinterpret_cast<const count*>(shared.shift);
        const auto value_at = [&](count place, int task) {
            const auto run = [&](const auto&... theirs) {
                return map(static_cast<Index>((Direct ? shift : shifts[task]) + place), theirs...);
            };
            return columns.run(task, run);
        };
        partial<T> carry{init};
        for (; from < bound; from += strip) {
            const int length = bound - from < strip ? static_cast<int>(bound - from) : strip;
            places.mark(length);
            if constexpr (is_nothing<T>) {
                places.advance(length, places.visit(length, [&](int, count place, int task) { value_at(place, task); }));
            } else {
                T* const values = shared.values.begin() + warp * strip;
                slot<T> got[per_lane];  // all loads are issued before the first value is stored
                places.visit(length, [&](int turn, count place, int task) { got[turn].value = value_at(place, task); });
#pragma unroll
                for (int turn = 0; turn < per_lane; ++turn) {
                    if (turn * lanes + lane < length) values[turn * lanes + lane] = got[turn].value;
                }
                __syncwarp();
                places.advance(length, places.reduce(values, length, shared.results.begin(), carry, op));
            }
        }
        if constexpr (!is_nothing<T>) places.close(carry, shared.results.begin());
    }

    /// The reduction of a task over all parts that it lies in.
    template <class T, class count, class Reduce>
    __device__ static T collected(const T* results, const detail::block_listing<count>& mine, count part, int threads,
                                  Reduce& op) {
        T sum = results[mine.rank];
        for (int warp = 1; warp < threads / detail::lanes; ++warp) {
            const count border = warp * part;
            if (mine.first < border && border - mine.first < mine.size) sum = op(sum, results[threads + warp]);
        }
        return sum;
    }
};

}  // namespace cte
