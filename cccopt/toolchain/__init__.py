"""nvcc and ptxas: where they are, and the shims that put the rewrite between them."""
