// The diagonal of a CSR matrix: of each row the entry whose column is the row's number, or 0 where there is none (several
// count as their sum). F. Khorasani's thesis, 4.2.3.
//
// An entry does not know its row: the row is the task's descriptor, which goes wherever its entries are looked at.
#include <cte.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256;

extern "C" __global__ void __launch_bounds__(BLOCK)
diag(int rows, const int* __restrict__ offsets, const int* __restrict__ columns, const float* __restrict__ values,
     float* __restrict__ diagonal) {
  const int row = min(int(blockIdx.x * BLOCK + threadIdx.x), rows);
  const int begin = offsets[row], end = offsets[min(row + 1, rows)];
  const auto on_diagonal = [=](int i, int row) { return columns[i] == row ? values[i] : 0.0f; };
  const float found = cte::for_each_index<BLOCK, cte::scanned, CTE_POLICY>(begin, end, on_diagonal, cte::plus{}, 0.0f, row);
  if (row < rows) diagonal[row] = found;
}
