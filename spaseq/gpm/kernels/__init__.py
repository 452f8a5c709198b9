"""Kernels that match graph patterns against the events of a batch."""
