// Chooses for each warp, from the sizes of its tasks, how to run them.
#pragma once

#include <cte/along.cuh>
#include <cte/policies/warp.cuh>
#include <cte/policies/warp_chunked.cuh>
#include <cte/policies/warp_staged.cuh>
#include <cte/sharing.cuh>
#include <cte/storage.cuh>

namespace cte {

/// A policy, and the default: each warp chooses from the sizes of its tasks how to run them.
///
/// Use it for tasks of any size, known beforehand or not. It is within about 5 % of the best policy on all inputs of docs/cte.md. Warps of
/// a block that are done take pieces of the long tasks of others, if their closures are known to be the same.
///
/// @code
/// // Without a reduction, long tasks are shared only if the function is declared to be uniform.
/// const auto count = cte::uniform([=](int i) { atomicAdd(levels + columns[i], 1); });
/// cte::for_each<256, cte::scanned>(begin, end, count);
/// const auto value = [=](int i) { return values[i]; };
/// const float sum = cte::for_each_index<256, cte::scanned>(begin, end, value, cte::plus{}, 0.0f);
/// if (row < rows) out[row] = sum;
/// @endcode
///
/// The policy keeps the contract of cte/policy.cuh: a call waits without a limit only for warps that have begun pieces of its tasks. In the
/// reference kernel (bench/cte_registers.py), a call uses 8192 bytes of shared memory and 32 registers. For reductions of tasks
/// that are `disjoint` or have descriptors, it takes 2048 or 3072. In addition, all calls that can share long tasks use one board
/// of 992 bytes, and those with values of the same type use 64 bytes per warp and word of the value.
struct automatic {
    static constexpr bool whole_block = false;

    enum class way { staged, searched, chunked };

    /// The way that is chosen at compile time. Small values of neighboring indices whose owner is never needed are staged, because the warp
    /// then reads whole lines. Large descriptors suggest that each task has much data; if lanes search for owners, the lanes of one task
    /// read it at the same time. In all other cases, reductions between lanes cost the most, and chunks need the fewest.
    template <class Layout, class T, class... D>
    static constexpr way way_for =
        detail::is_nothing<T> || (std::is_same_v<Layout, scanned> && sizeof...(D) == 0 && sizeof(T) <= 8) ? way::staged
        : (0 + ... + sizeof(D)) > 16                                                                       ? way::searched
                                                                                                           : way::chunked;

    template <way chosen>
    using policy = std::conditional_t<chosen == way::staged, warp_staged,
                                      std::conditional_t<chosen == way::searched, warp, warp_chunked>>;

    template <int BlockDim, class T, class... Call>
    struct memory {
        using type = detail::one_of<warp_staged::temp<BlockDim, T>, warp::temp<BlockDim, T>, warp_chunked::temp<BlockDim, T>>;
    };
    template <int BlockDim, class T, class Layout, class Index, class... D>
    struct memory<BlockDim, T, Layout, Index, D...> {
        using type = detail::one_of<typename policy<way_for<Layout, T, D...>>::template temp<BlockDim, T, Layout, Index, D...>>;
    };

    /// A warp's part, which `reduce` finds once it needs it: `*shared`. Warps that go different ways at the same time have parts of their
    /// own. A smaller part leaves more to the cache.
    template <int BlockDim, class T, class... Call>
    using temp = typename memory<BlockDim, T, Call...>::type;

    /// Up to this many fine tasks cost less if each lane runs its own in a loop: consecutive lanes share the lines that they read.
    static constexpr int few = 5;

    /// A task with more fine tasks than this keeps all lanes busy by itself.
    static constexpr int giant = 128;

    /// Whether no lane of the warp has more than `most` fine tasks; the same in all lanes.
    template <class Index>
    __device__ static bool has_few(Index begin, Index end, int most = few) {
        return !__any_sync(detail::full_warp, end - begin > most);
    }

    /// A lane's own loop over this many fine tasks takes no longer than sharing them does, in chunks or one task after another.
    static constexpr int few_beside_shared = 8;

    /// Whether sharing would cost more than it saves, judging by the excess of the largest task over the mean; the same in all lanes.
    template <class Layout, class T, class Index>
    __device__ static bool is_even(Index begin, Index end, std::make_unsigned_t<Index> largest) {
        using namespace detail;
        using count = std::make_unsigned_t<Index>;
        if (largest <= few_beside_shared) return true;
        if (largest > static_cast<count>(-1) / (16 * lanes)) return false;
        // In loops of their own, neighbors with the same tasks read the same places, and large values stay in registers. (All three
        // numbers divide `lanes`.)
        const count excess = std::is_same_v<Layout, disjoint> && some_alike(begin) ? 8 : sizeof(T) > 8 ? 4 : 2;
        return (largest - few_beside_shared) * (lanes / excess) <= warp_sum(size_of(begin, end));
    }

