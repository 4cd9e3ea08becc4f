"""Which build of each kernel is fastest on the GPU at hand, by measurement."""
