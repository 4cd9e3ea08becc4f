// Kernels of tests/cte/test_kernel_forms.py.
#include <cte/kernel/defer_long.cuh>
#include <cte/kernel/edge_parallel.cuh>
#include <cte/kernel/merge_path.cuh>
#include <cte/kernel/virtual_split.cuh>

#include <cstdint>

/// A polynomial hash of a sequence: `then` joins two sequences, and no two orders have one hash. 12 bytes.
struct sequence {
    unsigned hash, power, length;
};

struct then {
    __device__ sequence operator()(const sequence& a, const sequence& b) const {
        return {a.hash * b.power + b.hash, a.power * b.power, a.length + b.length};
    }
};

#define MERGE_PATH(NAME, THREADS, ITEMS, INDEX)                                                                             \
    extern "C" __global__ void NAME(INDEX tasks, const INDEX* offsets, unsigned* visits, sequence* out, unsigned* puts,     \
                                    cte::kernel::carry<sequence, INDEX>* carries, const INDEX* partition) {                 \
        using form = cte::kernel::merge_path<THREADS, ITEMS>;                                                               \
        __shared__ form::temp<sequence> shared;                                                                             \
        const auto map = [=](INDEX i) {                                                                                     \
            atomicAdd(visits + i, 1u);                                                                                      \
            return sequence{static_cast<unsigned>(i) * 2654435761u + 12345u, 31u, 1u};                                      \
        };                                                                                                                  \
        const auto put = [=](INDEX task, const sequence& sum) {                                                             \
            atomicAdd(puts + task, 1u);                                                                                     \
            out[task] = sum;                                                                                                \
        };                                                                                                                  \
        form::reduce(shared, tasks, offsets, map, then{}, sequence{7, 3, 1}, put, carries, partition);                      \
    }                                                                                                                       \
    extern "C" __global__ void NAME##_divide(INDEX tasks, const INDEX* offsets, INDEX* partition) {                         \
        cte::kernel::merge_path<THREADS, ITEMS>::divide(tasks, offsets, partition);                                         \
    }                                                                                                                       \
    extern "C" __global__ void NAME##_fix_up(int blocks, const INDEX* offsets, sequence* out, unsigned* puts,               \
                                             const cte::kernel::carry<sequence, INDEX>* carries) {                          \
        using form = cte::kernel::merge_path<THREADS, ITEMS>;                                                               \
        __shared__ form::fix_up_temp<sequence> shared;                                                                      \
        const auto put = [=](INDEX task, const sequence& sum) {                                                             \
            atomicAdd(puts + task, 1u);                                                                                     \
            out[task] = sum;                                                                                                \
        };                                                                                                                  \
        form::fix_up(shared, blocks, offsets, then{}, sequence{7, 3, 1}, put, carries);                                     \
    }

MERGE_PATH(merge_path_64_3, 64, 3, int)
MERGE_PATH(merge_path_32_1, 32, 1, int)
MERGE_PATH(merge_path_256_7, 256, 7, int64_t)

#define EDGES(NAME, T, OP)                                                                                                    \
    extern "C" __global__ void edges_##NAME(int fine, const int* owners, const T* values, T* out) {                           \
        cte::kernel::edge_parallel<64>::reduce(fine, [=](int i) { return owners[i]; }, [=](int i) { return values[i]; }, OP{}, out); \
    }

EDGES(plus, int, cte::plus)
EDGES(minimum, float, cte::minimum)
EDGES(maximum, int64_t, cte::maximum)

#define SPLIT(NAME, K, ASSIGNMENT, T, OP)                                                                                    \
    extern "C" __global__ void split_##NAME(int tasks, const int* offsets, const int* first, const T* values, T* out) {      \
        cte::kernel::virtual_split<K>::reduce<cte::ASSIGNMENT>(tasks, offsets, first, [=](int i) { return values[i]; }, OP{}, out); \
    }

SPLIT(plus_1_contiguous, 1, contiguous, int, cte::plus)
SPLIT(plus_4_contiguous, 4, contiguous, int, cte::plus)
SPLIT(plus_4_strided, 4, strided, int, cte::plus)
SPLIT(maximum_10_strided, 10, strided, float, cte::maximum)

// A thread past the last task finds an empty one.
#define DEFER_LONG(NAME, T, OP, LAYOUT, INDEX, MOST)                                                                                   \
    extern "C" __global__ void defer_##NAME(INDEX tasks, const INDEX* begins, const INDEX* ends, T init, const T* values,              \
                                            unsigned* visits, T* out, cte::kernel::piece<INDEX>* list, int* count) {                   \
        using form = cte::kernel::defer_long<64, MOST>;                                                                                \
        __shared__ form::temp<T> shared;                                                                                               \
        const INDEX task = blockIdx.x * 64 + threadIdx.x;                                                                              \
        const auto map = [=](INDEX i) { return atomicAdd(visits + i, 1u), values[i]; };                                                \
        const T own = form::reduce<cte::LAYOUT>(shared, task, begins[task], ends[task], map, OP{}, init,                               \
                                                cte::kernel::pieces<INDEX>{list, count});                                              \
        if (task < tasks) out[task] = own;                                                                                             \
    }                                                                                                                                  \
    extern "C" __global__ void finish_##NAME(const T* values, unsigned* visits, T* out, cte::kernel::piece<INDEX>* list, int* count) { \
        const auto map = [=](INDEX i) { return atomicAdd(visits + i, 1u), values[i]; };                                                \
        cte::kernel::defer_long<64, MOST>::finish(cte::kernel::pieces<INDEX>{list, count}, map, OP{}, out);                            \
    }

DEFER_LONG(plus, int, cte::plus, scanned, int, 32)
DEFER_LONG(minimum, float, cte::minimum, disjoint, int, 48)
DEFER_LONG(maximum, int64_t, cte::maximum, scanned, int64_t, 64)

// What all forms with atomics end in, for each type.
template <class T>
__device__ void combine_all(int count, const int* owners, const T* values, T* out, int op) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    using namespace cte::kernel::detail;
    if (op == 0) combine(cte::plus{}, out + owners[i], values[i]);
    if (op == 1) combine(cte::minimum{}, out + owners[i], values[i]);
    if (op == 2) combine(cte::maximum{}, out + owners[i], values[i]);
}

#define COMBINE(T)                                                                                                  \
    extern "C" __global__ void combine_##T(int count, const int* owners, const T* values, T* out, int op) {         \
        combine_all(count, owners, values, out, op);                                                                \
    }
COMBINE(int32_t)
COMBINE(uint32_t)
COMBINE(int64_t)
COMBINE(uint64_t)
COMBINE(float)
COMBINE(double)
