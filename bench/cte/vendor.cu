// y = A x by NVIDIA's libraries, for `cccopt bench cte`: cuSPARSE (-DVENDOR_CUSPARSE, -lcusparse) or CUB (-DVENDOR_CUB), as a
// shared library that works on the caller's device pointers, in the current context and its default stream.
//
// Each function makes its plan (descriptors, scratch memory, cuSPARSE's preprocessing) at its first call with these arguments
// and keeps it: a caller that times it calls it once before. It returns 0, or a status that `vendor_error` puts into words.
#include <cstddef>
#include <cstring>
#include <cuda_runtime.h>
#include <map>
#include <tuple>

template <class Value>
struct Spmv {
  long long rows, columns, entries;
  const int *offsets, *indices;
  const Value *values, *x;
  Value* y;

  auto key() const { return std::make_tuple(rows, columns, entries, offsets, indices, values, x, y); }
};

#ifdef VENDOR_CUSPARSE
#include <cusparse.h>

template <class Value>
constexpr cudaDataType type_of() { return sizeof(Value) == 4 ? CUDA_R_32F : CUDA_R_64F; }

template <class Value>
struct CuSparse {
  cusparseHandle_t handle{};
  cusparseSpMatDescr_t matrix{};
  cusparseDnVecDescr_t x{}, y{};
  void* scratch{};
  const Value one = 1, zero = 0;

  int prepare(const Spmv<Value>& p, cusparseSpMVAlg_t algorithm) {
    constexpr auto index = CUSPARSE_INDEX_32I;
    size_t bytes = 0;
    if (int s = cusparseCreate(&handle)) return s;
    if (int s = cusparseCreateCsr(&matrix, p.rows, p.columns, p.entries, const_cast<int*>(p.offsets), const_cast<int*>(p.indices),
                                  const_cast<Value*>(p.values), index, index, CUSPARSE_INDEX_BASE_ZERO, type_of<Value>())) return s;
    if (int s = cusparseCreateDnVec(&x, p.columns, const_cast<Value*>(p.x), type_of<Value>())) return s;
    if (int s = cusparseCreateDnVec(&y, p.rows, p.y, type_of<Value>())) return s;
    if (int s = cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, x, &zero, y, type_of<Value>(),
                                        algorithm, &bytes)) return s;
    if (cudaMalloc(&scratch, bytes + 16) != cudaSuccess) return CUSPARSE_STATUS_ALLOC_FAILED;
    return cusparseSpMV_preprocess(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, x, &zero, y, type_of<Value>(),
                                   algorithm, scratch);
  }

  int run(cusparseSpMVAlg_t algorithm) const {
    return cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, x, &zero, y, type_of<Value>(), algorithm, scratch);
  }
};

template <class Value, cusparseSpMVAlg_t Algorithm>
int spmv(const Spmv<Value>& problem) {
  static std::map<decltype(problem.key()), CuSparse<Value>> plans;
  auto [plan, is_new] = plans.try_emplace(problem.key());
  if (is_new)
    if (int status = plan->second.prepare(problem, Algorithm)) return plans.erase(plan), status;
  return plan->second.run(Algorithm);
}

extern "C" const char* vendor_error(int status) { return cusparseGetErrorString(static_cast<cusparseStatus_t>(status)); }

#define VENDOR_BUILDS(F) F(cusparse_alg1, CUSPARSE_SPMV_CSR_ALG1) F(cusparse_alg2, CUSPARSE_SPMV_CSR_ALG2)
#endif

#ifdef VENDOR_CUB
#include <cub/device/device_segmented_reduce.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

template <class Value>
struct Product {
  const int* indices;
  const Value *values, *x;
  __device__ Value operator()(int i) const { return values[i] * __ldg(x + indices[i]); }
};

template <class Value, int>
int spmv(const Spmv<Value>& problem) {
  struct Scratch {
    void* memory;
    size_t bytes;
  };
  static std::map<decltype(problem.key()), Scratch> plans;
  const auto terms = thrust::make_transform_iterator(thrust::make_counting_iterator(0),
                                                     Product<Value>{problem.indices, problem.values, problem.x});
  const auto reduce = [&](void* memory, size_t& bytes) {
    return cub::DeviceSegmentedReduce::Sum(memory, bytes, terms, problem.y, problem.rows, problem.offsets, problem.offsets + 1);
  };
  auto [plan, is_new] = plans.try_emplace(problem.key(), Scratch{nullptr, 0});
  auto& [memory, bytes] = plan->second;
  if (is_new) {
    int status = reduce(nullptr, bytes);
    if (!status) status = cudaMalloc(&memory, bytes + 16);
    if (status) return plans.erase(plan), status;
  }
  return reduce(memory, bytes);
}

extern "C" const char* vendor_error(int status) { return cudaGetErrorString(static_cast<cudaError_t>(status)); }

#define VENDOR_BUILDS(F) F(cub_segmented_reduce, 0)
#endif

#define VENDOR_FUNCTION(name, Value, tail, algorithm)                                                                          \
  extern "C" int name##_##tail(long long rows, long long columns, long long entries, const int* offsets, const int* indices,   \
                               const Value* values, const Value* x, Value* y) {                                                \
    return spmv<Value, algorithm>({rows, columns, entries, offsets, indices, values, x, y});                                   \
  }
#define VENDOR_BOTH(name, algorithm) \
  VENDOR_FUNCTION(name, float, float32, algorithm) VENDOR_FUNCTION(name, double, float64, algorithm)
VENDOR_BUILDS(VENDOR_BOTH)
