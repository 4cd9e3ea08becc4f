// The kernels of samples/hash with CCC written by hand: a warp takes steps as long as all its lanes have a pair to place.
#include "../../samples/hash/hash.cuh"
#include "warp_stack.cuh"

// What waits between two steps. The key of the pair is not kept: it is the pair's upper half.
struct Task {
  Pair pair;
  unsigned slot, steps;
};

// A step: whether the pair still needs another one. One that has had too many is put aside.
struct Step {
  unsigned size;
  Pair* __restrict__ table;
  unsigned most_steps;
  Pair* __restrict__ stash;
  unsigned* __restrict__ stashed;

  __device__ __forceinline__ bool wanted(const Task& task) const {
    if (key_of(task.pair) == NO_KEY) return false;
    if (task.steps < most_steps) return true;
    put_aside(task.pair, stash, stashed);
    return false;
  }

  __device__ __forceinline__ bool operator()(Task& task) const {
    task.slot = next_slot(key_of(task.pair), task.slot, size);
    task.pair = atomicExch(&table[task.slot], task.pair);
    ++task.steps;
    return wanted(task);
  }
};

// A loop of steps and a recursion of steps are the same tasks.
__device__ __forceinline__ void insert(unsigned pairs, const Pair* __restrict__ input, const Step& step) {
  using Stack = ccc::WarpStack<Task>;
  __shared__ Stack::Storage storage;
  Stack stack(storage);
  const unsigned stride = gridDim.x * blockDim.x;
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; __any_sync(ccc::WHOLE_WARP, i < pairs); i += stride) {
    Task task{};
    if (i < pairs) {
      task.slot = slot_of(key_of(input[i]), 0, step.size);
      task.pair = atomicExch(&step.table[task.slot], input[i]);
    }
    stack.collect_trips(step.wanted(task), task, step);
  }
  stack.drain([&](Task task) {
    while (step(task)) continue;
  });
}

#define KERNEL(NAME)                                                                                             \
  extern "C" __global__ void __launch_bounds__(256)                                                              \
  NAME(unsigned pairs, const Pair* __restrict__ input, unsigned size, Pair* __restrict__ table, unsigned most_steps, \
       Pair* __restrict__ stash, unsigned* __restrict__ stashed) {                                               \
    insert(pairs, input, Step{size, table, most_steps, stash, stashed});                                         \
  }
KERNEL(insert_while)
KERNEL(insert_recursive)
