// A warp maps the list of its fine tasks straight into shared memory, a strip at a time. From there, lanes reduce their own short tasks,
// one value after another, and all lanes together reduce long ones.
#pragma once

#include <cte/along.cuh>
#include <cte/expansion.cuh>
#include <cte/policies/sub_warp.cuh>

namespace cte {

namespace detail {

/// A warp's strip of values. It holds bytes, so `T` needs no default constructor.
template <class T, int PerLane>
struct strip {
    alignas(T) unsigned char bytes[PerLane * lanes * sizeof(T)];

    __device__ T* values() { return reinterpret_cast<T*>(bytes); }
};
template <int PerLane>
struct strip<nothing, PerLane> {};

/// Reduces `values[from .. bound)`, more than one per lane, in order unless the operator commutes; lane 0 has the result.
template <class T, class Reduce>
__device__ T reduce_long(const T* values, int from, int bound, Reduce& op) {
    const int lane = lane_number(), length = bound - from;
    if constexpr (is_commutative<Reduce>) {
        T sum = values[from + lane];
        for (int i = from + lane + lanes; i < bound; i += lanes) sum = op(sum, values[i]);
        return reduce_lanes<lanes>(sum, lanes, op);
    } else {
        // Each lane reduces a piece of odd length, so that the lanes read from different banks.
        const int piece = (length + lanes - 1) / lanes | 1;
        const int first = from + lane * piece, last = first + piece < bound ? first + piece : bound;
        T sum = values[first < bound ? first : from];
        for (int i = first + 1; i < last; ++i) sum = op(sum, values[i]);
        return reduce_lanes<lanes>(sum, (length + piece - 1) / piece, op);
    }
}

/// Strips of `PerLane` values per lane. All lanes together reduce a task with more than `Long` values in a strip. The rest of a task is not
/// staged if it has more than `Wide` values per lane, or if it is deferred.
template <int PerLane, int Long, int Wide>
struct staged {
    static_assert(Long >= lanes);

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(strip<T, PerLane>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        if (whole_warp()) {
            nothing here;
            return of_whole_warp<BlockDim, Layout>(shared, begin, end, map, op, init, here, [] {}, descriptors...);
        }
        nothing none;
        return one_per_lane::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
    }

    /// The same if all 32 lanes are known to call. Unless `defer` is `nothing`, the rest of a task with more than `Defer::most` places is
    /// passed to `defer(its lane, begin, end)`. If there are values and no `defer`, `mapped()` is called once all is mapped, before the
    /// last strip's reduction if there is one, and maybe also earlier.
    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class Defer, class Mapped, class... D>
    __device__ static T of_whole_warp(strip<T, PerLane>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                                      Defer& defer, const Mapped& mapped, const D&... descriptors) {
        if (listing<Layout, Index>::overflows(begin, end)) {
            nothing none;
            init = sub_warp<lanes>::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
            mapped();
            return init;
        }
        expansion<Layout, Index> tasks(begin, end);
        partial<T> sum{init};
        for (auto from = tasks.mine.start; from < tasks.mine.stop; from = tasks.mine.next(from, length)) {
            // The vote is cheap, and succeeds for few strips of few warps.
            const unsigned giant = __ballot_sync(full_warp, goes_on(tasks.mine, from, giant_from<T, Defer>()));
            if (giant != 0) {
                const int owner = __ffs(giant) - 1;
                if constexpr (!is_nothing<Defer>) {
                    from = leave_giant(begin, tasks.mine, from, owner, defer);
                } else if constexpr (!is_nothing<T>) {
                    from = run_giant(shared, begin, tasks.mine, from, owner, map, sum, op, descriptors...);
                } else {
                    const auto run = [&](const D&... theirs) {
                        const auto along = [&](int, Index first, Index last) {
                            run_along(first, last, [&](Index i) { map(i, theirs...); });
                        };
                        return leave_giant(begin, tasks.mine, from, owner, along);
                    };
                    from = run(shuffle(descriptors, owner)...);
                    __syncwarp();
                }
                if (from == tasks.mine.stop) break;
            }
            map_strip<is_nothing<T> ? 1 : least_mapped>(shared, tasks, from, map, tasks.closed_up(descriptors)...);
            mapped();
            if constexpr (!is_nothing<T>) {
                reduce_strip(shared.values(), tasks.mine, from, sum, op);
                __syncwarp();
            }
        }
        return sum.after(init, op);
    }

