// What the library offers to host code.
#pragma once

void work_on(int n, const float* in, float* out);
