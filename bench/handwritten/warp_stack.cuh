// Collaborative Context Collection written by hand: the stack on which a warp's tasks wait until all 32 lanes have one.
// F. Khorasani's thesis, chapter 4, in the form that was fastest on an H200: idle lanes pop, or the others push.
//
//   using Stack = ccc::WarpStack<Task>;
//   __shared__ Stack::Storage storage;
//   Stack stack(storage);
//   for (; __any_sync(ccc::WHOLE_WARP, i < n); i += stride)  // all 32 lanes come along until none has a trip
//     stack.collect(i < n && ..., task, [&](Task task) { ... });
//   stack.drain([&](Task task) { ... });
//
// A task is any trivially copyable struct of 4-byte words. Every function here must be called by whole warps, and blocks are
// one-dimensional. A loop that ends by a vote, as above, lets ptxas prove that the warp stays together: it then needs no
// instructions to bring lanes together at branches and barriers. Votes order no memory: the barriers order a push before
// the pop that reads it, and a pop before the push that overwrites it.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ccc {

constexpr unsigned WHOLE_WARP = 0xffffffffu;
constexpr int LANES = 32;

__device__ __forceinline__ unsigned lane() { return threadIdx.x % LANES; }

// The first thread of this warp, counted over the grid: where its share of a grid-stride loop begins.
__device__ __forceinline__ unsigned first_of_warp() { return (threadIdx.x & ~31u) + blockIdx.x * blockDim.x; }

// How many lanes ahead of this one are in the mask.
__device__ __forceinline__ int rank(unsigned mask) {
  unsigned ahead;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(ahead));
  return __popc(mask & ahead);
}

// Runs `trip(i, value)` for each i of the lists [next, last) that the lanes of a warp hold; `value` is what `from(owner)` gives,
// called by all lanes with the lane whose list it is. The lists are laid one behind the other, and the warp takes 32 places at a
// time. All together must be shorter than 2^31, as parts of one array are that has an int for its size.
//
// Each lane marks the place ahead of where its list begins; the number of marks below a place tells which list it is in.
template <class From, class Trip>
__device__ __forceinline__ void expand(int next, int last, From from, Trip trip) {
  const int length = max(last - next, 0);
  int end = length;
#pragma unroll
  for (int step = 1; step < LANES; step *= 2) {
    const int below = __shfl_up_sync(WHOLE_WARP, end, step);
    if (lane() >= step) end += below;
  }
  const unsigned some = __ballot_sync(WHOLE_WARP, length > 0);
  // In lane k the k-th lane with a list.
  int slot = lane();
  if (some != WHOLE_WARP) {
    const int up_to = rank(some) + (some >> lane() & 1);
    slot = 0;
#pragma unroll
    for (int step = LANES / 2; step; step /= 2)
      if (__shfl_sync(WHOLE_WARP, up_to, slot + step - 1) <= int(lane())) slot += step;
  }
  int rest = __shfl_sync(WHOLE_WARP, end, LANES - 1), begun = 0;
  unsigned mark = length ? end - length - 1 : ~0u;
  for (next -= end - length; rest > 0; rest -= LANES, mark -= LANES, next += LANES) {
    const unsigned begins = __reduce_or_sync(WHOLE_WARP, mark < LANES ? 1u << mark : 0);
    const int owner = __shfl_sync(WHOLE_WARP, slot, begun + rank(begins));
    begun += __popc(begins);
    const int i = __shfl_sync(WHOLE_WARP, next, owner) + lane();
    const auto value = from(owner);
    if (int(lane()) < rest) trip(i, value);
  }
}

// A warp's stack of tasks in shared memory, with an array for each 16, 8 or 4 bytes of a task: lanes that push or pop
// together touch neighbouring words, and a task of five words is moved by two instructions.
//
// The address is one register that the compiler cannot take apart (it would put it together again in every iteration, from
// special registers), hence the assembly.
template <class Task, int THREADS = 256>
class WarpStack {
  static_assert(std::is_trivially_copyable<Task>::value, "a task waits in shared memory: it must be a plain struct");
  static_assert(sizeof(Task) % 4 == 0, "a task is made of 4-byte words");
  static_assert(THREADS % LANES == 0, "stacks belong to whole warps");
  static constexpr int WORDS = sizeof(Task) / 4, QUADS = WORDS / 4 * 4;

