"""Pragmas in CUDA C++ become markers."""
