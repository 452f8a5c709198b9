"""Compiles kernels with numba: decorators, cache on disk, warming; and names array types."""
