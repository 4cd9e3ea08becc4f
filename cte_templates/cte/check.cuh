// Checks at run time, in debug builds only: with `nvcc -G` or the macro CTE_DEBUG.
#pragma once

#include <cte/version.cuh>

#if defined(__CUDACC_DEBUG__) || defined(CTE_DEBUG)
#include <cassert>
#define CTE_CHECK(condition) assert(condition)
#define CTE_CHECKS true
#else
#define CTE_CHECK(condition) static_cast<void>(0)
#define CTE_CHECKS false
#endif
