#include <cstdio>

#include "work.h"

int main(int count, char**) {
  if (count > 1) work_on(0, nullptr, nullptr);  // kernels are linked in, and no GPU is needed
  std::printf("ran\n");
}
