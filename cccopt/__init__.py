"""cccopt: removes warp divergence from irregular CUDA kernels, between nvcc's front end and ptxas."""

__version__ = "0.1.0"