   private:
    static constexpr int length = PerLane * lanes;  // of a strip
    // With a reduction, fewer turns are not worth code of their own; without one, even a single turn is.
    static constexpr int least_mapped = PerLane < 4 ? PerLane : 4;

    /// The rest of a task is not staged if it has more places than this.
    template <class T, class Defer>
    __device__ static constexpr int giant_from() {
        if constexpr (is_nothing<Defer>) {
            return is_nothing<T> ? length : Wide * lanes;
        } else {
            return Defer::most;
        }
    }

    /// Whether the lane's task began before `from` and has more than `more` places from there onwards. At most one lane's task does.
    template <class Layout, class Index>
    __device__ static bool goes_on(const listing<Layout, Index>& mine, typename listing<Layout, Index>::place from, int more) {
        return mine.first < from && mine.bound > from && listing<Layout, Index>::between(from, mine.bound) > more;
    }

    /// Passes the rest of a task to `defer`, and returns the task's end.
    template <class Layout, class Index, class Defer>
    __device__ static auto leave_giant(Index begin, const listing<Layout, Index>& mine, typename listing<Layout, Index>::place from,
                                       int owner, Defer& defer) {
        using place = typename listing<Layout, Index>::place;
        const place bound = shuffle(mine.bound, owner);
        const Index shift = shuffle(static_cast<Index>(static_cast<place>(begin) - mine.first), owner);
        defer(owner, static_cast<Index>(from) + shift, static_cast<Index>(bound) + shift);
        return bound;
    }

    /// Runs most of the rest of a long task, without staging. Returns where to go on: before the task's end.
    template <class Layout, class Index, class Map, class T, class Reduce, class... D>
    __device__ static auto run_giant(strip<T, PerLane>& shared, Index begin, listing<Layout, Index>& mine,
                                     typename listing<Layout, Index>::place from, int owner, Map& map, partial<T>& sum, Reduce& op,
                                     const D&... descriptors) {
        using list = listing<Layout, Index>;
        const auto bound = shuffle(mine.bound, owner);
        Index shift = 0;
        if constexpr (!list::contiguous) shift = static_cast<Index>(shuffle(static_cast<typename list::place>(begin) - mine.first, owner));
        partial<T> part{sum.value};
        // What a lane knows about its own task waits in the strip, so that its registers can hold values being loaded.
        struct parked {
            typename list::place first, bound;
            partial<T> sum;
        };
        constexpr bool fits = sizeof(parked) <= PerLane * sizeof(T) && alignof(parked) <= alignof(T);
        parked* const own = reinterpret_cast<parked*>(shared.values()) + (fits ? lane_number() : 0);
        if constexpr (fits) *own = parked{mine.first, mine.bound, sum};
        __syncwarp();
        const auto run = [&](const D&... theirs) {
            const Index to = static_cast<Index>(bound) + shift;
            return run_wide<Wide>(static_cast<Index>(from) + shift, to, [&](Index i) { return map(i, theirs...); }, part, op);
        };
        from = static_cast<typename list::place>(run(shuffle(descriptors, owner)...) - shift);
        __syncwarp();
        if constexpr (fits) {
            mine.first = own->first;
            mine.bound = own->bound;
            sum = own->sum;
            mine.stop = shuffle(mine.bound, lanes - 1);
            __syncwarp();
        }
        const T all = shuffle(part.value, 0);
        if (goes_on(mine, from, 0)) sum.append(all, op);
        return from;
    }

    /// Maps a strip in as few turns as the rest of the list needs, but at least `least_mapped`: turns without work are not free.
    template <int Turns, class T, class Layout, class Index, class Map, class... D>
    __device__ __forceinline__ static void map_strip(strip<T, PerLane>& shared, expansion<Layout, Index>& tasks,
                                                     typename listing<Layout, Index>::place from, Map& map,
                                                     const D&... descriptors) {
        if constexpr (Turns == PerLane) {
            map_turns<Turns>(shared, tasks, from, map, descriptors...);
        } else if (listing<Layout, Index>::between(from, tasks.mine.stop) <= Turns * lanes) {
            map_turns<Turns>(shared, tasks, from, map, descriptors...);
        } else {
            map_strip<Turns < least_mapped ? least_mapped : Turns + 1>(shared, tasks, from, map, descriptors...);
        }
    }

