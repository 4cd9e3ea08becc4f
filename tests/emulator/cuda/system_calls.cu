#include <cassert>
#include <cstdio>

extern "C" __global__ void said(int n, const int* a, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = -1;
  assert(a[i] >= 0 && "no debts");
  if (a[i] % 4 == 1)
    out[i] = printf("%d:%5.2f|%-4s|%04x|%c%%%+d %s\n", i, a[i] / 4.0, "ab", a[i], 'x', -a[i], a[i] > 5 ? "much" : "few");
}

// Types of all sizes in one call: each lies at a multiple of its size.
extern "C" __global__ void sizes(long long big, double real) {
  char text[4] = {'t', (char)('a' + threadIdx.x), 0, 0};
  printf("%d %lld %u %hhd %hu %llx %p %*d %.*f %e %g %a %i %o %s\n", -1, big, ~0u, (signed char)-3, (unsigned short)-1,
         big, (void*)16, 6, 42, 1, real, real, real, real, 7, 8, text);
}

extern "C" __global__ void heap(int never, int** out) {
  if (never) out[threadIdx.x] = (int*)malloc(16);
}
