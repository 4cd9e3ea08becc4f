// Kernels of tests/cte/test_block_policies.py: policies of the whole block, with an operator that keeps count of order.
#include <cte/policies/block.cuh>
#include <cte/policies/merge_path.cuh>
#include <cte/policies/automatic_block.cuh>
#include <cte/policies/thread_warp_block.cuh>
#include <cte/for_each.cuh>

/// A polynomial hash of a sequence: `then` joins two sequences, and no two orders have one hash. 12 bytes.
struct sequence {
    unsigned hash, power, length;
};

struct then {
    __device__ sequence operator()(const sequence& a, const sequence& b) const {
        return {a.hash * b.power + b.hash, a.power * b.power, a.length + b.length};
    }
};

__device__ sequence letter(unsigned value) { return {value * 2654435761u + 12345u, 31u, 1u}; }

/// No identity of `then`, and another one for each task.
__device__ sequence own_init(int task) { return {7u + task, 3, 1}; }

// One task a thread, blocks that take several turns; `visits` counts how often each fine task ran.
#define SCANNED(NAME, THREADS, POLICY)                                                                                       \
    extern "C" __global__ void NAME(int tasks, const int* offsets, unsigned* visits, sequence* out) {                        \
        __shared__ cte::storage_for<THREADS, POLICY, sequence, float> storage;                                               \
        for (int base = blockIdx.x * THREADS; base < tasks; base += gridDim.x * THREADS) {                                   \
            const int task = base + cte::detail::thread_number();                                                            \
            const int begin = offsets[min(task, tasks)], end = offsets[min(task + 1, tasks)];                                \
            const auto map = [=](int i) {                                                                                    \
                atomicAdd(visits + i, 1u);                                                                                   \
                return letter(i);                                                                                            \
            };                                                                                                               \
            const sequence sum =                                                                                             \
                cte::for_each_index<THREADS, cte::scanned, POLICY>(storage, begin, end, map, then{}, own_init(task));         \
            if (task < tasks) out[task] = sum;                                                                               \
        }                                                                                                                    \
    }

#define DISJOINT(NAME, THREADS, POLICY)                                                                                      \
    extern "C" __global__ void NAME(int tasks, const long long* begins, const long long* ends, unsigned* visits,             \
                                    sequence* out) {                                                                         \
        for (int base = blockIdx.x * THREADS; base < tasks; base += gridDim.x * THREADS) {                                   \
            const int task = base + cte::detail::thread_number();                                                            \
            const long long begin = task < tasks ? begins[task] : 0, end = task < tasks ? ends[task] : 0;                    \
            const auto map = [=](long long i, int owner, double weight) {                                                    \
                atomicAdd(visits + i, 1u);                                                                                   \
                return letter(static_cast<unsigned>(i) * 1000u + owner + static_cast<unsigned>(weight));                     \
            };                                                                                                               \
            const sequence sum = cte::for_each_index<THREADS, cte::disjoint, POLICY>(begin, end, map, then{},                \
                                                                                     own_init(task), task, task * 2.0);      \
            if (task < tasks) out[task] = sum;                                                                               \
        }                                                                                                                    \
    }

#define SUMS(NAME, THREADS, POLICY, OP)                                                                                      \
    extern "C" __global__ void NAME(int tasks, const int* offsets, const float* values, float* out) {                        \
        const int task = blockIdx.x * THREADS + cte::detail::thread_number();                                                \
        const int begin = offsets[min(task, tasks)], end = offsets[min(task + 1, tasks)];                                    \
        const float sum = cte::for_each_index<THREADS, cte::scanned, POLICY>(begin, end, [=](int i) { return values[i]; },   \
                                                                             OP, 2.0f);                                      \
        if (task < tasks) out[task] = sum;                                                                                   \
    }

#define VISITS(NAME, THREADS, POLICY)                                                                                        \
    extern "C" __global__ void NAME##_scanned(int tasks, const int* offsets, unsigned* visits) {                             \
        for (int base = blockIdx.x * THREADS; base < tasks; base += gridDim.x * THREADS) {                                   \
            const int task = base + cte::detail::thread_number();                                                            \
            cte::for_each<THREADS, cte::scanned, POLICY>(offsets[min(task, tasks)], offsets[min(task + 1, tasks)],           \
                                                         [=](int i) { atomicAdd(visits + i, 1u); });                         \
        }                                                                                                                    \
    }                                                                                                                        \
    extern "C" __global__ void NAME##_disjoint(int tasks, const int* offsets, unsigned* visits) {                            \
        for (int base = blockIdx.x * THREADS; base < tasks; base += gridDim.x * THREADS) {                                   \
            const int task = base + cte::detail::thread_number();                                                            \
            cte::for_each<THREADS, cte::disjoint, POLICY>(                                                                   \
                offsets[min(task, tasks)], offsets[min(task + 1, tasks)],                                                    \
                [=](int i, int owner) { atomicAdd(visits + i, offsets[owner] <= i && i < offsets[owner + 1] ? 1u : 1000u); }, \
                task);                                                                                                       \
        }                                                                                                                    \
    }

#define ALL(NAME, POLICY)                                   \
    SCANNED(NAME##_scanned_96, 96, POLICY)                  \
    DISJOINT(NAME##_disjoint_96, 96, POLICY)                \
    DISJOINT(NAME##_disjoint_512, 512, POLICY)              \
    SCANNED(NAME##_scanned_32, 32, POLICY)                  \
    SCANNED(NAME##_scanned_1024, 1024, POLICY)              \
    SUMS(NAME##_sums, 256, POLICY, cte::plus{})             \
    VISITS(NAME##_visits, 96, POLICY)

ALL(block, cte::block)
ALL(merge_path, cte::merge_path)
ALL(thread_warp_block, cte::thread_warp_block)
ALL(automatic_block, cte::automatic_block)
SUMS(one_per_lane_sums, 256, cte::one_per_lane, cte::plus{})
