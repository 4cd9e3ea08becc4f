// Kernels of tests/cte/test_scan_and_any.py, with the policy that nvcc is given: -DPOLICY=cte::warp.
#include "tasks.cuh"

#ifdef POLICY

#define SCAN(NAME, THREADS, LAYOUT, T, OP, INDEX, DESCRIPTORS)                                                                     \
    extern "C" __global__ void NAME(int tasks, const INDEX* begins, const INDEX* ends, INDEX base, unsigned* visits,               \
                                    unsigned* writes, int* owners, T* prefixes, T* out) {                                          \
        const fine_tasks<INDEX> fine{base, visits};                                                                                \
        const fine_tasks<INDEX> written{base, writes};                                                                             \
        each_task<THREADS>(tasks, begins, ends, [=](int task, INDEX begin, INDEX end) {                                            \
            const auto map = [=](INDEX i, auto... known) { return value_of<T>::letter(fine.visit(i, known...)); };                 \
            const auto write = [=](INDEX i, const T& prefix, auto... known) {                                                      \
                written.visit(i);                                                                                                  \
                prefixes[i - base] = prefix;                                                                                       \
                owners[i - base] = told(known...);                                                                                 \
            };                                                                                                                     \
            const T total = with_descriptors<DESCRIPTORS>(task, [=](auto... known) {                                               \
                return cte::exclusive_scan<THREADS, cte::LAYOUT, POLICY>(begin, end, map, OP, value_of<T>::first(task), write,     \
                                                                         known...);                                                \
            });                                                                                                                    \
            if (task < tasks) out[task] = total;                                                                                   \
        });                                                                                                                        \
    }

// A task finds what is wanted as 1; one with descriptors as 1 or 2, by its number.
#define ANY(NAME, THREADS, LAYOUT, INDEX, DESCRIPTORS)                                                                              \
    extern "C" __global__ void NAME(int tasks, const INDEX* begins, const INDEX* ends, INDEX base, unsigned* visits,                \
                                    const unsigned char* wanted, unsigned char* out) {                                              \
        const fine_tasks<INDEX> fine{base, visits};                                                                                 \
        each_task<THREADS>(tasks, begins, ends, [=](int task, INDEX begin, INDEX end) {                                             \
            const auto has = [=](INDEX i, auto... known) {                                                                          \
                fine.visit(i, known...);                                                                                            \
                return wanted[i - base] == 1 + told(known...) % 2;                                          \
            };                                                                                                                      \
            const bool found = with_descriptors<DESCRIPTORS>(                                                                       \
                task, [=](auto... known) { return cte::any<THREADS, cte::LAYOUT, POLICY>(begin, end, has, known...); });            \
            if (task < tasks) out[task] = found;                                                                                    \
        });                                                                                                                         \
    }

SCAN(scan_scanned_sequence, 96, scanned, sequence, then{}, int, 0)
SCAN(scan_scanned_float, 256, scanned, float, cte::plus{}, unsigned, 1)
SCAN(scan_disjoint_long_sequence, 32, disjoint, long_sequence, then{}, long long, 0)
SCAN(scan_disjoint_int32, 96, disjoint, int, add{}, unsigned, 3)

ANY(any_scanned, 96, scanned, int, 0)
ANY(any_scanned_described, 32, scanned, unsigned, 3)
ANY(any_disjoint, 256, disjoint, long long, 1)
ANY(any_disjoint_unsigned, 32, disjoint, unsigned, 0)

// In a part of the lanes, others having left.
extern "C" __global__ void partly(int tasks, const int* begins, const int* ends, unsigned stays, sequence* prefixes, sequence* totals,
                                  const unsigned char* wanted, unsigned char* found) {
    const int task = min(static_cast<int>(threadIdx.x), tasks);
    if (!(stays >> cte::detail::lane_number() & 1u)) return;
    const auto letter = [](int i) { return value_of<sequence>::letter(i * 1000u * 2654435761u + 12345u); };
    const auto write = [=](int i, const sequence& prefix) { prefixes[i] = prefix; };
    const sequence total =
        cte::exclusive_scan<64, cte::disjoint, POLICY>(begins[task], ends[task], letter, then{}, value_of<sequence>::first(task), write);
    const bool hit = cte::any<64, cte::disjoint, POLICY>(begins[task], ends[task], [=](int i) { return wanted[i] != 0; });
    if (task < tasks) {
        totals[task] = total;
        found[task] = hit;
    }
}

#endif
