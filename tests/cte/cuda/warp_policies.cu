// Kernels of tests/cte/test_policies.py, with the policy that nvcc is given: -DPOLICY=cte::warp.
#include "tasks.cuh"

#ifdef POLICY

#define REDUCE(NAME, THREADS, LAYOUT, T, OP, INDEX, DESCRIPTORS)                                                                  \
    extern "C" __global__ void NAME(int tasks, const INDEX* begins, const INDEX* ends, INDEX base, unsigned* visits, T* out) {    \
        const fine_tasks<INDEX> fine{base, visits};                                                                               \
        each_task<THREADS>(tasks, begins, ends, [=](int task, INDEX begin, INDEX end) {                                           \
            const auto map = [=](INDEX i, auto... known) { return value_of<T>::letter(fine.visit(i, known...)); };                \
            const T result = with_descriptors<DESCRIPTORS>(task, [=](auto... known) {                                             \
                return cte::for_each_index<THREADS, cte::LAYOUT, POLICY>(begin, end, map, OP, value_of<T>::first(task), known...); \
            });                                                                                                                   \
            if (task < tasks) out[task] = result;                                                                                 \
        });                                                                                                                       \
    }

#define VISIT(NAME, THREADS, LAYOUT, INDEX, DESCRIPTORS, DECLARED)                                                                \
    extern "C" __global__ void NAME(int tasks, const INDEX* begins, const INDEX* ends, INDEX base, unsigned* visits,              \
                                    unsigned* hashes) {                                                                           \
        const fine_tasks<INDEX> fine{base, visits};                                                                               \
        each_task<THREADS>(tasks, begins, ends, [=](int task, INDEX begin, INDEX end) {                                           \
            const auto f = DECLARED([=](INDEX i, auto... known) { hashes[i - base] = fine.visit(i, known...); });                 \
            with_descriptors<DESCRIPTORS>(task, [=](auto... known) {                                                              \
                cte::for_each<THREADS, cte::LAYOUT, POLICY>(begin, end, f, known...);                                             \
            });                                                                                                                   \
        });                                                                                                                       \
    }

using wide = unsigned long long;
inline __device__ auto commutative_add() { return cte::commutative([](auto a, auto b) { return a + b; }); }

REDUCE(scanned_int32, 32, scanned, int, add{}, int, 0)
REDUCE(scanned_float, 256, scanned, float, commutative_add(), unsigned, 1)
REDUCE(scanned_double, 1024, scanned, double, add{}, long long, 2)
REDUCE(scanned_int64, 192, scanned, long long, cte::plus{}, int, 0)
REDUCE(scanned_sequence, 96, scanned, sequence, then{}, unsigned, 0)
REDUCE(scanned_long_sequence, 256, scanned, long_sequence, then{}, long long, 3)

REDUCE(disjoint_int32, 96, disjoint, int, cte::plus{}, long long, 2)
REDUCE(disjoint_float, 1024, disjoint, float, add{}, int, 0)
REDUCE(disjoint_double, 256, disjoint, double, commutative_add(), unsigned, 3)
REDUCE(disjoint_int64, 32, disjoint, long long, add{}, int, 1)
REDUCE(disjoint_sequence, 256, disjoint, sequence, then{}, int, 1)
REDUCE(disjoint_long_sequence, 96, disjoint, long_sequence, then{}, wide, 0)

// Warps share long tasks of what is declared uniform.
VISIT(scanned_visits, 96, scanned, int, 0, )
VISIT(scanned_visits_described, 256, scanned, unsigned, 2, cte::uniform)
VISIT(disjoint_visits, 32, disjoint, long long, 3, )
VISIT(disjoint_visits_described, 128, disjoint, unsigned, 1, cte::uniform)
VISIT(disjoint_visits_undescribed, 64, disjoint, int, 0, cte::uniform)

// One storage for calls of several types and layouts, one behind the other; what one call gives decides the next one's tasks.
extern "C" __global__ void several(int tasks, const int* begins, const int* ends, int base, unsigned* visits, sequence* out, double* sums) {
    __shared__ cte::storage_for<96, POLICY, float, sequence, double> storage;
    const fine_tasks<int> fine{base, visits};
    each_task<96>(tasks, begins, ends, [=](int task, int begin, int end) {
        const auto letter = [=](int i) { return value_of<sequence>::letter(fine.visit(i)); };
        const auto one = [=](int i) { return fine.visit(i) == 0 ? 0.0f : 1.0f; };
        const sequence all = cte::for_each_index<96, cte::scanned, POLICY>(storage, begin, end, letter, then{}, value_of<sequence>::first(task));
        const int size = static_cast<int>(all.length) - 1;
        const float half = cte::for_each_index<96, cte::disjoint, POLICY>(storage, begin, begin + size / 2, one, add{}, 0.5f);
        const double whole = cte::for_each_index<96, cte::scanned, POLICY>(
            storage, begin, end, [=](int i) -> double { return one(i); }, add{}, static_cast<double>(half));
        cte::for_each<96, cte::scanned, POLICY>(storage, begin, end, [=](int i) { fine.visit(i); });
        const sequence rest = cte::for_each_index<96, cte::disjoint, POLICY>(storage, begin + static_cast<int>(half), end, letter, then{}, all);
        if (task < tasks) {
            out[task] = rest;
            sums[task] = whole;
        }
    });
}

// Warps that are not whole: threads of which some leave early and some stand aside of a call. `runners` tells who ran a fine task.
extern "C" __global__ void partly(int tasks, const int* begins, const int* ends, unsigned stays, unsigned calls, unsigned* runners,
                                  sequence* out) {
    const int task = min(static_cast<int>(threadIdx.x), tasks), lane = cte::detail::lane_number();
    if (!(stays >> lane & 1u)) return;
    sequence result{1, 1, 1};
    if (calls >> lane & 1u) {
        const auto letter = [=](int i, int) {
            runners[i] = threadIdx.x + 1;
            return value_of<sequence>::letter(i * 1000u * 2654435761u + 12345u);
        };
        result = cte::for_each_index<64, cte::disjoint, POLICY>(begins[task], ends[task], letter, then{}, value_of<sequence>::first(task), task);
    }
    if (task < tasks) out[task] = result;
}

#endif