 public:
  struct alignas(16) Storage {
    uint32_t words[WORDS * THREADS];
  };

  __device__ __forceinline__ explicit WarpStack(Storage& storage)
      : slots(unsigned(__cvta_generic_to_shared(&storage)) + (threadIdx.x & ~31u) * sizeof(Task)) {
    asm volatile("" : "+r"(slots));
  }

  // All or none: where idle lanes can be given waiting tasks, all 32 run the path; else tasks wait and nobody runs.
  template <class Path>
  __device__ __forceinline__ void collect(bool wanted, Task task, Path path) {
    const unsigned wanting = __ballot_sync(WHOLE_WARP, wanted);
    if (wanting == 0) return;
    const int idle = LANES - __popc(wanting);
    if (top >= idle) {
      top -= idle;
      if (!wanted) task = load(top + rank(~wanting));
      path(task);
    } else {
      if (wanted) store(top + rank(wanting), task);
      top += LANES - idle;
    }
    __syncwarp();
  }

  // As `collect` for a task of many trips. `run(task)` runs some of them and says whether any are left; lanes that have
  // finished are given waiting tasks for as long as there are enough, then what is left of the others waits.
  template <class Run>
  __device__ __forceinline__ void collect_trips(bool wanted, Task task, Run run) {
    unsigned idle = __ballot_sync(WHOLE_WARP, !wanted);
    int missing = __popc(idle);
    while (top >= missing) {
      top -= missing;
      if (!wanted) task = load(top + rank(idle));
      __syncwarp();
      wanted = run(task);
      idle = __ballot_sync(WHOLE_WARP, !wanted);
      missing = __popc(idle);
    }
    if (wanted) store(top + rank(~idle), task);
    top += LANES - missing;
    __syncwarp();
  }

  // The remainder, less than 32 tasks: whether this lane was given one. Nothing waits afterwards.
  __device__ __forceinline__ bool waiting(Task& task) {
    const bool given = int(lane()) < top;
    if (given) task = load(lane());
    top = 0;
    __syncwarp();
    return given;
  }

  // The remainder at the end of a kernel: lanes that are given no task leave. `path` may not collect.
  template <class Path>
  __device__ __forceinline__ void drain(Path path) {
    if (int(lane()) < top) path(load(lane()));
  }

 private:
  __device__ __forceinline__ void store(int slot, const Task& task) {
    uint32_t w[WORDS];
    memcpy(w, &task, sizeof(Task));
#pragma unroll
    for (int i = 0; i < QUADS; i += 4)
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at(i, 4, slot)), "r"(w[i]), "r"(w[i + 1]), "r"(w[i + 2]),
                   "r"(w[i + 3])
                   : "memory");
    if constexpr (WORDS & 2)
      asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(at(QUADS, 2, slot)), "r"(w[QUADS]), "r"(w[QUADS + 1])
                   : "memory");
    if constexpr (WORDS & 1)
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(at(WORDS - 1, 1, slot)), "r"(w[WORDS - 1]) : "memory");
  }

  __device__ __forceinline__ Task load(int slot) {
    uint32_t w[WORDS];
#pragma unroll
    for (int i = 0; i < QUADS; i += 4)
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(w[i]), "=r"(w[i + 1]), "=r"(w[i + 2]), "=r"(w[i + 3])
                   : "r"(at(i, 4, slot))
                   : "memory");
    if constexpr (WORDS & 2)
      asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                   : "=r"(w[QUADS]), "=r"(w[QUADS + 1])
                   : "r"(at(QUADS, 2, slot))
                   : "memory");
    if constexpr (WORDS & 1)
      asm volatile("ld.shared.b32 %0, [%1];" : "=r"(w[WORDS - 1]) : "r"(at(WORDS - 1, 1, slot)) : "memory");
    Task task;
    memcpy(&task, w, sizeof(Task));
    return task;
  }

  // Where a slot has its `width` words from `word` on: they lie in an array of 32.
  __device__ __forceinline__ unsigned at(int word, int width, int slot) {
    return slots + 4 * (LANES * word + width * slot);
  }

  unsigned slots;  // the shared address of this warp's slots
  int top = 0;     // how many tasks wait: the same in all lanes
};

}  // namespace ccc