    /// Whether more than a quarter of the lanes have tasks that begin at the same index as the task of the lane below.
    template <class Index>
    __device__ static bool some_alike(Index begin) {
        using namespace detail;
        return __popc(__ballot_sync(full_warp, begin == shuffle_up(begin, 1))) > lanes / 4;
    }

    /// The size of the warp's largest task if the way is chunks, else 0; the same in all lanes.
    template <way chosen, class Index>
    __device__ static std::make_unsigned_t<Index> largest_of(Index begin, Index end) {
        if constexpr (chosen != way::chunked) return 0;
        return detail::warp_maximum(detail::size_of(begin, end));
    }

    /// Whether it is fastest for each lane to run its own loop; the same in all lanes.
    template <int BlockDim, way chosen, class Layout, class T, class... D, class Index>
    __device__ static bool does_best_alone(Index begin, Index end, std::make_unsigned_t<Index> largest) {
        using namespace detail;
        constexpr bool listed = std::is_same_v<Layout, scanned> && sizeof...(D) == 0;
        constexpr int strip = staged_per_lane<BlockDim, T> * lanes;
        if constexpr (chosen == way::chunked) {
            return is_even<Layout, T>(begin, end, largest);
        } else if constexpr (chosen == way::searched) {
            return has_few(begin, end);
        } else if constexpr (!listed) {
            return has_few(begin, end, 1);  // a loop's turns wait for each other's loads, often with few lanes active
        } else if constexpr (is_nothing<T> || few * lanes <= strip) {
            return false;  // nothing is cheaper than going along the list
        } else {
            return shuffle(end, lanes - 1) - shuffle(begin, 0) > strip && has_few(begin, end);
        }
    }

    /// How lanes run their own tasks. Pairs of lanes read neighbors of one task together; as the operator is known to commute, a task
    /// costs them only one more reduction.
    template <way chosen, class Layout, class T, class Reduce>
    using by_lanes = std::conditional_t<chosen == way::chunked && std::is_same_v<Layout, disjoint> && sizeof(T) <= 8 &&
                                         detail::is_commutative<Reduce>,
                                     sub_warp<2>, one_per_lane>;

    /// A task of at least this many fine tasks is shared with warps of the block that have nothing else to do. Pieces cost less without a
    /// reduction. With large values, the tasks beside a shared one cost more than they would in chunks.
    template <class T>
    static constexpr int least_shared = detail::is_nothing<T> ? 1024 : sizeof(T) > 8 ? 8192 : 2048;

    template <int BlockDim, class Layout, class Temp, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(const Temp& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                               const D&... descriptors) {
        using namespace detail;
        if (!whole_warp()) {
            nothing none;
            return one_per_lane::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
        }
        if constexpr (may_share<BlockDim, T, Index, Map, Reduce, D...>) {
            return with_others<BlockDim, Layout>(shared, begin, end, map, op, init, descriptors...);
        } else {
            return by_itself<BlockDim, Layout>(shared, begin, end, map, op, init, descriptors...);
        }
    }

