"""N-Quads and N-Triples to event batches, with the kernels."""
