"""Compiled code over batches that every compiled evaluator uses."""
