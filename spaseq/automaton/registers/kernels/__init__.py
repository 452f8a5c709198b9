"""Kernels of the register evaluator."""
