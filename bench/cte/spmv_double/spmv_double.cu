// ../spmv/spmv.cu in double precision.
#define SPMV_DOUBLE
#include "../spmv/spmv.cu"