    /// Maps the first `Turns` places of each lane.
    template <int Turns, class T, class Layout, class Index, class Map, class... D>
    __device__ static void map_turns(strip<T, PerLane>& shared, expansion<Layout, Index>& tasks,
                                     typename listing<Layout, Index>::place from, Map& map, const D&... descriptors) {
        constexpr bool anonymous = listing<Layout, Index>::contiguous && sizeof...(D) == 0;  // the owner of a place is never needed
        const auto rest = listing<Layout, Index>::between(from, tasks.mine.stop);
        const auto first = from + lane_number();
#pragma unroll
        for (int turn = 0; turn < Turns; ++turn) {
            const int into = turn * lanes + lane_number();
            const int rank = anonymous ? 0 : tasks.member_at(from + turn * lanes).rank;
            const Index index = tasks.index_at(first + turn * lanes, rank);
            const auto run = [&](const D&... theirs) {
                if (rest <= into) return;
                if constexpr (is_nothing<T>) {
                    map(index, theirs...);
                } else {
                    shared.values()[into] = map(index, theirs...);
                }
            };
            run(shuffle(descriptors, rank)...);
        }
        if constexpr (!is_nothing<T>) __syncwarp();
    }

    template <class Layout, class Index, class T, class Reduce>
    __device__ static void reduce_strip(const T* values, const listing<Layout, Index>& mine,
                                        typename listing<Layout, Index>::place from, partial<T>& sum, Reduce& op) {
        const bool here = mine.meets(from, length);
        const int first = here ? mine.first_in(from) : 0, bound = here ? mine.bound_in(from, length) : 0;
        for (unsigned many = __ballot_sync(full_warp, bound - first > Long); many != 0; many &= many - 1) {
            const int owner = __ffs(many) - 1;
            const T total = shuffle(reduce_long(values, shuffle(first, owner), shuffle(bound, owner), op), 0);
            if (lane_number() == owner) sum.append(total, op);
        }
        if (bound - first <= Long) {
            for (int i = first; i < bound; ++i) sum.append(values[i], op);
        }
    }
};

/// The number of values per lane in a strip: as many as are worth loading at once. It is halved if the strips of a block would take more
/// than 8 kilobytes, and smaller for values of 16 bytes and more, or if the strips would take more than 40 kilobytes.
template <int BlockDim, class T>
constexpr int staged_per_lane = sizeof(T) >= 32 || BlockDim * sizeof(T) > 20 * 1024   ? 1
                                : sizeof(T) >= 16 || BlockDim * sizeof(T) > 10 * 1024 ? 2
                                : is_nothing<T> || BlockDim * sizeof(T) > 1024        ? 4
                                                                                      : 8;

}  // namespace detail

/// A policy: a warp maps its list of fine tasks into shared memory, a strip at a time, and reduces from there.
///
/// Use it if sizes differ, neighboring indices are neighbors in memory, and the reduction is cheap.
///
/// @code
/// const auto square = [=](int i) { return values[i] * values[i]; };
/// const float sum = cte::for_each_index<256, cte::scanned, cte::warp_staged>(begin, end, square, cte::plus{}, 0.0f);
/// if (row < rows) out[row] = sum;
/// @endcode
///
/// The policy keeps the contract of cte/policy.cuh. In the reference kernel (bench/cte_registers.py), a call uses 8192 bytes of
/// shared memory (a strip of 1 to 8 values per lane, fewer if they are large; none for `for_each`) and 32 registers.
struct warp_staged {
    template <int BlockDim, class T>
    using strategy = detail::staged<detail::staged_per_lane<BlockDim, T>, 32, 8>;
    template <int BlockDim, class T, class... Call>
    using temp = detail::strip<T, detail::staged_per_lane<BlockDim, T>>;
    static constexpr bool whole_block = false;

    template <int BlockDim, class Layout, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(temp<BlockDim, T>& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        return strategy<BlockDim, T>::template reduce<BlockDim, Layout>(shared, begin, end, map, op, init, descriptors...);
    }
};

}  // namespace cte
