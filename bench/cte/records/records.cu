// Lines of text, each some decimal numbers with commas between them: the sum of each line's numbers. A coarse task is a line,
// a fine task a byte, so that no lane sees a whole number: the reduction puts digits, numbers and sums together, in the order of
// the text.
#include <cte.cuh>
#include <cte/kernel/merge_path.cuh>

#include <cstdint>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256;

// A piece of text. Up to its first separator it may have the end of a number that began before it, after its last one the
// begin of a number that goes on behind it; the numbers between are whole. Numbers have up to 9 digits.
struct Piece {
  uint64_t sum;        // of the whole numbers
  uint32_t head;       // the digits up to the first separator, all digits where there is none
  uint32_t scale;      // 10 to the number of digits in `head`
  uint32_t tail;       // the digits behind the last separator
  uint32_t separated;  // 1 if there is a separator
};

__device__ __forceinline__ Piece piece_of(unsigned char byte) {
  const uint32_t digit = byte - uint32_t('0');
  return digit < 10 ? Piece{0, digit, 10, 0, 0} : Piece{0, 0, 1, 0, 1};
}

// The text of a, then that of b: the number that ends a goes on in b's head. Associative, not commutative.
struct Join {
  __device__ Piece operator()(const Piece& a, const Piece& b) const {
    const uint32_t across = (a.separated ? a.tail : a.head) * b.scale + b.head;
    return {a.sum + b.sum + (a.separated && b.separated ? across : 0), a.separated ? a.head : across,
            a.separated ? a.scale : a.scale * b.scale, b.separated ? b.tail : across, a.separated | b.separated};
  }
};

__device__ __forceinline__ uint64_t value(const Piece& piece) {
  return piece.separated ? piece.sum + piece.head + piece.tail : piece.head;
}

// No text.
__device__ __forceinline__ Piece nothing() { return {0, 0, 1, 0, 0}; }

#ifndef CTE_FORM_MERGE_PATH

extern "C" __global__ void __launch_bounds__(BLOCK)
records(int lines, const int* __restrict__ offsets, const unsigned char* __restrict__ text, uint64_t* __restrict__ sums) {
  const int line = min(int(blockIdx.x * BLOCK + threadIdx.x), lines);
  const int begin = offsets[line], end = offsets[min(line + 1, lines)];
  const auto piece_at = [=](int i) { return piece_of(text[i]); };
  const Piece whole = cte::for_each_index<BLOCK, cte::scanned, CTE_POLICY>(begin, end, piece_at, Join{}, nothing());
  if (line < lines) sums[line] = value(whole);
}

#else  // a line of any length spreads over the grid

using Form = cte::kernel::merge_path<BLOCK, 5>;
using Carry = cte::kernel::carry<Piece, int>;

extern "C" __global__ void __launch_bounds__(BLOCK)
records_merge_path(int lines, const int* __restrict__ offsets, const unsigned char* __restrict__ text,
                   uint64_t* __restrict__ sums, Carry* __restrict__ carries, const int* __restrict__ partition) {
  __shared__ Form::temp<Piece> shared;
  const auto piece_at = [=](int i) { return piece_of(text[i]); };
  const auto put = [=](int line, const Piece& whole) { sums[line] = value(whole); };
  Form::reduce(shared, lines, offsets, piece_at, Join{}, nothing(), put, carries, partition);
}

// `blocks` is the number of blocks of records_merge_path.
extern "C" __global__ void __launch_bounds__(BLOCK)
records_fix_up(int blocks, const int* __restrict__ offsets, uint64_t* __restrict__ sums, const Carry* __restrict__ carries) {
  __shared__ Form::fix_up_temp<Piece> shared;
  const auto put = [=](int line, const Piece& whole) { sums[line] = value(whole); };
  Form::fix_up(shared, blocks, offsets, Join{}, nothing(), put, carries);
}

#endif
