// Cuckoo hashing with four functions: D. Alcantara et al., "Real-time parallel hashing on the GPU", SIGGRAPH Asia 2009, and
// "Building an efficient hash table on the GPU", GPU Computing Gems Jade Edition, 2011.
#pragma once
#include <cstdint>

using Pair = unsigned long long;  // the key in the upper half, its value in the lower one

constexpr int FUNCTIONS = 4;
constexpr uint32_t NO_KEY = 0;   // the key of an empty slot
constexpr unsigned STASH = 128;  // pairs for which no slot was found: a handful in 100 million

__host__ __device__ inline uint32_t hash32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

__host__ __device__ inline uint32_t key_of(Pair pair) { return uint32_t(pair >> 32); }

// The slot of a table of `size` slots where function `f` puts the key.
__device__ inline unsigned slot_of(uint32_t key, int f, unsigned size) {
  return __umulhi(hash32(key + f * 0x9e3779b9u), size);
}

// Where a key goes that is driven out of `slot`: to the slot of the function after the one that put it there.
__device__ inline unsigned next_slot(uint32_t key, unsigned slot, unsigned size) {
  int next = 0;
#pragma unroll
  for (int f = FUNCTIONS - 2; f >= 0; --f)
    if (slot == slot_of(key, f, size)) next = f + 1;
  return slot_of(key, next, size);
}

// A pair that found no slot in time. Where the stash is full too, `stashed` tells the host to build the table anew.
__device__ inline void put_aside(Pair pair, Pair* stash, unsigned* stashed) {
  const unsigned at = atomicAdd(stashed, 1);
  if (at < STASH) stash[at] = pair;
}