    /// A whole warp shares its long tasks with other warps of the block, and runs pieces of theirs once it has finished its own.
    template <int BlockDim, class Layout, class Temp, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T with_others(const Temp& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                                    const D&... descriptors) {
        using namespace detail;
        using count = std::make_unsigned_t<Index>;
        constexpr way chosen = way_for<Layout, T, D...>;
        constexpr bool apart = std::is_same_v<Layout, disjoint>, chunks = chosen == way::chunked;
        sharing<BlockDim, Layout, T, Index, Map, Reduce, D...> others;
        // After the warp's work, nothing is left that could overlap with the look at the board. So the warp looks while it reduces the
        // values of its last strip. With `disjoint` tasks, it at least knows the address beforehand.
        constexpr bool looks_early = chosen == way::staged && !apart && !is_nothing<T>;
        const unsigned place = apart ? known_here(others.place_of_tags()) : 0;
        unsigned seen = 0;
        const auto look = [&] { seen = glance_at(apart ? place : others.place_of_tags()); };
        const auto mapped = [&] {
            if constexpr (looks_early) look();
        };

        if (!apart && !chunks && !__any_sync(full_warp, begin < end)) return init;  // quick if most are empty
        const count size = size_of(begin, end);
        count largest = largest_of<chosen>(begin, end);
        const auto long_ones = [&] {
            return __ballot_sync(full_warp, size >= least_shared<T> && size <= static_cast<count>(-1) / 2);
        };
        const T like = init;
        if constexpr (apart) {
            const unsigned many = !chunks || largest >= least_shared<T> ? long_ones() : 0;
            if (many != 0) {
                init = share<BlockDim, Layout>(shared, many, begin, end, map, op, init, descriptors...);
                if (many >> lane_number() & 1u) end = begin;
                largest = largest_of<chosen>(begin, end);
            } else {
                others.pass();
            }
            init = run_own<BlockDim, Layout>(shared, begin, end, largest, map, op, init, mapped, descriptors...);
        } else {
            // Beside a giant task, all lanes run one task after another: neighboring lanes then read neighboring small values.
            const bool one_by_one = sizeof(T) <= 8 && largest > giant && !is_even<Layout, T>(begin, end, largest);
            // If the largest task is known, one comparison rules all of this out for most warps.
            const bool empty = chunks && largest == 0;
            unsigned many = chunks ? 0 : long_ones();
            if (empty || (chunks ? largest >= least_shared<T> : many != 0) || one_by_one) {
                if (empty) return init;
                if (chunks) many = long_ones();
                // Runs all tasks: without the long ones, the list would have gaps.
                init = share<BlockDim, Layout>(shared, many, begin, end, map, op, init, descriptors...);
                mapped();
            } else {
                init = run_own<BlockDim, Layout>(shared, begin, end, largest, map, op, init, mapped, descriptors...);
            }
        }
        if constexpr (!looks_early) look();
        if (!others.none_shares(seen)) help<BlockDim, Layout, Index>(map, op, like, descriptors...);
        return init;
    }

    /// Shares the tasks of the lanes in `mine`. If tasks are `scanned`, it also runs all others.
    template <int BlockDim, class Layout, class Temp, class T, class Index, class Map, class Reduce, class... D>
    __device__ __forceinline__ static T share(const Temp& shared, unsigned mine, Index begin, Index end, Map& map, Reduce& op,
                                              T init, const D&... descriptors) {
        using namespace detail;
        using board = sharing<BlockDim, Layout, T, Index, Map, Reduce, D...>;
        constexpr bool apart = std::is_same_v<Layout, disjoint>;
        board others;
        const auto task_of = [&](int lane) {
            return typename board::task{{map, op}, shuffle(begin, lane), shuffle(end, lane), bundle<D...>(shuffle(descriptors, lane)...)};
        };
        unsigned alone = 0;  // the lanes whose tasks the warp runs one after another, without sharing
        if constexpr (!apart) {
            if (mine != 0) others.announce();
            const bool is_few = size_of(begin, end) <= few_beside_shared;
            alone = __ballot_sync(full_warp, !is_few) & ~mine;
            if (is_few) {
#pragma unroll 1
                for (Index i = begin; i < end; ++i) init = op(init, map(i, descriptors...));
            }
            __syncwarp();
        }
        if (mine != 0) others.put_up(task_of(__ffs(mine) - 1));
        while ((mine | alone) != 0) {
            const bool shares = mine != 0;
            const int owner = __ffs(shares ? mine : alone) - 1;
            const auto own = task_of(owner);
            typename board::part part{0, own.begin, own.end, own.descriptors};
            if (shares) {
                part = others.take(warp_number(), own);
                if (part.number == board::none_left) {
                    mine &= mine - 1;
                    others.wait(mine != 0);
                    const T value = others.value(own.begin, own.end, init, op);
                    if (lane_number() == owner) init = op(init, value);
                    if (mine != 0) others.put_up(task_of(__ffs(mine) - 1));
                    continue;
                }
            } else {
                alone &= alone - 1;
            }
            // What a lane knows about its own task waits in shared memory, so that its registers can hold values being loaded.
            struct parked {
                Index begin, end;
                T init;
            };
            using room = std::decay_t<decltype(*shared)>;
            constexpr bool fits = !is_nothing<T> && lanes * sizeof(parked) <= sizeof(room) && alignof(parked) <= alignof(room);
            parked* place = nullptr;
            if constexpr (fits) {
                place = reinterpret_cast<parked*>((*shared).bytes) + lane_number();
                *place = parked{begin, end, init};
                __syncwarp();
            }
            const partial<T> found = run(part, map, op, init);
            if constexpr (fits) {
                __syncwarp();
                begin = place->begin;
                end = place->end;
                init = place->init;
            }
            if (shares) {
                others.hand_in(warp_number(), part.number, found.value);
            } else if constexpr (!is_nothing<T>) {
                const T value = shuffle(found.value, 0);
                if (lane_number() == owner) init = op(init, value);
            }
        }
        return init;
    }

