// What a call tells about its tasks: how they lie, whether anything is reduced, and what is known of the operator.
#pragma once

#include <cte/version.cuh>

#include <cstddef>
#include <type_traits>

namespace cte {

/// The tasks of consecutive lanes follow one another: a lane's `end` is the next lane's `begin`, as in a CSR matrix.
struct scanned {};

/// Each lane's tasks lie anywhere; they may overlap.
struct disjoint {};

/// An operator of which the caller says that the order of its operands does not matter either: `commutative(f)`.
///
/// Policies that let lanes stride over one task then need no reduction in order at each step.
template <class F>
struct commutative : F {
    __host__ __device__ explicit commutative(F f) : F(f) {}
    using F::operator();
};

/// A function of which the caller says that its captures are the same in all threads of the block, and stay so as long as any of them
/// is in calls with it: `uniform(f)`.
///
/// Warps of the block may then run one another's fine tasks as they are.
template <class F>
struct uniform : F {
    __host__ __device__ explicit uniform(F f) : F(f) {}
    using F::operator();
};

/// Operators with a name: what policies with atomics take.
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

/// The value of a fine task that has none, and the shared memory of a policy that needs none.
struct nothing {};

template <class T>
constexpr bool is_nothing = std::is_same_v<T, nothing>;

/// The operator of calls without a reduction.
struct drop {
    __device__ nothing operator()(nothing, nothing) const { return {}; }
};
template <>
inline constexpr bool is_commutative<drop> = true;

/// Calls `f` and has no value.
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

/// The index of a call of which the layout, the index and the descriptors are known, or one that is as large as any.
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

/// Memory for an object at a time.
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

/// Memory for an object of one of some types at a time.
template <class... Part>
using one_of = room<largest(sizeof(Part)...), largest(alignof(Part)...)>;

/// How many indices [begin, end) has. What counts with it may be at the highest index of its type and does not wrap.
template <class Index>
__device__ std::make_unsigned_t<Index> size_of(Index begin, Index end) {
    using count = std::make_unsigned_t<Index>;
    return begin < end ? static_cast<count>(end) - static_cast<count>(begin) : 0;
}

/// How many of `size` places a runner has that takes each `width`-th from the place `rank` on. Counting turns asks no index whether it
/// is after the last one, which may be no index.
template <class Count>
__device__ Count turns_of(Count size, int rank, int width) {
    return size > rank ? (size - rank - 1) / width + 1 : 0;
}

/// The reduction of some values, of which there may be none yet.
template <class T>
struct partial {
    T value;
    bool some = false;

    template <class Reduce>
    __device__ void append(const T& next, Reduce& op) {
        value = some ? op(value, next) : next;
        some = true;
    }

    /// What comes after `init`.
    template <class Reduce>
    __device__ T after(const T& init, Reduce& op) const {
        return some ? op(init, value) : init;
    }
};

/// What is reduced from two neighbouring pieces, either of which may hold nothing.
template <class T, class Reduce>
__device__ __forceinline__ partial<T> joined(const partial<T>& left, const partial<T>& right, Reduce& op) {
    if (!left.some) return right;
    if (!right.some) return left;
    return {static_cast<T>(op(left.value, right.value)), true};
}

}  // namespace detail
}  // namespace cte
