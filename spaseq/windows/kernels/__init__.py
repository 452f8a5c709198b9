"""Kernels of windows: groups that are kept from one window event to the next."""