    /// Runs pieces of other warps' tasks as long as there are any.
    template <int BlockDim, class Layout, class Index, class T, class Map, class Reduce, class... D>
    __device__ __forceinline__ static void help(Map& map, Reduce& op, const T& like, const D&... descriptors) {
        using namespace detail;
        using board = sharing<BlockDim, Layout, T, Index, Map, Reduce, D...>;
        board others;
        const typename board::task own{{map, op}, 0, 0, bundle<D...>(descriptors...)};
        for (int target = others.find(); target >= 0; target = others.find()) {
            const auto part = others.take(target, own);
            if (part.number == board::other_closure) return;
            if (part.number == board::none_left) continue;
            others.hand_in(target, part.number, run(part, map, op, like).value);
        }
    }

    /// Reduces a piece of a task; lane 0 has the result.
    template <class Part, class T, class Map, class Reduce>
    __device__ __forceinline__ static detail::partial<T> run(const Part& part, Map& map, Reduce& op, const T& like) {
        using namespace detail;
        return part.descriptors.apply([&](const auto&... theirs) {
            return reduce_along(part.begin, part.end, [&](auto i) { return map(i, theirs...); }, like, op);
        });
    }

    /// A whole warp runs its tasks and shares none of them.
    template <int BlockDim, class Layout, class Temp, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T by_itself(const Temp& shared, Index begin, Index end, Map& map, Reduce& op, T init,
                                  const D&... descriptors) {
        const auto largest = largest_of<way_for<Layout, T, D...>>(begin, end);
        return run_own<BlockDim, Layout>(shared, begin, end, largest, map, op, init, [] {}, descriptors...);
    }

    /// A whole warp runs its tasks in the way that suits them. If the way is staging, `mapped()` is called once all values are mapped.
    template <int BlockDim, class Layout, class Temp, class T, class Index, class Map, class Reduce, class Mapped, class... D>
    __device__ static T run_own(const Temp& shared, Index begin, Index end, std::make_unsigned_t<Index> largest, Map& map, Reduce& op,
                                T init, const Mapped& mapped, const D&... descriptors) {
        using namespace detail;
        constexpr way chosen = way_for<Layout, T, D...>;
        if constexpr (is_nothing<T> && std::is_same_v<Layout, disjoint>) {
            // In a search, most warps have one task or none.
            const unsigned busy = __ballot_sync(full_warp, begin < end);
            if (busy == 0) return init;
            if ((busy & (busy - 1)) == 0) {
                const int owner = __ffs(busy) - 1;
                struct {
                    Index begin, end;
                    bundle<D...> descriptors;
                } only{shuffle(begin, owner), shuffle(end, owner), bundle<D...>(shuffle(descriptors, owner)...)};
                run(only, map, op, init);
                return init;
            }
        }
        if (does_best_alone<BlockDim, chosen, Layout, T, D...>(begin, end, largest)) {
            nothing none;
            using how = by_lanes<chosen, Layout, T, Reduce>;
            init = how::template reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
            if constexpr (chosen == way::staged) mapped();
            return init;
        }
        using part = typename policy<chosen>::template temp<BlockDim, T, Layout, Index, D...>;
        part& own = (*shared).template as<part>();
        if constexpr (chosen == way::searched) {
            return warp::reduce<BlockDim, Layout>(own, begin, end, map, op, init, descriptors...);
        } else if constexpr (chosen == way::chunked) {
            if (sizeof(T) <= 8 && largest > giant) {
                // Along a giant task, neighboring lanes read neighboring small values.
                nothing none;
                return sub_warp<lanes>::reduce<BlockDim, Layout>(none, begin, end, map, op, init, descriptors...);
            }
            return warp_chunked::of_whole_warp<BlockDim, Layout>(own, begin, end, map, op, init, descriptors...);
        } else {
            nothing here;
            return warp_staged::strategy<BlockDim, T>::template of_whole_warp<BlockDim, Layout>(own, begin, end, map, op, init, here,
                                                                                     mapped, descriptors...);
        }
    }
};

template <>
inline constexpr bool detail::finds_part<automatic> = true;

}  // namespace cte
