// The version of the CTE headers, and what they need from a compiler: checked where they are included.
//
//   CTE_VERSION       major * 10000 + minor * 100 + patch: the version of cccopt that they belong to
//   CTE_LEAST_ARCH    the lowest `__CUDA_ARCH__` that they work on: they use `.sync` forms and do not rely on lockstep execution
#pragma once

#define CTE_VERSION 100
#define CTE_LEAST_ARCH 750

#if !defined(__CUDACC__)
#error "the CTE headers hold device code: compile with nvcc"
#endif

static_assert(__cplusplus >= 201703L, "the CTE headers need C++17: compile with -std=c++17 or newer");

#if defined(__CUDA_ARCH__)
static_assert(__CUDA_ARCH__ >= CTE_LEAST_ARCH, "the CTE headers need sm_75 or newer: compile with -arch=sm_75 or newer");
#endif
