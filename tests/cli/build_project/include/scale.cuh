// Defined in another file: calls are resolved by the device linker.
#pragma once

__device__ float scale(float x);
