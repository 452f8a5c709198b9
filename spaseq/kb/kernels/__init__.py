"""Kernels over knowledge bases."""
