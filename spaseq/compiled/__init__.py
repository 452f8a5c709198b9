"""Compiling kernels with numba: decorators, the cache on disk, warming, and array types."""
