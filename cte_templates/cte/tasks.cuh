// What a call says about its tasks: their layout, whether anything is reduced, and what is known about the operator.
#pragma once

#include <cte/version.cuh>

#include <cstddef>
#include <type_traits>

namespace cte {

/// A layout: the tasks of consecutive lanes follow one another. A lane's `end` is the next lane's `begin`, as in a CSR matrix.
///
/// Use it if this holds: policies then read a warp's fine tasks as one list. Threads past the last task hold an empty one at its
/// end. With a policy of the whole block, the rule applies across the block.
///
/// @code
/// const auto value = [=](int i) { return values[i]; };
/// const float sum = cte::for_each_index<256, cte::scanned>(begin, end, value, cte::plus{}, 0.0f);
/// if (row < rows) out[row] = sum;
/// @endcode
struct scanned {};

/// A layout: each lane's task may lie anywhere, and tasks may overlap. If in doubt, use this one: it is always correct.
struct disjoint {};

/// Declares that an associative operator also commutes: `commutative(f)`. The result is undefined if it does not.
///
/// Use it for operators of your own, as the library cannot see that a lambda commutes. Each lane then reduces the values that it
/// meets; otherwise, lanes would reduce every strip of a task in order.
///
/// @code
/// const auto larger = cte::commutative([](float a, float b) { return fmaxf(fabsf(a), fabsf(b)); });
/// const auto value = [=](int i) { return values[i]; };
/// const float peak = cte::for_each_index<256, cte::scanned>(begin, end, value, larger, 0.0f);
/// if (row < rows) out[row] = peak;
/// @endcode
///
/// @tparam F  a class with a function call operator, such as a lambda's; not a pointer to a function
template <class F>
struct commutative : F {
    __host__ __device__ explicit commutative(F f) : F(f) {}
    using F::operator();
};

/// Declares that the captures of a function are the same in all threads of the block, and stay so as long as any thread is in a
/// call with it: `uniform(f)`. The result is undefined if they are not; `nvcc -G` and `-DCTE_DEBUG` check it where they can.
///
/// Use it with `automatic`, in particular for calls without a reduction: warps of the block then run fine tasks of one another's
/// long tasks, and nothing is compared beforehand.
///
/// @code
/// const auto count = cte::uniform([=](int i) { atomicAdd(levels + columns[i], 1); });
/// cte::for_each<256, cte::scanned>(begin, end, count);
/// @endcode
///
/// @tparam F  a class with a function call operator, such as a lambda's; not a pointer to a function
template <class F>
struct uniform : F {
    __host__ __device__ explicit uniform(F f) : F(f) {}
    using F::operator();
};

/// Operators that are known to commute, and that the forms with atomics take: `plus`, `minimum` and `maximum`.
struct plus {
    template <class T>
    __host__ __device__ T operator()(T a, T b) const {
        return a + b;
    }
};

struct minimum {
    template <class T>
    __host__ __device__ T operator()(T a, T b) const {
        return b < a ? b : a;
    }
};

struct maximum {
    template <class T>
    __host__ __device__ T operator()(T a, T b) const {
        return a < b ? b : a;
    }
};

namespace detail {

template <class>
constexpr bool no_type = false;

template <class Layout>
constexpr bool is_layout = std::is_same_v<Layout, scanned> || std::is_same_v<Layout, disjoint>;

template <class Op>
constexpr bool is_commutative = std::is_same_v<Op, plus> || std::is_same_v<Op, minimum> || std::is_same_v<Op, maximum>;
template <class F>
constexpr bool is_commutative<commutative<F>> = true;

template <class F>
constexpr bool is_uniform = false;
template <class F>
constexpr bool is_uniform<uniform<F>> = true;

/// The value of fine tasks that have none, and the shared memory of policies that need none.
struct nothing {};

template <class T>
constexpr bool is_nothing = std::is_same_v<T, nothing>;

/// The operator of calls without a reduction.
struct drop {
    __device__ nothing operator()(nothing, nothing) const { return {}; }
};
template <>
inline constexpr bool is_commutative<drop> = true;

/// Calls `f` and returns no value.
template <class F>
struct without_value {
    F f;
    template <class Index, class... D>
    __device__ nothing operator()(Index i, const D&... descriptors) {
        f(i, descriptors...);
        return {};
    }
};

template <class F>
constexpr bool is_uniform<without_value<F>> = is_uniform<F>;

/// The type of a call's indices if the call is known, else the largest type that a call may have.
template <class...>
struct index_of_call {
    using type = long long;
};
template <class Layout, class Index, class... D>
struct index_of_call<Layout, Index, D...> {
    using type = Index;
};
template <class... Call>
using index_of = typename index_of_call<Call...>::type;

template <class... Size>
constexpr std::size_t largest(Size... sizes) {
    std::size_t most = 1;
    ((most = sizes > most ? sizes : most), ...);
    return most;
}

/// Memory for one object at a time.
template <std::size_t Bytes, std::size_t Alignment>
struct room {
    alignas(Alignment) unsigned char bytes[Bytes];

    template <class Which>
    __device__ Which& as() {
        static_assert(sizeof(Which) <= Bytes && alignof(Which) <= Alignment,
                      "this cte::storage is too small for the call: name the type of its values (cte::storage<BlockDim, T...>)");
        return reinterpret_cast<Which&>(bytes);
    }
};

/// Memory for one object at a time, of any of several types.
template <class... Part>
using one_of = room<largest(sizeof(Part)...), largest(alignof(Part)...)>;

/// The number of indices in [begin, end). A loop that counts them down is safe at the highest index of the type: nothing wraps.
template <class Index>
__device__ std::make_unsigned_t<Index> size_of(Index begin, Index end) {
    using count = std::make_unsigned_t<Index>;
    return begin < end ? static_cast<count>(end) - static_cast<count>(begin) : 0;
}

/// The number of turns of a lane that takes every `width`-th of `size` places, starting at the place `rank`. Counting turns avoids
/// comparing with an index past the last one, which the type may not hold.
template <class Count>
__device__ Count turns_of(Count size, int rank, int width) {
    return size > rank ? (size - rank - 1) / width + 1 : 0;
}

/// The reduction of some values; there may be none yet.
template <class T>
struct partial {
    T value;
    bool some = false;

    template <class Reduce>
    __device__ void append(const T& next, Reduce& op) {
        value = some ? op(value, next) : next;
        some = true;
    }

    /// The reduction of `init` and what is here.
    template <class Reduce>
    __device__ T after(const T& init, Reduce& op) const {
        return some ? op(init, value) : init;
    }
};

/// The reduction of two neighboring pieces, either of which may hold nothing.
template <class T, class Reduce>
__device__ __forceinline__ partial<T> joined(const partial<T>& left, const partial<T>& right, Reduce& op) {
    if (!left.some) return right;
    if (!right.some) return left;
    return {static_cast<T>(op(left.value, right.value)), true};
}

}  // namespace detail
}  // namespace cte
