// Building a cuckoo hash table: every pair drives out the pair that it finds in its slot, which goes on to its next slot.
//
//   hash [pairs] [seed]      fills nine tenths of a table, in two ways, and looks every key up
//
// More than half of the pairs find an empty slot at once, a few need a hundred steps, and the whole warp waits for the longest.
// One step is a task: a trip of a loop (`while`) or a call (`recursive`): F. Khorasani's thesis, figures 4.6 and 4.7.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "hash.cuh"

// Distinct keys, none of them NO_KEY: hash32 is a permutation that maps 0 to 0, and so is multiplication by an odd factor.
extern "C" __global__ void __launch_bounds__(256) make_pairs(unsigned pairs, unsigned seed, Pair* input) {
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < pairs; i += gridDim.x * blockDim.x)
    input[i] = Pair(hash32((i + 1) * (2 * seed + 1))) << 32 | i;
}

// Which slot a pair ends up in depends on which pair comes first; that every pair ends up in one of its slots does not.
extern "C" __global__ void __launch_bounds__(256)
insert_while(unsigned pairs, const Pair* __restrict__ input, unsigned size, Pair* __restrict__ table, unsigned most_steps,
             Pair* __restrict__ stash, unsigned* __restrict__ stashed) {
#pragma ccc for
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < pairs; i += gridDim.x * blockDim.x) {
    unsigned slot = slot_of(key_of(input[i]), 0, size), steps = 0;
    Pair pair = atomicExch(&table[slot], input[i]);
#pragma ccc while
    while (key_of(pair) != NO_KEY && steps < most_steps) {
      slot = next_slot(key_of(pair), slot, size);
      pair = atomicExch(&table[slot], pair);
      ++steps;
    }
    if (key_of(pair) != NO_KEY) put_aside(pair, stash, stashed);
  }
}

struct Table {
  unsigned size;
  Pair* __restrict__ slots;
  unsigned most_steps;
  Pair* __restrict__ stash;
  unsigned* __restrict__ stashed;
};

#pragma ccc recursive
__device__ void insert(Pair pair, unsigned slot, unsigned steps, const Table& table) {
  pair = atomicExch(&table.slots[slot], pair);
  if (key_of(pair) == NO_KEY) return;
  if (steps == table.most_steps) return put_aside(pair, table.stash, table.stashed);
  insert(pair, next_slot(key_of(pair), slot, table.size), steps + 1, table);
}

extern "C" __global__ void __launch_bounds__(256)
insert_recursive(unsigned pairs, const Pair* __restrict__ input, unsigned size, Pair* __restrict__ slots, unsigned most_steps,
                 Pair* __restrict__ stash, unsigned* __restrict__ stashed) {
  const Table table{size, slots, most_steps, stash, stashed};
#pragma ccc for
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < pairs; i += gridDim.x * blockDim.x)
    insert(input[i], slot_of(key_of(input[i]), 0, size), 0, table);
}

extern "C" __global__ void __launch_bounds__(256) clear(unsigned size, Pair* table, unsigned* stashed) {
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < size; i += gridDim.x * blockDim.x) table[i] = 0;
  if (threadIdx.x + blockIdx.x * blockDim.x == 0) *stashed = 0;
}

// found[0] is the number of pairs that are found exactly once, found[1] the number of pairs in table and stash. Both are
// `pairs` if and only if nothing was lost, doubled or made up.
extern "C" __global__ void __launch_bounds__(256)
look_up(unsigned pairs, const Pair* input, unsigned size, const Pair* table, const Pair* stash, const unsigned* stashed,
        unsigned* found) {
  const unsigned first = threadIdx.x + blockIdx.x * blockDim.x, step = gridDim.x * blockDim.x;
  const unsigned aside = min(*stashed, STASH);
  unsigned once = 0, stored = first == 0 ? aside : 0;
  for (unsigned i = first; i < pairs; i += step) {
    const Pair pair = input[i];
    unsigned slots[FUNCTIONS], copies = 0;
    for (int f = 0; f < FUNCTIONS; ++f) {
      slots[f] = slot_of(key_of(pair), f, size);
      bool seen = false;  // two functions may agree on a slot
      for (int other = 0; other < f; ++other) seen |= slots[other] == slots[f];
      copies += !seen && table[slots[f]] == pair;
    }
    for (unsigned k = 0; k < aside; ++k) copies += stash[k] == pair;
    once += copies == 1;
  }
  for (unsigned i = first; i < size; i += step) stored += key_of(table[i]) != NO_KEY;
  atomicAdd(&found[0], once);
  atomicAdd(&found[1], stored);
}

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "hash: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

template <class T>
static T* on_device(size_t count) {
  T* pointer = nullptr;
  check(cudaMalloc(&pointer, count * sizeof(T)), "cudaMalloc");
  check(cudaMemset(pointer, 0, count * sizeof(T)), "cudaMemset");
  return pointer;
}

int main(int argc, char** argv) {
  const long long wanted = argc > 1 ? std::atoll(argv[1]) : 1000000;
  const unsigned seed = argc > 2 ? unsigned(std::strtoul(argv[2], nullptr, 10)) : 1;
  if (wanted < 1 || wanted > 1000000000) {
    std::fprintf(stderr, "usage: hash [pairs 1..1000000000] [seed]\n");
    return 2;
  }
  const unsigned pairs = unsigned(wanted), size = unsigned((wanted * 10 + 8) / 9);
  unsigned most_steps = 7;  // seven times the binary logarithm
  for (unsigned rest = pairs - 1; rest > 0; rest /= 2) most_steps += 7;
  Pair *input = on_device<Pair>(pairs), *table = on_device<Pair>(size), *stash = on_device<Pair>(STASH);
  unsigned* stashed = on_device<unsigned>(1);
  make_pairs<<<32, 256>>>(pairs, seed, input);
  bool lost = false;
  for (const auto& variant : {"while", "recursive"}) {
    unsigned* found = on_device<unsigned>(2);
    clear<<<32, 256>>>(size, table, stashed);
    (variant[0] == 'w' ? insert_while : insert_recursive)<<<32, 256>>>(pairs, input, size, table, most_steps, stash, stashed);
    look_up<<<32, 256>>>(pairs, input, size, table, stash, stashed, found);
    check(cudaGetLastError(), "the launches");
    unsigned counts[2], aside;
    check(cudaMemcpy(counts, found, sizeof counts, cudaMemcpyDeviceToHost), "the kernels");
    check(cudaMemcpy(&aside, stashed, sizeof aside, cudaMemcpyDeviceToHost), "cudaMemcpy");
    cudaFree(found);
    std::printf("%s: pairs %u slots %u found once %u stored %u aside %u\n", variant, pairs, size, counts[0], counts[1], aside);
    lost |= counts[0] != pairs || counts[1] != pairs;
  }
  for (void* pointer : {(void*)input, (void*)table, (void*)stash, (void*)stashed}) cudaFree(pointer);
  return lost;
}
