// samples/ff with CCC written by hand: every warp sorts its points by variation and runs a variation for 32 points at once.
//
// Ten paths voted on one by one would cost ten ballots a trip. Here lane b counts the points that wait for variation b. Four
// ballots tell every lane both its own variation's company and the growth of what it counts; a jump that the warp takes as one
// runs what is full. A variation's stack is two halves of 32 slots that fill in turn, so a full half is popped without moving
// anything. A slot holds the point's 32 random bits: the point, its radius and its angle are made of them where a path needs
// them.
#include "../../samples/ff/ff.cuh"
#include "warp_stack.cuh"

constexpr int BLOCK = 256, HALF = 32, SLOTS = 2 * HALF, BITS = 4;
static_assert(VARIATIONS < 1 << BITS && VARIATIONS < ccc::LANES, "a lane for every variation, and one number more");

__device__ __forceinline__ float2 variation(unsigned which, float2 p) {
  switch (which) {
    case 0: return p;
    case 1: return sinusoidal(p);
    case 2: return spherical(p, radius_of(p));
    case 3: return swirl(p, radius_of(p));
    case 4: return horseshoe(p, radius_of(p));
    case 5: return polar(radius_of(p), angle_of(p));
    case 6: return handkerchief(radius_of(p), angle_of(p));
    case 7: return heart(radius_of(p), angle_of(p));
    case 8: return disc(radius_of(p), angle_of(p));
    default: return power(radius_of(p), angle_of(p));
  }
}

// A number's low bits, each spread over a word.
struct Spread {
  unsigned bit[BITS];

  __device__ __forceinline__ explicit Spread(unsigned number) {
#pragma unroll
    for (int b = 0; b < BITS; ++b) bit[b] = -(number >> b & 1);
  }

  // The lanes with these low bits in their number, out of the ballots over each of its bits.
  __device__ __forceinline__ unsigned lanes(const unsigned (&ballots)[BITS]) const {
    unsigned equal = ccc::WHOLE_WARP;
#pragma unroll
    for (int b = 0; b < BITS; ++b) equal &= ~(ballots[b] ^ bit[b]);
    return equal;
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK) ff(unsigned points, unsigned* image) {
  // Behind the stacks of the variations, slots for lanes without a point: they need no branch.
  __shared__ uint32_t stacks[BLOCK / ccc::LANES][VARIATIONS * SLOTS + ccc::LANES];
  // The compiler would make the address and the masks anew in every trip if it could see through them.
  unsigned stack = unsigned(__cvta_generic_to_shared(stacks[threadIdx.x / ccc::LANES]));
  asm volatile("" : "+r"(stack));
  Spread own(ccc::lane());
#pragma unroll
  for (int b = 0; b < BITS; ++b) asm volatile("" : "+r"(own.bit[b]));
  const unsigned counted = ccc::lane() < VARIATIONS ? ccc::WHOLE_WARP : 0;

  const unsigned stride = gridDim.x * blockDim.x;
  unsigned pushed = 0;  // lane b: the points that were ever pushed for variation b
  bool more = true;
  for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; more; i += stride) {
    more = __any_sync(ccc::WHOLE_WARP, i < points);
    unsigned ready;  // bit b: variation b runs
    if (more) {
      const uint32_t random = hash32(i);
      const unsigned which = i < points ? hash32(random) % VARIATIONS : VARIATIONS;
      unsigned ballots[BITS];
#pragma unroll
      for (int b = 0; b < BITS; ++b) ballots[b] = __ballot_sync(ccc::WHOLE_WARP, which >> b & 1);
      const unsigned slot = __shfl_sync(ccc::WHOLE_WARP, pushed, which) + ccc::rank(Spread(which).lanes(ballots));
      const unsigned address = stack + (which * SLOTS + slot % SLOTS) * sizeof random;
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(random) : "memory");
      const unsigned before = pushed;
      pushed += __popc(own.lanes(ballots) & counted);
      ready = __ballot_sync(ccc::WHOLE_WARP, (before ^ pushed) & HALF);
    } else {
      ready = __ballot_sync(ccc::WHOLE_WARP, pushed % HALF);
    }
    __syncwarp();
    for (; ready != 0; ready &= ready - 1) {
      const unsigned b = __ffs(ready) - 1, all = __shfl_sync(ccc::WHOLE_WARP, pushed, b);
      // A full half is the one that is not being filled; in the end it is the other one that holds the remainder.
      const unsigned begin = (more ? ~all : all) & HALF, tasks = more ? HALF : all % HALF;
      if (ccc::lane() < tasks) {
        uint32_t random;
        const unsigned address = stack + (b * SLOTS + begin + ccc::lane()) * sizeof random;
        asm volatile("ld.shared.b32 %0, [%1];" : "=r"(random) : "r"(address) : "memory");
        plot(image, variation(b, point_of(random)));
      }
    }
    __syncwarp();
  }
}
