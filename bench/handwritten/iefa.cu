// The kernel of samples/iefa with its three polynomials collected by hand.
//
// Every lane needs exactly one of them, so that one push serves all three stacks, and whichever stack then has 32 contexts
// gives a full warp to its polynomial. A context is the number, its w (the logarithm is paid for once) and its place. A warp
// whose lanes agree on the most likely polynomial has nothing to collect.
//
// Blocks of a grid-stride loop are equally long, so that all of a launch must be resident at once or the last ones run
// alone. Eight blocks a multiprocessor leave 32 registers a thread and 27 KB of shared memory a block: hence the launch
// bounds, and two of the stacks grow towards each other.
#include "../../samples/iefa/iefa.cuh"
#include "warp_stack.cuh"

namespace {

constexpr int BLOCK = 256, BLOCKS = 8;

// A stack keeps up to 31 contexts from trip to trip, and all stacks together receive 32 before one is emptied.
constexpr int KEPT = ccc::LANES - 1, PAIR = KEPT + KEPT + ccc::LANES, SLOTS = PAIR + KEPT + ccc::LANES;

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)
iefa(unsigned n, const double* __restrict__ x, double* __restrict__ y) {
  __shared__ double2 numbers[BLOCK / ccc::LANES * SLOTS];  // a number and its w
  __shared__ unsigned places[BLOCK / ccc::LANES * SLOTS];

  const auto near_centre = [=](double2 v, unsigned i) { y[i] = central(v.y) * v.x; };
  const auto farther = [=](double2 v, unsigned i) { y[i] = middle(v.y) * v.x; };
  const auto far_out = [=](double2 v, unsigned i) { y[i] = tail(v.y) * v.x; };
  const auto run = [&](int slot, auto path) { path(numbers[slot], places[slot]); };

  // The free slot next to each stack: `centre` grows up from the warp's first slot, `ends` down towards it, and `between`
  // grows up behind both.
  const int lane = int(ccc::lane()), first = int(threadIdx.x) / ccc::LANES * SLOTS;
  int centre = first, ends = first + PAIR - 1, between = first + PAIR;

  const unsigned stride = gridDim.x * BLOCK;
  unsigned i = threadIdx.x + blockIdx.x * BLOCK;
  double next = i < n ? x[i] : 0.0;
  for (; __any_sync(ccc::WHOLE_WARP, i < n); i += stride) {
    const double2 number = make_double2(next, depth(next));
    if (i + stride < n) next = x[i + stride];  // ahead of the barriers, which would keep it from starting early
    const bool mine = i < n, is_central = number.y < 6.25, is_tail = !(number.y < 16.0);
    const unsigned to_centre = __ballot_sync(ccc::WHOLE_WARP, mine && is_central);
    if (to_centre == ccc::WHOLE_WARP) {
      near_centre(number, i);
      continue;
    }
    const unsigned to_ends = __ballot_sync(ccc::WHOLE_WARP, mine && is_tail);
    const unsigned to_between = __ballot_sync(ccc::WHOLE_WARP, mine && !is_central && !is_tail);
    if (mine) {
      const int ahead = ccc::rank(is_central ? to_centre : is_tail ? to_ends : to_between);
      const int slot = is_tail ? ends - ahead : (is_central ? centre : between) + ahead;
      numbers[slot] = number;
      places[slot] = i;
    }
    centre += __popc(to_centre);
    ends -= __popc(to_ends);
    between += __popc(to_between);
    __syncwarp();  // what was pushed can be seen
    if (centre >= first + ccc::LANES) {
      centre -= ccc::LANES;
      run(centre + lane, near_centre);
    }
    if (between >= first + PAIR + ccc::LANES) {
      between -= ccc::LANES;
      run(between + lane, farther);
    }
    if (ends < first + PAIR - ccc::LANES) {
      ends += ccc::LANES;
      run(ends - lane, far_out);
    }
    __syncwarp();  // what was popped may be overwritten
  }
  if (first + lane < centre) run(first + lane, near_centre);
  if (first + PAIR + lane < between) run(first + PAIR + lane, farther);
  if (ends < first + PAIR - 1 - lane) run(first + PAIR - 1 - lane, far_out);
}
