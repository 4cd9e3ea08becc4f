"""Sparse matrices and graphs as inputs of benchmarks: made, read from files, kept, and checked."""
